"""One run of the demo: everything set up, played, read back and judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamlake import Table
from streamlake.cli import terminal
from streamlake.cli.demo.children import Child
from streamlake.cli.demo.figures import Counter, Latency, bus, end_to_end
from streamlake.cli.demo.kafka import OrderStream
from streamlake.cli.demo.orders import identify
from streamlake.cli.demo.scenario import Scenario, Stage
from streamlake.cli.demo.verdict import Verdict, events_of, judge
from streamlake.cli.demo.view import View, told
from streamlake.cli.engine import Engine
from streamlake.clock import Clock
from streamlake_kafka import kafka_schema

APP_ID = "orders-demo"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a run is to be."""

    engine: Engine
    why_not_spark: str
    """What Spark would need, where the engine is local for want of it; else empty."""
    bootstrap_servers: str | None
    """None starts an embedded Kafka."""
    seconds: float
    rate: int
    """Orders a second."""
    folder: Path
    """Empty; gets the table, Spark's checkpoint folder and the logs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came of a run."""

    verdict: Verdict
    engine: Engine
    elapsed_s: float
    commits: int
    files: int
    end_to_end: Latency
    """Of events that did not have to wait for the bridge to start."""
    end_to_end_with_outages: Latency
    """Of all: what was created while it started, or was dead, had to wait for it."""
    bus: Latency

    def to_json(self) -> dict[str, Any]:
        """The verdict and what was measured, flat."""
        return {
            **self.verdict.to_json(),
            "engine": self.engine.value,
            "elapsed_s": round(self.elapsed_s, 1),
            "commits": self.commits,
            "files": self.files,
            "event_to_delivery_p50_ms": self.end_to_end.p50_ms,
            "event_to_delivery_p99_ms": self.end_to_end.p99_ms,
            "event_to_delivery_with_outages_p99_ms": self.end_to_end_with_outages.p99_ms,
            "commit_to_delivery_p50_ms": self.bus.p50_ms,
            "commit_to_delivery_p99_ms": self.bus.p99_ms,
        }

    def say(self) -> None:
        """Print it for people."""
        verdict = self.verdict
        lines = [("produced", verdict.produced), ("in table", verdict.in_table)]
        lines += [("delivered", verdict.delivered), ("lost", verdict.lost)]
        lines += [("repeated", verdict.repeated), ("out of order", verdict.out_of_order)]
        if verdict.unknown:
            lines.append(("unknown", verdict.unknown))
        for name, count in lines:
            terminal.say(f"{name + ':':<14}{count:>10,}")
        terminal.say(
            f"event to delivery:  {told(self.end_to_end)}; with the events that had to wait "
            f"for the bridge to start: {told(self.end_to_end_with_outages)}"
        )
        terminal.say(f"commit to delivery: {told(self.bus)}")
        if verdict.holds:
            terminal.say_good(f"Exactly once, in order: it holds, in {self.elapsed_s:.0f} s.")
        else:
            terminal.say_bad("It does not hold.")


def run(settings: Settings, *, clock: Clock) -> Result:
    """Play the demo and judge it. Its children are gone when it returns or raises.

    Raises:
        SourceError: Kafka can't be reached, or refused an order.
        StreamError: A child ended of itself, or nothing came through in time.
    """
    start_s = clock.monotonic()
    table = Table.create(settings.folder / "orders", schema=kafka_schema())
    counter = Counter(table, settings.folder / "deliveries.jsonl")
    with (
        View(_title(settings)) as view,
        OrderStream(
            clock=clock, rate=settings.rate, bootstrap_servers=settings.bootstrap_servers
        ) as orders,
    ):
        stage = Stage(
            clock=clock,
            orders=orders,
            bridge=Child("bridge", _bridge(settings, orders), log=settings.folder / "bridge.log"),
            tailer=Child("tailer", _tailer(settings), log=settings.folder / "tailer.log"),
            table=table,
            counter=counter,
            view=view,
            spark_checkpoint=_checkpoint(settings) if settings.engine is Engine.SPARK else None,
        )
        scenario = Scenario(stage, seconds=settings.seconds)
        try:
            scenario.play()
        finally:
            stage.tailer.stop()
            stage.bridge.stop()
        final = counter.look(elapsed_s=clock.monotonic() - start_s, produced=orders.acknowledged)
    rows = table.snapshot().to_arrow(columns=["value"])
    return Result(
        verdict=judge(orders.orders.placed, identify(rows["value"]), events_of(counter.deliveries)),
        engine=settings.engine,
        elapsed_s=final.elapsed_s,
        commits=final.commits,
        files=final.files,
        end_to_end=end_to_end(counter.deliveries, without=scenario.outages),
        end_to_end_with_outages=end_to_end(counter.deliveries),
        bus=bus(counter.deliveries),
    )


def _title(settings: Settings) -> str:
    kafka = settings.bootstrap_servers or "an embedded Kafka"
    if settings.engine is Engine.SPARK:
        return f"Orders from {kafka} through Spark into a table and out to a tailer"
    title = f"Orders from {kafka} through one process into a table and out to a tailer"
    if not settings.why_not_spark:
        return title
    return f"Without Spark: {settings.why_not_spark}\n{title}"


def _checkpoint(settings: Settings) -> Path:
    return settings.folder / "spark-checkpoint"


def _bridge(settings: Settings, orders: OrderStream) -> Sequence[str]:
    arguments = ["-m", "streamlake.cli", "bridge", "--engine", settings.engine.value]
    arguments += ["--bootstrap-servers", orders.bootstrap_servers, "--topic", orders.topic]
    arguments += ["--table", str(settings.folder / "orders"), "--app-id", APP_ID]
    if settings.bootstrap_servers is None:
        # the mock cluster answers a fetch when this time is over, not when there is something
        arguments += ["--kafka-config", "fetch.wait.max.ms=20"]
    if settings.engine is Engine.SPARK:
        arguments += ["--checkpoint", str(_checkpoint(settings))]
    return arguments


def _tailer(settings: Settings) -> Sequence[str]:
    folder = settings.folder
    arguments = ["-m", "streamlake.cli.demo.tailer"]
    return [*arguments, str(folder / "orders"), str(folder / "deliveries.jsonl")]
