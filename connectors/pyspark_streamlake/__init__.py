"""Spark on streamlake tables: a ``foreachBatch`` sink, and the bridge from Kafka.

    query          what a sink can learn of the streaming query that calls it
    staging        data files written by Spark's tasks
    batch_markers  exactly once by Spark's batch ids
    kafka_markers  exactly once by Kafka's offsets
    kafka_probe    what the driver asks Kafka about starting points
    tables         opening a table that may not be there yet
    claims         one owner of an app_id in one process
    failures       errors that come out of Spark as text
    sink           ForeachBatchSink
    bridge         Kafka topics into a table, as one query
    program        the bridge as a program
    session        a Spark session for programs

PySpark imports this package at every look-up of a data source, so nothing below is imported before
it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark_streamlake.bridge import BridgeOptions, bridge_query
    from pyspark_streamlake.program import BridgeEvent, run_bridge
    from pyspark_streamlake.sink import ForeachBatchSink, Written

__all__ = [
    "BridgeEvent",
    "BridgeOptions",
    "ForeachBatchSink",
    "Written",
    "bridge_query",
    "run_bridge",
]

_HOMES = {
    "BridgeEvent": "pyspark_streamlake.program",
    "BridgeOptions": "pyspark_streamlake.bridge",
    "ForeachBatchSink": "pyspark_streamlake.sink",
    "Written": "pyspark_streamlake.sink",
    "bridge_query": "pyspark_streamlake.bridge",
    "run_bridge": "pyspark_streamlake.program",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
