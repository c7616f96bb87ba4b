"""The bridge as a program: a Spark session of its own, signals, brokers that are away."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import streamlake as sl
from pyspark_streamlake.bridge import BridgeOptions, bridge_query
from pyspark_streamlake.failures import typed_error
from pyspark_streamlake.session import local_session, stop_signals
from pyspark_streamlake.sink import Written

WAIT_S = 0.2
"""How often a running bridge looks for a signal to stop."""
AWAY_TRIES = 20
"""How often in a row the bridge is started again while Kafka does not answer."""
AWAY_WAIT_S = 1.0
"""The first wait between; each next one is twice as long."""
LONGEST_AWAY_WAIT_S = 30.0
STOP_WAIT_S = 8.0
"""How long a bridge that is told to stop waits for the batch at hand before it interrupts it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeEvent:
    """What a running bridge tells."""

    kind: Literal["started", "committed", "away", "stopped"]
    batch_id: int | None = None
    written: Written | None = None
    """Of a commit."""
    detail: str = ""
    """Why Kafka is taken to be away."""


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


class _Gate:
    """Lets batches through until it is closed; then none is cut short, and none begins."""

    def __init__(self) -> None:
        self._inside = threading.Lock()
        self._closed = False

    def close(self, timeout_s: float) -> None:
        """Close, and wait for the batch inside."""
        self._closed = True
        if self._inside.acquire(timeout=timeout_s):
            self._inside.release()

    def __enter__(self) -> None:
        self._inside.acquire()
        if self._closed:
            self._inside.release()
            raise InterruptedError("the bridge was told to stop")

    def __exit__(self, *_: object) -> None:
        self._inside.release()


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
        self._gate = _Gate()
        self.has_committed = False

    def run(self, is_told: Callable[[], bool]) -> None:
        """Start the query and wait for its end, or for a signal."""
        self.has_committed = False
        query = bridge_query(
            self._spark,
            self._options,
            checkpoint=self._checkpoint,
            on_commit=self._committed,
            gate=self._gate,
        )
        self._on_event(BridgeEvent(kind="started"))
        try:
            while not query.awaitTermination(WAIT_S):  # type: ignore[arg-type] # fractions too
                if is_told():
                    self._gate.close(STOP_WAIT_S)
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


@contextmanager
def _checkpoint(options: BridgeOptions) -> Iterator[str]:
    if options.checkpoint is not None:
        yield options.checkpoint
        return
    with tempfile.TemporaryDirectory(prefix="streamlake-bridge-") as folder:
        yield folder
