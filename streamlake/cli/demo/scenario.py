"""What happens in the demo, in order, and what is waited for."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from streamlake import SourceError, StreamError, Table
from streamlake.cli.demo.children import Child
from streamlake.cli.demo.figures import Counter, Figures, Outage
from streamlake.cli.demo.kafka import OrderStream
from streamlake.cli.demo.view import View
from streamlake.clock import Clock

START_TIMEOUT_S = 120
"""How long a JVM may take until the first rows come through."""
CATCH_UP_TIMEOUT_S = 60
TICK_S = 0.2
BEFORE_BRIDGE_DIES = 0.3
BEFORE_TAILER_DIES = 0.3
BEFORE_OPTIMIZE = 0.2
BEFORE_THE_END = 0.2
"""Shares of the time that orders flow while everybody is well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Who plays."""

    clock: Clock
    orders: OrderStream
    bridge: Child
    tailer: Child
    table: Table
    counter: Counter
    view: View
    spark_checkpoint: Path | None
    """Spark's folder of positions, to be lost on the way; None without Spark."""


class Scenario:
    """One run: traffic, a bridge and a tailer killed, an optimize under both, and the end of it."""

    def __init__(self, stage: Stage, *, seconds: float) -> None:
        self._stage = stage
        self._seconds = seconds
        self._start = stage.clock.monotonic()
        self._now = self._look()
        self.outages: list[Outage] = []
        """When the bridge was starting, or dead."""

    def play(self) -> None:
        """Let it happen; afterwards nothing is under way any more, and the children still run.

        Raises:
            SourceError: Kafka refused an order.
            StreamError: A child ended of itself, or nothing came through in time.
        """
        stage = self._stage
        stage.orders.start()
        stage.tailer.start()
        with self._outage():
            stage.bridge.start()
            stage.view.tell(f"orders flow into topic {stage.orders.topic}; the bridge starts")
            self._wait("the first orders", lambda now: now.delivered > 0, START_TIMEOUT_S)
        stage.view.tell("the first orders came through")
        self._flow(BEFORE_BRIDGE_DIES)
        self._lose_the_bridge()
        self._flow(BEFORE_TAILER_DIES)
        self._lose_the_tailer()
        self._flow(BEFORE_OPTIMIZE)
        self._optimize()
        self._flow(BEFORE_THE_END)
        self._catch_up()

    def _lose_the_bridge(self) -> None:
        stage = self._stage
        with self._outage():
            stage.bridge.kill()
            lost = "kill -9: the bridge"
            if stage.spark_checkpoint is not None:
                shutil.rmtree(stage.spark_checkpoint, ignore_errors=True)
                lost += ", and its Spark checkpoint folder is deleted"
            stage.view.tell(lost)
            before = self._look().delivered
            stage.bridge.start()
            self._wait("the bridge to go on", lambda now: now.delivered > before, START_TIMEOUT_S)
        stage.view.tell("the bridge goes on from the markers in the table")

    def _lose_the_tailer(self) -> None:
        stage = self._stage
        stage.tailer.kill()
        stage.view.tell("kill -9: the tailer")
        before = self._look().delivered
        stage.tailer.start()
        self._wait("the tailer to go on", lambda now: now.delivered > before, START_TIMEOUT_S)
        stage.view.tell("the tailer goes on from its saved Offset")

    def _optimize(self) -> None:
        result = self._stage.table.optimize()
        self._stage.view.tell(
            f"optimize: {result.files_removed:,} files became {result.files_added:,}, under both"
        )

    def _catch_up(self) -> None:
        stage = self._stage
        stage.orders.stop()
        stage.view.tell("no more orders; the bridge and the tailer catch up")
        total = stage.orders.acknowledged
        deadline_s = self._elapsed_s() + CATCH_UP_TIMEOUT_S
        while self._elapsed_s() < deadline_s:
            if self._now.committed >= total and self._now.delivered >= total:
                break  # whether each of them is there once, the verdict says
            self._tick()

    @contextmanager
    def _outage(self) -> Iterator[None]:
        """The bridge is away from here to the end of the block."""
        from_ms = self._stage.clock.now_ms()
        yield
        self.outages.append(Outage(from_ms=from_ms, to_ms=self._stage.clock.now_ms()))

    def _flow(self, share: float) -> None:
        at_s = self._elapsed_s() + self._seconds * share
        while self._elapsed_s() < at_s:
            self._tick()

    def _wait(self, what: str, until: Callable[[Figures], bool], limit_s: float) -> None:
        deadline_s = self._elapsed_s() + limit_s
        while not until(self._now):
            if self._elapsed_s() > deadline_s:
                raise StreamError(
                    f"Waited {limit_s:.0f} s for {what}.",
                    found=f"{self._now.committed} rows in the table, "
                    f"{self._now.delivered} delivered",
                    remedy="See bridge.log and tailer.log in the demo's folder.",
                )
            self._tick()

    def _tick(self) -> None:
        stage = self._stage
        stage.clock.sleep(TICK_S)
        for child in (stage.bridge, stage.tailer):
            reason = child.died()
            if reason is not None:
                raise StreamError(f"The {child.name} ended of itself.", found=reason)
        if stage.orders.failure is not None:
            raise SourceError(stage.orders.failure)
        stage.view.show(self._look())

    def _look(self) -> Figures:
        self._now = self._stage.counter.look(
            elapsed_s=self._elapsed_s(), produced=self._stage.orders.acknowledged
        )
        return self._now

    def _elapsed_s(self) -> float:
        return self._stage.clock.monotonic() - self._start
