"""How the demo looks while it runs: live on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

from collections import deque
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table as Grid
from rich.text import Text

from streamlake.cli.demo.figures import Figures, Latency

PLAIN_EVERY_S = 2.0
SHOWN_EVENTS = 12
REFRESH_PER_S = 5


class View:
    """Shows figures and tells events, on stderr."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._console = Console(stderr=True, highlight=False)
        self._events: deque[str] = deque(maxlen=SHOWN_EVENTS)
        self._figures: Figures | None = None
        self._next_line_s = 0.0
        self._live: Live | None = None

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live = Live(console=self._console, refresh_per_second=REFRESH_PER_S)
            self._live.__enter__()
        else:
            self._console.print(self._title, markup=False, soft_wrap=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.__exit__(kind, error, trace)

    def tell(self, event: str) -> None:
        """Something happened."""
        at_s = self._figures.elapsed_s if self._figures else 0.0
        line = f"{at_s:5.1f} s  {event}"
        self._events.append(line)
        if self._live is None:
            self._console.print(line, markup=False, soft_wrap=True)
        else:
            self._live.update(self._drawn())

    def show(self, figures: Figures) -> None:
        """The figures as they are now."""
        self._figures = figures
        if self._live is not None:
            self._live.update(self._drawn())
        elif figures.elapsed_s >= self._next_line_s:
            self._next_line_s = figures.elapsed_s + PLAIN_EVERY_S
            self._console.print(plain_line(figures), markup=False, soft_wrap=True)

    def _drawn(self) -> Group:
        parts: list[RenderableType] = [Text(self._title, style="bold"), Text()]
        if self._figures is not None:
            parts += [_counts(self._figures), Text(), _latencies(self._figures), Text()]
        return Group(*parts, *(Text(line, style="cyan") for line in self._events))


def _counts(now: Figures) -> Grid:
    grid = Grid.grid(padding=(0, 4))
    grid.add_row("produced", "committed", "delivered", "commits", "files", style="dim")
    counts = (now.produced, now.committed, now.delivered, now.commits, now.files)
    grid.add_row(*(f"{count:,}" for count in counts), style="bold")
    return grid


def _latencies(now: Figures) -> Grid:
    grid = Grid.grid(padding=(0, 4))
    for name, latency in (("event to delivery", now.end_to_end), ("commit to delivery", now.bus)):
        grid.add_row(
            name, f"p50 {_milliseconds(latency.p50_ms)}", f"p99 {_milliseconds(latency.p99_ms)}"
        )
    return grid


def plain_line(figures: Figures) -> str:
    """The figures as one line."""
    parts = [
        f"produced {figures.produced:,}",
        f"committed {figures.committed:,}",
        f"delivered {figures.delivered:,}",
        f"commits {figures.commits:,}",
        f"files {figures.files:,}",
    ]
    if figures.delivered:
        parts.append(f"event to delivery {told(figures.end_to_end)}")
        parts.append(f"commit to delivery {told(figures.bus)}")
    return f"{figures.elapsed_s:5.1f} s  " + " | ".join(parts)


def told(latency: Latency) -> str:
    """A latency for reading."""
    return f"p50 {_milliseconds(latency.p50_ms)}, p99 {_milliseconds(latency.p99_ms)}"


def _milliseconds(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f} ms"
