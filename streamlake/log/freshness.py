"""How long ago the newest version was seen."""

from __future__ import annotations

from streamlake.clock import Clock
from streamlake.errors import InvalidInputError
from streamlake.log.head import Head
from streamlake.protocol import log_retention_ms

STALE_PART_OF_RETENTION = 10
"""A head or an attempt older than this part of the log retention is checked against the newest
checkpoint."""


class Freshness:
    """When a head was seen, by the wall clock and by the monotonic one."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.renew()

    def renew(self) -> None:
        """The head has been seen, or made, right now."""
        self._seen_ms = self._clock.now_ms()
        self._seen_s = self._clock.monotonic()

    def is_stale(self, head: Head) -> bool:
        """Whether log clean-up may have passed the head since it was seen.

        By the wall clock, also where that went back, and by the monotonic one: either may stand
        still.
        """
        elapsed_ms = self._clock.now_ms() - self._seen_ms
        elapsed_s = self._clock.monotonic() - self._seen_s
        allowed_ms = _retention_ms(head) / STALE_PART_OF_RETENTION
        return elapsed_ms < -allowed_ms or max(elapsed_ms, elapsed_s * 1000) > allowed_ms


def _retention_ms(head: Head) -> int:
    try:
        return log_retention_ms(head.metadata.configuration)
    except InvalidInputError:
        return log_retention_ms({})
