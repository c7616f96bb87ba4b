"""How far a bridge has come: live on a terminal, a line now and then in a pipe, or JSON."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

from rich.status import Status

from streamlake.cli import terminal
from streamlake.cli.notices import heard_by
from streamlake.clock import Clock

LIVE_EVERY_S = 0.5
PLAIN_EVERY_S = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What a bridge has done since it started."""

    rows: int = 0
    commits: int = 0
    version: int | None = None
    """Of the last commit."""
    behind: int | None = None
    """Messages that are in Kafka and not in the table yet, where that is known."""

    def to_json(self) -> dict[str, Any]:
        """As a script reads it."""
        return {
            "event": "progress",
            "rows": self.rows,
            "commits": self.commits,
            "version": self.version,
            "behind": self.behind,
        }


class ProgressLine:
    """Tells a bridge's progress from enter to exit, on a thread of its own.

    On stderr, or as JSON lines on stdout. Warnings that are logged meanwhile are told the same way.
    """

    def __init__(self, *, clock: Clock, as_json: bool) -> None:
        self._clock = clock
        self._as_json = as_json
        self._console = terminal.stderr()
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="progress", daemon=True)
        self._start_s = clock.monotonic()
        self._now = Progress()
        self._told = Progress()
        self._status: Status | None = None
        self._open = ExitStack()
        self.lag: Callable[[], int | None] = lambda: None
        """Asked for ``behind``, on the thread."""

    def __enter__(self) -> Self:
        self._open.enter_context(heard_by(self.tell))
        if self._console.is_terminal and not self._as_json:
            self._status = self._open.enter_context(self._console.status("starting"))
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()
        self._thread.join()
        self._open.close()
        self._now = replace(self._now, behind=None)  # nobody asks any more
        self._show()

    def tell(self, event: str) -> None:
        """Something happened that is worth a line of its own. Any thread may tell."""
        with self._lock:
            if self._as_json:
                terminal.say_json({"event": "note", "text": event})
            else:
                self._console.print(event, markup=False)

    def committed(self, *, rows: int, version: int | None) -> None:
        """One more commit. Any thread may tell."""
        with self._lock:
            done = self._now
            self._now = replace(
                done, rows=done.rows + rows, commits=done.commits + 1, version=version
            )

    def _run(self) -> None:
        pause_s = PLAIN_EVERY_S if self._status is None else LIVE_EVERY_S
        while not self._done.wait(pause_s):
            behind = self.lag()
            with self._lock:
                self._now = replace(self._now, behind=behind)
            self._show()

    def _show(self) -> None:
        """Say how far it is, where anything moved since it was said last."""
        with self._lock:
            if self._status is not None and not self._done.is_set():
                self._status.update(self._line())
            elif self._now != self._told:
                self._told = self._now
                if self._as_json:
                    terminal.say_json(self._now.to_json())
                else:
                    self._console.print(self._line(), markup=False)

    def _line(self) -> str:
        now = self._now
        elapsed_s = max(0.001, self._clock.monotonic() - self._start_s)
        version = "" if now.version is None else f", version {now.version}"
        behind = "" if now.behind is None else f", {now.behind:,} behind"
        return (
            f"{now.rows:,} rows in {now.commits:,} commits{version}{behind} "
            f"({now.rows / elapsed_s:,.0f} rows/s)"
        )
