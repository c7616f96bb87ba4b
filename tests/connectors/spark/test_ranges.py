"""Positions are limited fairly, and ranges become few tasks while there is little to read."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from pyspark_streamlake_kafka.offsets import (
    TopicPartition,
    limited,
    offsets_from_json,
    offsets_to_json,
)
from pyspark_streamlake_kafka.ranges import OffsetRange, plan_tasks

PARTITIONS = st.builds(TopicPartition, st.sampled_from(["a", "b.c", "d-e"]), st.integers(0, 20))
OFFSETS = st.dictionaries(PARTITIONS, st.integers(0, 2**62), max_size=12)
RANGES = st.dictionaries(PARTITIONS, st.tuples(st.integers(0, 10**6), st.integers(0, 10**5)))


def ranges_of(sizes):
    return [OffsetRange(tp, start, start + size) for tp, (start, size) in sizes.items()]


@given(OFFSETS)
def test_positions_survive_their_json(offsets):
    assert offsets_from_json(offsets_to_json(offsets)) == offsets


def test_the_json_of_a_position_does_not_depend_on_the_order_of_its_making():
    one, ten = TopicPartition("a", 1), TopicPartition("a", 10)
    assert str(offsets_to_json({ten: 5, one: 4})) == str(offsets_to_json({one: 4, ten: 5}))
    assert list(offsets_to_json({ten: 5, one: 4})["a"]) == ["1", "10"]


@given(RANGES, st.integers(1, 10**5))
def test_a_limit_is_kept_and_starves_no_partition(sizes, max_rows):
    start = {tp: first for tp, (first, _) in sizes.items()}
    end = {tp: first + size for tp, (first, size) in sizes.items()}
    cut = limited(start, end, max_rows=max_rows)
    assert sum(cut[tp] - start[tp] for tp in cut) < max_rows + max(1, len(sizes))
    assert all(start[tp] <= cut[tp] <= end[tp] for tp in sizes)
    assert all(cut[tp] > start[tp] for tp in sizes if end[tp] > start[tp])


@given(RANGES, st.none() | st.integers(1, 40))
def test_tasks_hold_each_offset_once(sizes, min_partitions):
    ranges = ranges_of(sizes)
    tasks = plan_tasks(ranges, min_partitions=min_partitions)
    assert all(task.ranges for task in tasks)
    pieces = sorted(
        (piece for task in tasks for piece in task.ranges), key=lambda r: (r.tp, r.start)
    )
    for whole in (found for found in ranges if len(found)):
        mine = [piece for piece in pieces if piece.tp == whole.tp]
        assert [mine[0].start, mine[-1].end] == [whole.start, whole.end]
        assert all(a.end == b.start for a, b in itertools.pairwise(mine))


@given(RANGES, st.none() | st.integers(1, 40))
def test_a_task_reads_a_partition_once(sizes, min_partitions):
    for task in plan_tasks(ranges_of(sizes), min_partitions=min_partitions):
        assert len({piece.tp for piece in task.ranges}) == len(task.ranges)


def test_little_is_read_by_one_task_and_much_by_one_a_partition():
    little = [OffsetRange(TopicPartition("a", n), 0, 100) for n in range(4)]
    much = [OffsetRange(TopicPartition("a", n), 0, 100_000) for n in range(4)]
    assert len(plan_tasks(little)) == 1
    assert len(plan_tasks(much)) == 4
    assert len(plan_tasks(little, min_partitions=3)) == 3
    assert len(plan_tasks(much, min_partitions=8)) == 8


def test_nothing_to_read_needs_no_task():
    assert plan_tasks([OffsetRange(TopicPartition("a", 0), 5, 5)]) == []
