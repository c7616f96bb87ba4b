"""A source and a sink in memory that keep their contracts, and show what was asked of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import streamlake as sl
from stream.builders import rows

PART = "topic/0"


class NumbersSource:
    """Hands on 0, 1, 2, ... in batches of the given sizes; a size of None is an idle moment.

    The position is the last number. Replayable.
    """

    def __init__(self, sizes: Sequence[int | None], *, part: str = PART) -> None:
        self.calls: list[str] = []
        self.acknowledged: list[int] = []
        self._sizes = list(sizes)
        self._part = part
        self._committed: Callable[[], sl.Positions] = dict
        self._next = 0

    def open(self, committed: Callable[[], sl.Positions]) -> None:
        self.calls.append("open")
        self._committed = committed
        self._next = self._committed().get(self._part, -1) + 1

    def batches(self) -> Iterator[sl.Batch | None]:
        self.calls.append("batches")
        end = sum(size or 0 for size in self._sizes)
        idle = iter(self._sizes)
        while self._next < end:
            size = next(idle, 1)
            if size is None:
                yield None
                continue
            numbers = range(self._next, min(self._next + size, end))
            self._next = numbers.stop
            yield sl.Batch(data=rows(*numbers), positions={self._part: numbers.stop - 1})

    def rewind(self) -> None:
        self.calls.append("rewind")
        self._next = self._committed().get(self._part, -1) + 1

    def acknowledge(self, batch: sl.Batch) -> None:
        self.acknowledged.append(batch.positions[self._part])

    def close(self) -> None:
        self.calls.append("close")


class ListSink:
    """Keeps batches in a list; raises the given errors at its first writes instead."""

    def __init__(self, errors: Sequence[Exception | None] = ()) -> None:
        self.calls: list[str] = []
        self.written: list[sl.Batch] = []
        self._errors = list(errors)

    def open(self) -> None:
        self.calls.append("open")

    def committed(self) -> sl.Positions:
        positions: dict[str, int] = {}
        for batch in self.written:
            positions.update(batch.positions)
        return positions

    def write(self, batch: sl.Batch) -> int | None:
        error = self._errors.pop(0) if self._errors else None
        if error is not None:
            raise error
        self.written.append(batch)
        return None

    def close(self) -> None:
        self.calls.append("close")

    def numbers(self):
        return [n for batch in self.written for n in batch.data["n"].to_pylist()]
