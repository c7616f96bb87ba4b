"""Offset ranges, and how they become tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pyspark.sql.datasource import InputPartition

from pyspark_streamlake_kafka.offsets import TopicPartition

ROWS_PER_TASK = 20_000
"""Below this a further task costs more than it brings: a task takes some 30 ms, two Python workers
and a data file."""


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets ``start`` up to, not including, ``end`` of one partition."""

    tp: TopicPartition
    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start

    def __str__(self) -> str:
        return f"{self.tp} [{self.start}, {self.end})"


class RangesPartition(InputPartition):
    """What one task reads."""

    def __init__(self, ranges: tuple[OffsetRange, ...]) -> None:
        super().__init__(ranges)
        self.ranges = ranges


def plan_tasks(
    ranges: Iterable[OffsetRange],
    *,
    min_partitions: int | None = None,
    rows_per_task: int = ROWS_PER_TASK,
) -> list[RangesPartition]:
    """Share ranges out to tasks: a partition a task, fewer tasks while there is little to read.

    Args:
        ranges: What to read; empty ones are left out.
        min_partitions: At least so many tasks: large ranges are split.
        rows_per_task: Small ranges share a task up to about so many offsets.

    Returns:
        Tasks of about equal size; within a partition the order is kept.
    """
    whole = [found for found in ranges if len(found) > 0]
    if not whole:
        return []
    wanted = min(len(whole), -(-sum(map(len, whole)) // rows_per_task))
    if min_partitions is not None and min_partitions > len(whole):
        return [RangesPartition((piece,)) for piece in split(whole, min_partitions)]
    tasks = max(wanted, min_partitions or 1)
    return [RangesPartition(tuple(task)) for task in _packed(whole, tasks)]


def split(ranges: Sequence[OffsetRange], parts: int) -> list[OffsetRange]:
    """Cut ranges into about ``parts`` pieces, more of the large ones; none is empty."""
    total = sum(map(len, ranges))
    return [
        piece
        for whole in ranges
        for piece in _cut(whole, max(1, min(len(whole), round(len(whole) / total * parts))))
    ]


def _cut(whole: OffsetRange, parts: int) -> list[OffsetRange]:
    edges = [whole.start + len(whole) * number // parts for number in range(parts + 1)]
    return [OffsetRange(whole.tp, start, end) for start, end in pairwise(edges)]


def _packed(ranges: Sequence[OffsetRange], tasks: int) -> list[list[OffsetRange]]:
    """The largest first, each to the task that has least."""
    packed: list[list[OffsetRange]] = [[] for _ in range(tasks)]
    for found in sorted(ranges, key=len, reverse=True):
        min(packed, key=lambda task: sum(map(len, task))).append(found)
    return [sorted(task, key=lambda found: (found.tp, found.start)) for task in packed]
