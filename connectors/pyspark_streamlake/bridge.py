"""Kafka topics into a table with Spark: a whole query, and the program around it.

The table's markers say where to go on. Spark's checkpoint folder is a convenience: without it, or
with one that is behind, nothing is lost or repeated; one that is ahead of the table is refused.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from pyspark.errors import StreamingQueryException

import streamlake as sl
from pyspark_streamlake.failures import typed_error
from pyspark_streamlake.session import local_session, stop_signals
from pyspark_streamlake.sink import ForeachBatchSink, Written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

HEADERS = "headers"
WAIT_S = 0.2
"""How often a running bridge looks for a signal to stop."""
AWAY_TRIES = 20
"""How often in a row the bridge is started again while Kafka does not answer."""
AWAY_WAIT_S = 1.0
"""The first wait between; each next one is twice as long."""
LONGEST_AWAY_WAIT_S = 30.0
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
    until_latest: bool = False
    """Whether to end where the topics ended at the start."""
    interval_s: float = 0.0
    """The time from the start of a batch to the start of the next, at least."""
    max_offsets_per_trigger: int | None = None
    spark_conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Further settings of a Spark session that the bridge makes, such as ``spark.master``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeEvent:
    """What a running bridge tells."""

    kind: Literal["started", "committed", "away", "stopped"]
    batch_id: int | None = None
    written: Written | None = None
    """Of a commit."""
    detail: str = ""
    """Why Kafka is taken to be away."""


def bridge_query(
    spark: SparkSession,
    options: BridgeOptions,
    *,
    checkpoint: str,
    on_commit: Callable[[int, Written], None] = lambda _batch_id, _written: None,
) -> StreamingQuery:
    """Start a query that carries the topics into the table, from where the table's markers are.

    Delivery: exactly once, whatever becomes of the checkpoint folder.

    Args:
        spark: A classic session.
        options: What is carried where.
        checkpoint: The folder for Spark's own record.
        on_commit: Called with the batch's id and what was written, on another thread.

    Raises:
        TopicNotFoundError: A topic does not exist.
        SourceUnavailableError: No broker answers.
        TableError: The table can't be written.
    """
    table = _open_or_create(options)
    sink = ForeachBatchSink(
        options.url,
        app_id=options.app_id,
        markers="kafka",
        kafka=options.kafka,
        topics=options.topics,
        storage_options=options.storage_options,
    )
    source = {
        "subscribe": ",".join(options.topics),
        "startingOffsets": sink.starting_offsets(),
        "includeHeaders": str(HEADERS in table.schema.names).lower(),
        "kafkaConsumer.pollTimeoutMs": str(POLL_TIMEOUT_MS),
        **{f"kafka.{name}": value for name, value in options.kafka.items()},
    }
    if options.max_offsets_per_trigger is not None:
        source["maxOffsetsPerTrigger"] = str(options.max_offsets_per_trigger)

    def write(df: DataFrame, batch_id: int) -> None:
        written = sink(df, batch_id)
        if written is not None:
            on_commit(batch_id, written)

    rows = spark.readStream.format("streamlake_kafka").options(**source).load()
    writer = rows.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint)
    if options.until_latest:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{round(options.interval_s * 1000)} milliseconds").start()


def run_bridge(
    options: BridgeOptions,
    *,
    on_event: Callable[[BridgeEvent], None] = lambda _event: None,
    clock: sl.Clock = sl.SYSTEM_CLOCK,
) -> None:
    """Carry the topics into the table until they end or the process is told to stop.

    Makes a Spark session of its own; ``spark.master`` is that of ``spark_conf``, of the environment
    variable SPARK_MASTER, or ``local[*]``. SIGINT and SIGTERM stop it in good order. While Kafka
    does not answer it starts the query again, and tells.

    Args:
        options: What is carried where.
        on_event: Told of what happens; commits are told on another thread.
        clock: Measures the waits.

    Raises:
        StreamlakeError: As ``bridge_query``, and what the query failed with.
        SourceUnavailableError: Kafka did not answer ``AWAY_TRIES`` times in a row.
    """
    with _checkpoint(options) as checkpoint, local_session(options.spark_conf) as spark:
        bridge = _Bridge(spark, options, checkpoint, on_event)
        with stop_signals() as is_told:
            _keep_running(bridge, is_told, clock)
    on_event(BridgeEvent(kind="stopped"))


class _Bridge:
    """The program's side of its query."""

    def __init__(
        self,
        spark: SparkSession,
        options: BridgeOptions,
        checkpoint: str,
        on_event: Callable[[BridgeEvent], None],
    ) -> None:
        self._spark = spark
        self._options = options
        self._checkpoint = checkpoint
        self._on_event = on_event
        self.has_committed = False

    def run(self, is_told: Callable[[], bool]) -> None:
        """Start the query and wait for its end, or for a signal."""
        self.has_committed = False
        query = bridge_query(
            self._spark, self._options, checkpoint=self._checkpoint, on_commit=self._committed
        )
        self._on_event(BridgeEvent(kind="started"))
        try:
            while not query.awaitTermination(WAIT_S):  # type: ignore[arg-type] # fractions too
                if is_told():
                    break
        except StreamingQueryException as error:
            raise typed_error(str(error)) or error from error
        finally:
            query.stop()

    def tell_away(self, error: sl.SourceUnavailableError) -> None:
        """Tell that Kafka does not answer."""
        self._on_event(BridgeEvent(kind="away", detail=str(error)))

    def _committed(self, batch_id: int, written: Written) -> None:
        self.has_committed = True
        self._on_event(BridgeEvent(kind="committed", batch_id=batch_id, written=written))


def _keep_running(bridge: _Bridge, is_told: Callable[[], bool], clock: sl.Clock) -> None:
    """Run, and run again while Kafka is away."""
    tries = 0
    while True:
        try:
            return bridge.run(is_told)
        except sl.SourceUnavailableError as error:
            tries = 1 if bridge.has_committed else tries + 1
            if tries >= AWAY_TRIES:
                raise
            bridge.tell_away(error)
        wait_until = clock.monotonic() + min(AWAY_WAIT_S * 2 ** (tries - 1), LONGEST_AWAY_WAIT_S)
        while clock.monotonic() < wait_until:
            if is_told():
                return None
            clock.sleep(WAIT_S)


def _open_or_create(options: BridgeOptions) -> sl.Table:
    from streamlake_kafka.schema import kafka_schema  # noqa: PLC0415 (needs confluent-kafka)

    try:
        return sl.Table.open(options.url, storage_options=options.storage_options)
    except sl.TableNotFoundError:
        pass
    try:
        return sl.Table.create(
            options.url, schema=kafka_schema(), storage_options=options.storage_options
        )
    except sl.TableExistsError:
        return sl.Table.open(options.url, storage_options=options.storage_options)


@contextmanager
def _checkpoint(options: BridgeOptions) -> Iterator[str]:
    if options.checkpoint is not None:
        yield options.checkpoint
        return
    with tempfile.TemporaryDirectory(prefix="streamlake-bridge-") as folder:
        yield folder
