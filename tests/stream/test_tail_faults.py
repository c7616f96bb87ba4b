"""Gaps, garbage, vanished files, lagging and repeating listings: an error or the whole truth."""

import pytest

import streamlake as sl
from stream.builders import (
    QUICK,
    SCHEMA,
    all_numbers,
    before_error,
    commit,
    drop_commits,
    fresh,
    new_table,
    numbers,
    offset_of,
    rows,
    table_of,
    take,
)
from streamlake import operations
from streamlake.log import Log
from streamlake.protocol import commit_path
from streamlake.storage import MemoryStore
from streamlake.stream import tail
from streamlake.testing import Fault, FaultyStore


def through(table: sl.Table, *faults: Fault) -> Log:
    """A handle on the table over a store with those faults."""
    return Log(FaultyStore(table.log.store, faults), clock=table.log.clock, limits=QUICK)


def test_a_gap_is_an_error():
    table = table_of([1], [2], [3], [4])
    drop_commits(table, 3)
    with pytest.raises(sl.LogGapError, match="Version 3 is missing"):
        list(table.tail())


def test_a_gap_that_opens_while_the_tail_runs_is_an_error():
    table = table_of([1])
    batches = table.tail()
    assert numbers(take(batches, 1)) == [1]
    for number in (2, 3, 4):
        table.append(rows(number))
    drop_commits(table, 3)
    assert before_error(batches, sl.LogGapError) == [2]


def test_a_version_that_vanishes_after_it_was_listed_is_an_error():
    table = table_of([1], [2], [3])
    batches = table.tail(stop="latest")
    drop_commits(table, 3)
    assert before_error(batches, sl.LogGapError) == [1, 2]


@pytest.mark.parametrize("count", [3, 30])
def test_what_came_before_a_torn_commit_is_handed_on(count):
    table = table_of(*([n] for n in range(1, count + 1)))
    path = commit_path(count)
    whole = table.log.store.get(path)
    table.log.store.delete(path)
    table.log.store.put(path, whole[:-15])
    assert before_error(table.tail(), sl.CorruptTableError) == list(range(1, count))


def test_a_listing_that_repeats_its_entries_changes_nothing():
    table = table_of(*([n] for n in range(20)))
    log = through(table, Fault(kind="duplicated", method="list_from", times=None))
    assert numbers(tail(log, stop="latest")) == list(range(20))


def test_a_version_that_a_listing_leaves_out_is_read_all_the_same():
    table = table_of(*([n] for n in range(1, 6)))
    log = through(table, Fault(kind="stale", method="list_from", times=None, entries=2))
    assert numbers(take(tail(log), 5)) == [1, 2, 3, 4, 5]


def test_a_data_file_that_is_gone_is_told_with_the_vacuum_that_removed_it():
    table = table_of([1], [2])
    first, _ = table.snapshot().files()
    table.log.store.delete(first.path)
    with pytest.raises(sl.CorruptTableError, match="vacuum"):
        list(table.tail(stop="latest"))


def test_a_lost_answer_is_an_error_and_never_a_skipped_version():
    table = table_of([1], [2], [3])
    log = through(table, Fault(kind="lost_before", method="get", path=commit_path(2), nth=1))
    batches = tail(log, start=1)
    assert numbers(take(batches, 1)) == [1]
    with pytest.raises(sl.StorageError, match="lost"):
        next(batches)


def test_after_an_error_the_last_offset_resumes():
    table = table_of([1], [2], [3])
    log = through(table, Fault(kind="lost_before", method="get", path=commit_path(2)))
    batches = tail(log, start=1)
    (first,) = take(batches, 1)
    assert before_error(batches, sl.StorageError) == []
    assert numbers(tail(log, start=offset_of(first), stop="latest")) == [2, 3]


def test_a_table_that_was_put_back_is_noticed_while_idle():
    table = table_of([1], [2], [3])
    batches = table.tail()
    assert numbers(take(batches, 3)) == [1, 2, 3]
    drop_commits(table, 2, 3)
    with pytest.raises(sl.TableReplacedError, match="newest version is 1"):
        next(batches)


def test_a_table_that_was_deleted_is_noticed_while_idle():
    table = table_of([1])
    batches = table.tail()
    assert numbers(take(batches, 1)) == [1]
    drop_commits(table, 0, 1)
    with pytest.raises(sl.TableNotFoundError):
        next(batches)


def test_a_table_made_anew_in_its_place_is_noticed():
    store = MemoryStore()
    table = new_table(store)
    table.append(rows(1))
    offset = offset_of(next(table.tail()))
    drop_commits(table, 0, 1)
    other = Log(store, clock=table.log.clock, limits=QUICK)
    operations.create(other, SCHEMA)
    for number in (7, 8):
        sl.Table(other).append(rows(number))
    with pytest.raises(sl.TableReplacedError, match="another id"):
        fresh(table).tail(offset)


def test_a_commit_without_metadata_can_not_be_the_first():
    table = new_table()
    path = commit_path(0)
    table.log.store.delete(path)
    table.log.store.put(path, b'{"commitInfo":{}}\n')
    with pytest.raises(sl.CorruptTableError, match="metaData"):
        list(tail(Log(table.log.store, clock=table.log.clock), stop="latest"))


def test_a_path_that_leaves_the_table_is_refused():
    table = new_table()
    commit(table, sl.AddFile("../outside.parquet", {}, 10, 0, data_change=True))
    with pytest.raises(sl.UnsafePathError):
        all_numbers(table)
