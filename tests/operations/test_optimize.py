"""Bin-packing: fewer files, the same rows, nothing for those who follow."""

import datetime as dt
from concurrent.futures import ThreadPoolExecutor

import deltalake
import pyarrow as pa
import pytest

import streamlake as sl
from streamlake.log import read_commit
from streamlake.operations.optimize import rewrite

SCHEMA = pa.schema([("n", pa.int64()), ("day", pa.date32())])


def rows(first: int, count: int = 5) -> pa.Table:
    days = [dt.date(2024, 1, 1 + first % 2)] * count
    return pa.table([range(first, first + count), days], schema=SCHEMA)


def table_of(url, commits: int, **options) -> sl.Table:
    table = sl.Table.create(url, schema=SCHEMA, **options)
    for number in range(commits):
        table.append(rows(number * 5))
    return table


def test_many_small_files_become_one_a_partition(tmp_path):
    table = table_of(tmp_path / "t", 10, partition_by=["day"])
    before = table.snapshot().to_arrow().sort_by("n")
    done = table.optimize()
    assert (done.files_removed, done.files_added, done.commits) == (10, 2, 2)
    assert len(table.snapshot().files()) == 2
    assert table.snapshot().to_arrow().sort_by("n").equals(before)


def test_every_action_says_that_no_data_changed(tmp_path):
    table = table_of(tmp_path / "t", 4)
    table.optimize()
    actions = read_commit(table.log.store, 5)
    assert {a.data_change for a in (*actions.adds, *actions.removes)} == {False}  # type: ignore[attr-defined]
    assert not actions.commit_info.is_blind_append


def test_a_tail_sees_every_row_once_across_an_optimize(tmp_path):
    table = table_of(tmp_path / "t", 6)
    table.optimize()
    table.append(rows(30))
    seen = [n for batch in table.tail(stop="latest") for n in batch.data["n"].to_pylist()]
    assert seen == list(range(35))


def test_a_second_optimize_has_nothing_to_do(tmp_path):
    table = table_of(tmp_path / "t", 4)
    table.optimize()
    again = table.optimize()
    assert (again.commits, again.version) == (0, table.version)


def test_files_of_the_target_size_are_left_alone_and_bins_stay_below_it(tmp_path):
    table = table_of(tmp_path / "t", 12)
    size = max(add.size for add in table.snapshot().files())
    done = table.optimize(target_file_size_bytes=size * 3)
    assert (done.commits, done.files_removed) == (4, 12)
    assert table.optimize(target_file_size_bytes=size).commits == 0


def test_appends_go_on_while_files_are_rewritten(tmp_path):
    table = table_of(tmp_path / "t", 6)
    other = sl.Table.open(tmp_path / "t")
    table.optimize(
        target_file_size_bytes=4_000,
        on_progress=lambda done, _: other.append(rows(100 * done)),
    )
    assert (
        len(set(table.snapshot().to_arrow()["n"].to_pylist())) == 30 + 5 * (table.version - 6) // 2
    )


def test_of_two_optimizes_of_the_same_files_one_conflicts(tmp_path):
    table = table_of(tmp_path / "t", 4)
    slow, fast = sl.Table.open(tmp_path / "t"), sl.Table.open(tmp_path / "t")
    slow_snapshot = slow.log.snapshot()
    fast.optimize()
    with pytest.raises(sl.ConcurrentDeleteDeleteError):
        rewrite(slow.log, slow_snapshot, slow_snapshot.files(), 10**6, read_version=4)
    assert table.snapshot().to_arrow().num_rows == 20


@pytest.mark.parametrize("refresh", [False, True])
def test_a_file_that_was_removed_after_the_snapshot_is_not_brought_back(tmp_path, refresh):
    table = table_of(tmp_path / "t", 4, partition_by=["day"])

    def another_engine_deletes(done: int, _: int) -> None:
        if done == 1:
            deltalake.DeltaTable(tmp_path / "t").delete("n >= 0")
            if refresh:
                table.markers()

    with pytest.raises(sl.ConcurrentDeleteDeleteError):
        table.optimize(on_progress=another_engine_deletes)
    assert table.snapshot().to_arrow().num_rows == 0


def test_threads_that_optimize_one_handle_repeat_no_row(tmp_path):
    table = table_of(tmp_path / "t", 6)
    with ThreadPoolExecutor(4) as executor:
        done = [executor.submit(table.optimize) for _ in range(4)]
    errors = {type(future.exception()) for future in done}
    assert errors <= {type(None), sl.ConcurrentDeleteDeleteError}
    assert sorted(table.snapshot().to_arrow()["n"].to_pylist()) == list(range(30))


def test_a_target_that_is_not_positive_is_refused(tmp_path):
    with pytest.raises(sl.InvalidInputError):
        table_of(tmp_path / "t", 1).optimize(target_file_size_bytes=0)
