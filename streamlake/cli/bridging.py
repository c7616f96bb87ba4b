"""A bridge on either engine, with what it tells put into one form."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Literal

from streamlake import Batching, Pipeline, Table, TableNotFoundError, TableSink
from streamlake.cli.bridge_progress import ProgressLine
from streamlake.cli.engine import Engine
from streamlake.clock import Clock
from streamlake.stream import EventKind, PipelineEvent

if TYPE_CHECKING:
    from pyspark_streamlake import BridgeEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeWork:
    """What is carried where."""

    kafka: Mapping[str, str] = field(repr=False)
    """Settings of Kafka's client. May hold secrets."""
    topics: tuple[str, ...]
    table: str
    app_id: str
    storage_options: Mapping[str, str] = field(repr=False)
    start: Literal["earliest", "latest"]
    """Where partitions without a marker begin."""
    until_latest: bool
    max_rows: int
    """Of a commit, about."""
    linger_ms: int
    checkpoint: Path | None
    """Spark's."""
    spark_conf: Mapping[str, str] = field(repr=False)


def carry(work: BridgeWork, engine: Engine, progress: ProgressLine, *, clock: Clock) -> None:
    """Run on ``engine`` until the topics end or a signal says stop.

    Raises:
        StreamlakeError: The table or Kafka can't serve.
    """
    from streamlake.cli.lag import KafkaLag

    progress.lag = KafkaLag(
        work.kafka,
        work.topics,
        app_id=work.app_id,
        table=work.table,
        storage_options=work.storage_options,
    )
    if engine is Engine.SPARK:
        bridge_on_spark(work, progress, clock=clock)
    else:
        bridge_locally(work, progress, clock=clock)


def bridge_on_spark(work: BridgeWork, progress: ProgressLine, *, clock: Clock) -> None:
    """Run until the topics end or a signal says stop."""
    from pyspark_streamlake import BridgeOptions, run_bridge

    told = {"started": "Spark's query has started", "stopped": "stopped in good order"}

    def on_event(event: BridgeEvent) -> None:
        if event.written is not None:
            progress.committed(rows=event.written.rows, version=event.written.version)
        else:
            progress.tell(told.get(event.kind) or f"Kafka does not answer: {event.detail}")

    options = BridgeOptions(
        kafka=work.kafka,
        topics=work.topics,
        url=work.table,
        app_id=work.app_id,
        storage_options=work.storage_options,
        checkpoint=None if work.checkpoint is None else str(work.checkpoint),
        start=work.start,
        until_latest=work.until_latest,
        interval_s=work.linger_ms / 1000,
        max_offsets_per_trigger=work.max_rows,
        spark_conf=work.spark_conf,
    )
    run_bridge(options, on_event=on_event, clock=clock)


def bridge_locally(work: BridgeWork, progress: ProgressLine, *, clock: Clock) -> None:
    """Run until the topics end or a signal says stop."""
    from streamlake_kafka import KafkaSource, ReadLimits, kafka_schema

    source = KafkaSource(
        work.kafka,
        topics=work.topics,
        start=work.start,
        stop="latest" if work.until_latest else None,
        headers=_takes_headers(work),
        limits=ReadLimits(max_batch_rows=work.max_rows),
        clock=clock,
    )
    sink = TableSink(
        work.table,
        app_id=work.app_id,
        schema=kafka_schema(),
        storage_options=work.storage_options,
        clock=clock,
    )

    def on_event(event: PipelineEvent) -> None:
        if event.kind is EventKind.STORED and event.batch is not None:
            progress.committed(rows=event.batch.data.num_rows, version=event.version)

    pipeline = Pipeline(
        source,
        sink,
        batching=Batching(max_rows=work.max_rows, linger_ms=work.linger_ms),
        on_event=on_event,
        clock=clock,
    )
    with stopping(pipeline):
        pipeline.run()


def _takes_headers(work: BridgeWork) -> bool:
    """Whether the table has the column of headers, or will have it, when it is created."""
    try:
        table = Table.open(work.table, storage_options=work.storage_options)
    except TableNotFoundError:
        return True
    return "headers" in table.schema.names


@contextmanager
def stopping(pipeline: Pipeline) -> Iterator[None]:
    """Within the block SIGINT and SIGTERM end the pipeline in good order."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_number: int, _frame: FrameType | None) -> None:
        pipeline.stop()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
