"""What a sink can learn of the streaming query that calls it.

Spark's own objects are asked, through the gateway to its JVM: the id of the query among the local
properties of the thread, the query among the session's active ones, and in the plan of the running
batch the offsets of its sources.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from py4j.protocol import Py4JError  # type: ignore[import-untyped] # it has no types

import streamlake as sl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

QUERY_ID = "sql.streaming.queryId"
BATCH_ID = "streaming.sql.batchId"
"""Spark's names of the local properties."""

KafkaRanges: TypeAlias = Mapping[tuple[str, int], tuple[int | None, int]]
"""By topic and partition the first offset of a batch and the one after its last. No first offset:
the partition came into being since the batch before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """The streaming query that runs the batch at hand."""

    id: str
    """Kept in the checkpoint folder: the same after a restart, a new one without the folder."""
    run_id: str
    """Of this start of the query."""
    batch: str
    """Spark's number of the batch, whatever the sink is told."""
    execution: Any
    """Spark's StreamExecution."""
    active: Any
    """Spark's map of active executions, by the id of the query."""

    def is_active(self) -> bool:
        """Whether this very run still goes on."""
        try:
            found = self.active.get(self.execution.id())
        except (Py4JError, OSError):  # the session that ran it is gone
            return False
        return found is not None and found.runId().toString() == self.run_id


def running_query(df: DataFrame) -> Query:
    """The query whose ``foreachBatch`` handed out ``df``; call it on the thread that was called.

    Raises:
        InvalidInputError: Not inside of foreachBatch, or under Spark Connect.
    """
    session = getattr(df.sparkSession, "_jsparkSession", None)
    if session is None:
        raise sl.InvalidInputError(
            "ForeachBatchSink runs on the driver, and Spark Connect keeps Python away from it.",
            remedy="Run the query in a classic Spark session.",
        )
    context = df.sparkSession.sparkContext
    query_id, batch = (context.getLocalProperty(name) for name in (QUERY_ID, BATCH_ID))
    active = session.sharedState().activeStreamingQueries()
    jvm: Any = context._jvm  # noqa: SLF001 - the one way to the JVM
    execution = None if query_id is None else active.get(jvm.java.util.UUID.fromString(query_id))
    if query_id is None or batch is None or execution is None:
        raise sl.InvalidInputError(
            "ForeachBatchSink was called outside of a streaming query.",
            found=f"no {QUERY_ID} among the local properties of the thread",
            remedy="Hand it to df.writeStream.foreachBatch(...), or call it from the function that "
            "you hand over, on the same thread.",
        )
    run_id = execution.runId().toString()
    return Query(id=query_id, run_id=run_id, batch=batch, execution=execution, active=active)


def kafka_ranges(query: Query) -> KafkaRanges:
    """What the running batch reads of Kafka, by either Kafka source.

    Raises:
        InvalidInputError: The query reads no Kafka, or one partition through two sources.
    """
    ranges: dict[tuple[str, int], tuple[int | None, int]] = {}
    for start, end in _positions(query.execution.lastExecution().logical()):
        for part, last in end.items():
            if part in ranges:
                raise sl.InvalidInputError(
                    f"The query reads {part[0]}/{part[1]} through two Kafka sources.",
                    remedy='markers="kafka" needs one source a partition.',
                )
            ranges[part] = start.get(part), last
    if not ranges:
        raise sl.InvalidInputError(
            'markers="kafka" needs a query that reads Kafka.',
            remedy='Read with format "streamlake_kafka" or "kafka", or use markers="batch".',
        )
    return ranges


def _positions(plan: Any) -> Iterator[tuple[dict[tuple[str, int], int], ...]]:  # noqa: ANN401
    """Start and end of each Kafka source in the plan."""
    leaves = plan.collectLeaves()
    for leaf in (leaves.apply(number) for number in range(leaves.size())):
        if not leaf.getClass().getSimpleName().startswith("StreamingDataSourceV2"):
            continue
        both = leaf.startOffset(), leaf.endOffset()
        if all(offset.isDefined() for offset in both):
            parsed = [_kafka_offsets(offset.get().json()) for offset in both]
            if None not in parsed:
                yield tuple(offsets for offsets in parsed if offsets is not None)


def _kafka_offsets(text: str) -> dict[tuple[str, int], int] | None:
    """Offsets as both Kafka sources write them, ``{"topic": {"0": 5}}``; None of other sources."""
    try:
        nested = msgspec.json.decode(text, type=dict[str, dict[int, int]])
    except msgspec.DecodeError:
        return None
    return {(topic, part): nested[topic][part] for topic in nested for part in nested[topic]}
