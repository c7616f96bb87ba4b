"""Bounds of what a KafkaSource reads and waits for."""

from __future__ import annotations

from dataclasses import dataclass

import streamlake as sl

FIRST_CHUNK_ROWS = 500
CHUNK_ROWS = 10_000
"""Messages taken from librdkafka at once: enough to be fast, few enough to bound memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimits:
    """Bounds of a KafkaSource, in rows, bytes and seconds."""

    max_batch_rows: int = 100_000
    """The most rows of a batch."""
    max_batch_bytes: int = 64 * 2**20
    """A batch is handed on when its columns reach this size; one message may be larger."""
    linger_s: float = 0.02
    """How long a batch that has rows waits for more; what is there is taken in any case."""
    poll_timeout_s: float = 0.5
    """How long the source waits for a first row before it says that there is none; below 1."""
    connect_timeout_s: float = 30.0
    """How long ``open`` waits for brokers that do not answer."""
    max_outage_s: float | None = None
    """How long brokers may be away after that; None: as long as it lasts, with warnings."""
    discovery_interval_s: float = 30.0
    """How often the source looks for new partitions, and whether the brokers are there."""

    def __post_init__(self) -> None:
        """Refuse bounds that let nothing through.

        Raises:
            InvalidInputError: One is not positive.
        """
        wanted = ("max_batch_rows", "max_batch_bytes", "poll_timeout_s", "connect_timeout_s")
        bad = [f"{name}={getattr(self, name)}" for name in wanted if getattr(self, name) <= 0]
        if bad or self.linger_s < 0:
            raise sl.InvalidInputError(
                "The bounds of a KafkaSource must be positive.",
                found=", ".join(bad) or f"linger_s={self.linger_s}",
                remedy="Leave them out for the defaults.",
            )

    def chunk_rows(self, rows: int, size: int) -> int:
        """How many messages to take next, so that a batch of large ones stays within its bytes.

        Args:
            rows: The rows that the batch has.
            size: Their bytes.
        """
        if not rows:
            return min(FIRST_CHUNK_ROWS, self.max_batch_rows)
        fitting = (self.max_batch_bytes - size) * rows // size
        return max(1, min(CHUNK_ROWS, self.max_batch_rows - rows, fitting))
