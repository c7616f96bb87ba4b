"""What a consumer group has dealt us."""

from __future__ import annotations

from collections.abc import Iterable

from streamlake_kafka.parts import Part


class GroupShare:
    """The parts that are ours, and whether that has just changed.

    librdkafka calls ``on_assign`` and ``on_revoke`` in the middle of reading; what follows from it
    is left to whoever asks ``take_change`` after the read.
    """

    def __init__(self) -> None:
        self.parts: frozenset[Part] = frozenset()
        """What the group has dealt us."""
        self.is_settled = False
        """Whether the group has dealt, and not merely taken everything to deal anew."""
        self._is_changed = False

    def on_assign(self, parts: Iterable[Part]) -> None:
        """These are ours too."""
        self.parts |= frozenset(parts)
        self.is_settled = self._is_changed = True

    def on_revoke(self, parts: Iterable[Part]) -> None:
        """These are ours no more."""
        self.parts -= frozenset(parts)
        self.is_settled = bool(self.parts)
        self._is_changed = True

    def take_change(self) -> bool:
        """Whether anything changed since this was asked last."""
        changed, self._is_changed = self._is_changed, False
        return changed
