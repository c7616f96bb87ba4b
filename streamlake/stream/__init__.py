"""Streams of batches into and out of tables (floor 5).

    offset         a position in a table's stream
    contracts      Batch, and what a Source and a Sink promise
    options        how a tail behaves
    table_source   a table as a Source
    table_sink     a table as a Sink
    batching       merging small batches
    pipeline       from a Source to a Sink
"""

from streamlake.stream.batching import Batching
from streamlake.stream.contracts import Batch, Positions, Sink, Source, TendedSink
from streamlake.stream.offset import Offset
from streamlake.stream.options import TailOptions
from streamlake.stream.pipeline import (
    EventKind,
    Pipeline,
    PipelineEvent,
    PipelineResult,
)
from streamlake.stream.table_sink import TableSink
from streamlake.stream.table_source import TableSource

__all__ = [
    "Batch",
    "Batching",
    "EventKind",
    "Offset",
    "Pipeline",
    "PipelineEvent",
    "PipelineResult",
    "Positions",
    "Sink",
    "Source",
    "TableSink",
    "TableSource",
    "TailOptions",
    "TendedSink",
]
