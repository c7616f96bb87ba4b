"""A clock that stands still until it is told to move."""

from __future__ import annotations

import threading
from hashlib import sha256

_START_MS = 1_700_000_000_000


class ManualClock:
    """Time that moves only by ``sleep`` and ``advance``; ids and jitter that repeat every run.

    Safe between threads. A sleep returns at once, with the clock moved on.
    """

    def __init__(self, *, now_ms: int = _START_MS, seed: int = 0) -> None:
        """A clock that shows ``now_ms``.

        Args:
            now_ms: Wall-clock time to start from, in milliseconds since the Unix epoch.
            seed: Of the identifiers and the jitter: clocks of one seed give the same ones in the
                same order.
        """
        self.sleeps: list[float] = []
        """Each sleep that was asked for, in seconds."""
        self._start_ms = now_ms
        self._elapsed_s = 0.0
        self._seed = seed
        self._drawn = 0
        self._lock = threading.Lock()

    def now_ms(self) -> int:
        """Wall-clock time, in milliseconds since the Unix epoch (UTC)."""
        return self._start_ms + int(self._elapsed_s * 1000)

    def monotonic(self) -> float:
        """Seconds since this clock was made."""
        return self._elapsed_s

    def advance(self, seconds: float) -> None:
        """Move on."""
        with self._lock:
            self._elapsed_s += seconds

    def sleep(self, seconds: float) -> None:
        """Note the sleep, and move on by it."""
        with self._lock:
            self.sleeps.append(seconds)
            self._elapsed_s += max(seconds, 0.0)

    def jitter(self) -> float:
        """The next factor in [0, 1) of this seed."""
        return int(self._draw()[:13], 16) / 16**13

    def new_id(self) -> str:
        """The next identifier of this seed, in the form of a random UUID."""
        drawn = self._draw()
        return f"{drawn[:8]}-{drawn[8:12]}-4{drawn[13:16]}-8{drawn[17:20]}-{drawn[20:32]}"

    def _draw(self) -> str:
        """The next 64 hexadecimal digits of this seed."""
        with self._lock:
            self._drawn += 1
            return sha256(f"{self._seed}/{self._drawn}".encode()).hexdigest()
