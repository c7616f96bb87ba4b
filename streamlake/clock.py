"""Time, randomness and identifiers: the one module that touches them (floor 0).

Everything else takes a Clock, so that the real code runs under a simulated one.
"""

from __future__ import annotations

import random
import time
import uuid
from typing import Protocol


class Clock(Protocol):
    """What the rest of streamlake may know of time and chance."""

    def now_ms(self) -> int:
        """Wall-clock time, in milliseconds since the Unix epoch (UTC)."""

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; never goes back."""

    def sleep(self, seconds: float) -> None:
        """Wait that long. May be woken early only by an exception."""

    def jitter(self) -> float:
        """A random factor in [0, 1), to spread retries."""

    def new_id(self) -> str:
        """A fresh random UUID in its canonical 36-character form."""


class SystemClock:
    """The machine's clock and random generator."""

    def now_ms(self) -> int:
        """Wall-clock time, in milliseconds since the Unix epoch (UTC)."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; never goes back."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait that long."""
        time.sleep(seconds)

    def jitter(self) -> float:
        """A random factor in [0, 1)."""
        return random.random()

    def new_id(self) -> str:
        """A fresh random UUID in its canonical 36-character form."""
        return str(uuid.uuid4())


SYSTEM_CLOCK: Clock = SystemClock()
