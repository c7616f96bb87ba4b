"""Kafka topics into a table with Spark, as one query.

The table's markers say where to go on. Spark's checkpoint folder is a convenience: without it, or
with one that is behind, nothing is lost or repeated; one that is ahead of the table is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import streamlake as sl
from pyspark_streamlake.kafka_markers import marker_key, stored_markers
from pyspark_streamlake.sink import ForeachBatchSink, Written
from pyspark_streamlake.tables import open_or_create

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

HEADERS = "headers"
POLL_TIMEOUT_MS = 60_000
"""How long one start of the query waits for Kafka."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeOptions:
    """What is carried where."""

    kafka: Mapping[str, str] = field(repr=False)
    """Settings of librdkafka; ``bootstrap.servers`` at least. May hold secrets."""
    topics: tuple[str, ...]
    url: str
    """The table's location; a missing table is created with the columns of a Kafka message."""
    app_id: str
    """Whose markers the table keeps: one for each bridge, kept for life."""
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    checkpoint: str | None = None
    """Spark's checkpoint folder; None for one that is removed in the end."""
    start: Literal["earliest", "latest"] = "earliest"
    """Where partitions begin of which the table has nothing yet. The latest is noted in the table
    before anything is read, so that a crash does not move it; once the table has a marker of a
    topic, its partitions without one (they were empty, or were added since) begin at their
    earliest. Of a topic that is wholly empty nothing is noted: until its first row is stored, the
    latest is found anew at each start."""
    until_latest: bool = False
    """Whether to end where the topics ended at the start."""
    interval_s: float = 0.0
    """The time from the start of a batch to the start of the next, at least."""
    max_offsets_per_trigger: int | None = None
    spark_conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Further settings of a Spark session that the bridge makes, such as ``spark.master``."""


def bridge_query(
    spark: SparkSession,
    options: BridgeOptions,
    *,
    checkpoint: str,
    on_commit: Callable[[int, Written], None] = lambda _batch_id, _written: None,
    gate: AbstractContextManager[object] | None = None,
) -> StreamingQuery:
    """Start a query that carries the topics into the table, from where the table's markers are.

    Delivery: exactly once, whatever becomes of the checkpoint folder.

    Args:
        spark: A classic session.
        options: What is carried where.
        checkpoint: The folder for Spark's own record.
        on_commit: Called with the batch's id and what was written, on another thread.
        gate: Entered by that thread around the writing of each batch.

    Raises:
        TopicNotFoundError: A topic does not exist.
        SourceUnavailableError: No broker answers.
        TableError: The table can't be written.
    """
    from streamlake_kafka import kafka_schema  # noqa: PLC0415 (needs confluent-kafka)

    table = open_or_create(
        options.url, schema=kafka_schema, storage_options=options.storage_options
    )
    if options.start == "latest":
        _note_latest(table, options)
    sink = ForeachBatchSink(
        options.url,
        app_id=options.app_id,
        markers="kafka",
        kafka=options.kafka,
        topics=options.topics,
        storage_options=options.storage_options,
    )
    source = _source_options(options, table, starting_offsets=sink.starting_offsets())

    def write(df: DataFrame, batch_id: int) -> None:
        with gate or nullcontext():
            written = sink(df, batch_id)
        if written is not None:
            on_commit(batch_id, written)

    rows = spark.readStream.format("streamlake_kafka").options(**source).load()
    writer = rows.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint)
    if options.until_latest:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{round(options.interval_s * 1000)} milliseconds").start()


def _source_options(
    options: BridgeOptions, table: sl.Table, *, starting_offsets: str
) -> dict[str, str]:
    given = {
        "subscribe": ",".join(options.topics),
        "startingOffsets": starting_offsets,
        "includeHeaders": str(HEADERS in table.schema.names).lower(),
        "kafkaConsumer.pollTimeoutMs": str(POLL_TIMEOUT_MS),
        **{f"kafka.{name}": value for name, value in options.kafka.items()},
    }
    if options.max_offsets_per_trigger is not None:
        given["maxOffsetsPerTrigger"] = str(options.max_offsets_per_trigger)
    return given


def _note_latest(table: sl.Table, options: BridgeOptions) -> None:
    """Set markers right before the end of the partitions of topics that have none."""
    from pyspark_streamlake.kafka_probe import KafkaProbe  # noqa: PLC0415 (needs confluent-kafka)

    known = {topic for topic, _ in stored_markers(table, options.app_id)}
    topics = [topic for topic in options.topics if topic not in known]
    ends = KafkaProbe(options.kafka).latest(topics) if topics else {}
    unknown = {marker_key(options.app_id, tp): end - 1 for tp, end in ends.items() if end > 0}
    if unknown:
        table.commit_staged(
            (),
            txn=[sl.SetTransaction(key, version) for key, version in unknown.items()],
            expect=dict.fromkeys(unknown),
            operation="STREAMING UPDATE",
        )
