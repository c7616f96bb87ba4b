"""``streamlake demo``: what is typed, and what is printed at the end."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from streamlake import SYSTEM_CLOCK, InvalidInputError, StreamError
from streamlake.cli import terminal
from streamlake.cli.engine import Engine, choose_engine
from streamlake.cli.options import AsJson, needing_extras
from streamlake.cli.signals import closing_on_sigterm

MAX_EMBEDDED_EVENTS = 100_000
"""The embedded Kafka keeps about 5 MB of each of its four partitions."""
OUTAGES_S = 30
"""For how long beyond ``--seconds`` orders flow: until the bridge is up, twice."""


def demo(
    *,
    engine: Annotated[
        Engine | None,
        typer.Option(
            help="Bridge with Spark, or in one process. Default: spark where Java and PySpark are.",
            show_default=False,
        ),
    ] = None,
    bootstrap_servers: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="A Kafka that runs already, in place of the embedded one.",
            show_default=False,
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=1, max=3600, help="How long orders flow once the bridge is up.")
    ] = 16,
    rate: Annotated[int, typer.Option(min=1, max=100_000, help="Orders a second.")] = 800,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--dir", help="A new folder for the table and the logs, kept.", show_default=False
        ),
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the folder of the table and the logs.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Watch orders flow from Kafka into a table and out, exactly once, through crashes.

    Example: `streamlake demo --engine local`
    """
    with needing_extras():
        from streamlake.cli.demo.run import Settings, run

    choice = choose_engine(engine)
    if bootstrap_servers is None:
        _refuse_more_than_embedded_kafka_keeps(seconds, rate)
    with _workplace(folder, keep=keep) as place:
        settings = Settings(
            engine=choice.engine,
            why_not_spark=choice.reason,
            bootstrap_servers=bootstrap_servers,
            seconds=seconds,
            rate=rate,
            folder=place,
        )
        with closing_on_sigterm():
            result = run(settings, clock=SYSTEM_CLOCK)
        if as_json:
            terminal.say_json(result.to_json())
        else:
            result.say()
            _say_what_next(place if keep or folder else None)
        if not result.verdict.holds:
            raise StreamError(
                "What came out is not what went in.",
                found=str(result.verdict.to_json()),
                remedy="See bridge.log, tailer.log and deliveries.jsonl in the demo's folder.",
            )


def _refuse_more_than_embedded_kafka_keeps(seconds: float, rate: int) -> None:
    events = (seconds + OUTAGES_S) * rate
    if events > MAX_EMBEDDED_EVENTS:
        raise InvalidInputError(
            "The embedded Kafka can't keep so many orders.",
            found=f"about {events:,.0f}; it keeps {MAX_EMBEDDED_EVENTS:,}",
            remedy="Lower --rate or --seconds, or give --bootstrap-servers.",
        )


@contextmanager
def _workplace(given: Path | None, *, keep: bool) -> Iterator[Path]:
    """A new folder, which stays if it was given, on request, and after an error."""
    if given is not None and given.exists() and (not given.is_dir() or any(given.iterdir())):
        raise InvalidInputError(
            "The demo's folder must be new or empty.",
            where=str(given),
            remedy="Name another --dir, or empty this one.",
        )
    if given is not None:
        given.mkdir(parents=True, exist_ok=True)
    place = Path(tempfile.mkdtemp(prefix="streamlake-demo-")) if given is None else given.resolve()
    keep = keep or given is not None
    try:
        yield place
    except Exception:
        keep = True
        terminal.note(f"The logs and the table are in {place}")
        raise
    finally:
        if not keep:
            shutil.rmtree(place, ignore_errors=True)


def _say_what_next(kept: Path | None) -> None:
    if kept is None:
        terminal.say("Next: streamlake demo --keep leaves you the table to look at.")
        return
    table = kept / "orders"
    terminal.say("Next, on the demo's table:")
    terminal.say(f"  streamlake history {table} --limit 5")
    terminal.say(f"  streamlake tail {table} --from earliest --until latest --max-rows 3")
