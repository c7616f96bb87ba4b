"""The parts of a Kafka source: one per topic and partition, and how far each was read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import streamlake as sl

GAP_DELAY_S = 10.0
"""How long positions that moved without rows wait for rows to travel with."""


class Part(NamedTuple):
    """One partition of one topic."""

    topic: str
    """The topic's name."""
    number: int
    """The partition, from 0."""

    @property
    def name(self) -> str:
        """``"<topic>/<partition>"``, the key of this part in Positions."""
        return f"{self.topic}/{self.number}"


def topics_of(names: Iterable[str]) -> frozenset[str]:
    """The topics of parts, by the parts' names."""
    return frozenset(name.rpartition("/")[0] for name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What a partition holds now, for a reader of committed messages."""

    low: int
    """The first offset that is still there."""
    high: int
    """One past the last offset that may be read; equal to ``low`` where there is nothing."""

    @property
    def text(self) -> str:
        """The span in words."""
        return f"offsets {self.low} to {self.high - 1}" if self.high > self.low else "no messages"


class Progress:
    """How far each part that we own was read, and how much of that was handed on.

    Positions are the highest offset accounted for: delivered, or passed over as a gap; -1 before
    offset 0.
    """

    def __init__(self, clock: sl.Clock) -> None:
        self._clock = clock
        self._read: dict[Part, int] = {}
        self._told: dict[Part, int] = {}
        self._noted: dict[Part, int] = {}
        self._due_at: float | None = None

    def read(self, part: Part) -> int | None:
        """The position of a part; None where we do not own it."""
        return self._read.get(part)

    def seat(self, part: Part, position: int, *, is_stored: bool, is_urgent: bool = False) -> None:
        """Own a part from a position on.

        Args:
            part: The part.
            position: Where it stands; reading goes on behind.
            is_stored: Whether the sink knows this position already.
            is_urgent: Whether the sink should learn it at once, rows or no rows.
        """
        self._read[part] = position
        self._told[part] = position if is_stored else -1
        if is_urgent and not is_stored:
            self._due_at = self._clock.monotonic()

    def note(self, positions: Mapping[Part, int]) -> None:
        """Have parts that others own told with ours, at once; replaces what was noted before."""
        self._noted = {part: at for part, at in positions.items() if at >= 0}
        if self._noted:
            self._due_at = self._clock.monotonic()

    def clear(self) -> None:
        """Own nothing."""
        self._read = {}
        self._told = {}
        self._noted = {}
        self._due_at = None

    def advance(self, part: Part, position: int) -> None:
        """Move a part's position; never back, and never that of a part that we do not own."""
        if position <= self._read.get(part, position):
            return
        self._read[part] = position
        if self._due_at is None:
            self._due_at = self._clock.monotonic() + GAP_DELAY_S

    def is_due(self) -> bool:
        """Whether positions waited long enough for rows to travel with."""
        return self._due_at is not None and self._clock.monotonic() >= self._due_at

    def tell(self) -> sl.Positions:
        """The positions that moved since they were last told, which this call does."""
        moved = {part: at for part, at in self._read.items() if at > self._told[part]}
        self._told.update(moved)
        noted, self._noted = self._noted, {}
        self._due_at = None
        return {part.name: at for part, at in (noted | moved).items()}

    def positions(self) -> dict[Part, int]:
        """The position of every part that we own."""
        return dict(self._read)
