"""Merging small batches into larger ones: each commit costs the same, whatever it holds."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from streamlake.arguments import check_integer
from streamlake.stream.contracts import Batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Batching:
    """When a Pipeline stores what it has collected: at the first bound that is reached.

    A batch of the source is never cut, so that a bound may be passed by one batch. One that comes
    without rows while nothing waits is stored at once: a source tells a position so that it is
    stored.
    """

    max_rows: int = 100_000
    max_bytes: int = 64 * 2**20
    """Of Arrow data in memory."""
    linger_ms: int = 0
    """How long the first batch may wait for others. 0 waits for none: every batch is stored as it
    comes."""

    def __post_init__(self) -> None:
        check_integer("max_rows", self.max_rows, least=1)
        check_integer("max_bytes", self.max_bytes, least=1)
        check_integer("linger_ms", self.linger_ms, least=0)


class Collector:
    """Batches of a source that wait to be stored as one. Not thread-safe."""

    def __init__(self, batching: Batching) -> None:
        self._batching = batching
        self._batches: list[Batch] = []
        self._rows = 0
        self._bytes = 0
        self._due_s = 0.0

    def __bool__(self) -> bool:
        return bool(self._batches)

    def fits(self, batch: Batch) -> bool:
        """Whether ``batch`` can be merged with what waits: the same columns."""
        return not self._batches or self._batches[0].data.schema.equals(batch.data.schema)

    def add(self, batch: Batch, now_s: float, *, lingers: bool = True) -> None:
        """Collect one more batch, which ``fits``; ``now_s`` on the monotonic clock.

        A first one that does not linger is due at once.
        """
        if not self._batches:
            self._due_s = now_s + (self._batching.linger_ms / 1000 if lingers else 0)
        self._batches.append(batch)
        self._rows += batch.data.num_rows
        self._bytes += batch.data.nbytes

    def is_due(self, now_s: float) -> bool:
        """Whether what waits has reached a bound."""
        bounds = self._batching
        is_full = self._rows >= bounds.max_rows or self._bytes >= bounds.max_bytes
        return bool(self._batches) and (is_full or now_s >= self._due_s)

    def take(self) -> Batch:
        """What waits, as one batch; nothing waits afterwards."""
        merged = merge(self._batches)
        self.clear()
        return merged

    def clear(self) -> None:
        """Forget what waits."""
        self._batches = []
        self._rows = self._bytes = 0


def merge(batches: list[Batch]) -> Batch:
    """One batch: the rows of all, in order; of each position the highest, of the rest the last."""
    if len(batches) == 1:
        return batches[0]
    positions: dict[str, int] = {}
    for batch in batches:
        for name, position in batch.positions.items():
            positions[name] = max(position, positions.get(name, position))
    data = pa.concat_tables([batch.data for batch in batches])
    return replace(batches[-1], data=data, positions=positions)
