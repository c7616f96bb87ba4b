"""How far a bridge has come: live on a terminal, a line now and then in a pipe, or JSON."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rich.status import Status

from streamlake.cli import terminal
from streamlake.clock import Clock

PLAIN_EVERY_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What a bridge has done since it started."""

    rows: int = 0
    commits: int = 0
    version: int | None = None
    """Of the last commit."""
    lag: int | None = None
    """Messages that are in Kafka and not in the table yet, where that is known."""


class ProgressLine:
    """Tells a bridge's progress on stderr; or each commit on stdout as JSON. Thread-safe."""

    def __init__(self, *, clock: Clock, as_json: bool) -> None:
        self._clock = clock
        self._as_json = as_json
        self._console = terminal.stderr()
        self._lock = threading.Lock()
        self._start_s = clock.monotonic()
        self._told_s = self._start_s
        self._last = Progress()
        self._status: Status | None = None

    def __enter__(self) -> Self:
        if self._console.is_terminal and not self._as_json:
            self._status = self._console.status("starting")
            self._status.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._status is not None:
            self._status.stop()
        if not self._as_json:
            self._console.print(self._line(self._last), markup=False)

    def tell(self, event: str) -> None:
        """Something happened that is worth a line of its own."""
        with self._lock:
            if self._as_json:
                terminal.say_json({"event": event})
            else:
                self._console.print(event, markup=False)

    def committed(self, *, rows: int, version: int | None, lag: int | None = None) -> None:
        """One more commit."""
        with self._lock:
            self._last = Progress(
                rows=self._last.rows + rows,
                commits=self._last.commits + 1,
                version=version,
                lag=lag,
            )
            if self._as_json:
                told = {"event": "committed", "rows": rows, "version": version, "lag": lag}
                terminal.say_json(told)
            else:
                self._show()

    def _show(self) -> None:
        now_s = self._clock.monotonic()
        if self._status is not None:
            self._status.update(self._line(self._last))
        elif now_s - self._told_s >= PLAIN_EVERY_S:
            self._told_s = now_s
            self._console.print(self._line(self._last), markup=False)

    def _line(self, progress: Progress) -> str:
        elapsed_s = max(0.001, self._clock.monotonic() - self._start_s)
        version = "" if progress.version is None else f", version {progress.version}"
        lag = "" if progress.lag is None else f", {progress.lag:,} behind"
        return (
            f"{progress.rows:,} rows in {progress.commits:,} commits{version}{lag} "
            f"({progress.rows / elapsed_s:,.0f} rows/s)"
        )
