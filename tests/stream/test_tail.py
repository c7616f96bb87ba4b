"""The tail of a table: where it begins and ends, what it hands on, and in which order."""

import os
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone

import pyarrow as pa
import pytest

import streamlake as sl
from stream.builders import (
    SCHEMA,
    all_numbers,
    change_metadata,
    clock_of,
    commit,
    drop_commits,
    fresh,
    new_table,
    numbers,
    remove,
    rows,
    stage,
    table_of,
    take,
)
from streamlake.log import Log
from streamlake.protocol import Protocol
from streamlake.storage import MemoryStore
from streamlake.stream import tail


def test_the_earliest_rows_come_first_each_commit_a_batch():
    table = table_of([1, 2], [3], [4, 5])
    batches = list(table.tail(stop="latest"))
    assert [batch.data["n"].to_pylist() for batch in batches] == [[1, 2], [3], [4, 5]]
    assert [batch.version for batch in batches] == [1, 2, 3]


def test_a_batch_says_when_its_version_was_committed():
    table = new_table()
    clock_of(table).advance(5)
    committed_ms = table.log.clock.now_ms()
    table.append(rows(1))
    clock_of(table).advance(5)
    assert [batch.timestamp_ms for batch in table.tail(stop="latest")] == [committed_ms]


def test_the_in_commit_timestamp_counts_where_there_is_one():
    table = new_table()
    commit(table, stage(table, 1), timestamp=5, inCommitTimestamp=77)
    assert [batch.timestamp_ms for batch in table.tail(stop="latest")] == [77]


def test_the_offset_of_a_whole_version_is_before_the_next_one():
    table = table_of([1], [2])
    offsets = [batch.offset for batch in table.tail(stop="latest")]
    assert offsets == [sl.Offset.after_version(version, table.id) for version in (1, 2)]


def test_latest_hands_on_what_is_committed_after_the_call():
    table = table_of([1], [2])
    batches = table.tail("latest", stop=3)
    table.append(rows(3))
    assert numbers(batches) == [3]


def test_latest_of_a_handle_that_has_read_nothing_yet():
    table = table_of([1], [2])
    unread = Log(table.log.store, clock=table.log.clock)
    batches = tail(unread, start="latest", stop=3)
    table.append(rows(3))
    assert numbers(batches) == [3]


def test_a_version_is_where_it_begins():
    table = table_of([1], [2], [3])
    assert all_numbers(table, start=2) == [2, 3]
    assert all_numbers(table, start="2") == [2, 3]
    assert all_numbers(table, start=0) == [1, 2, 3]


def test_a_version_that_does_not_exist_yet_is_waited_for():
    table = table_of([1])
    batches = table.tail(3, stop=3)
    table.append(rows(2))
    table.append(rows(3))
    assert numbers(batches) == [3]


def test_a_snapshot_comes_first_and_then_what_follows():
    table = table_of([1], [2], [3])
    table.optimize()
    batches = table.tail("snapshot", stop=table.version + 1)
    table.append(rows(4))
    assert numbers(batches) == [1, 2, 3, 4]


def test_the_files_of_a_snapshot_are_ordered_by_time_and_path():
    table = new_table()
    late, b, a = stage(table, 3), stage(table, 1), stage(table, 2)
    renamed = {
        "late": sl.AddFile(late.path, {}, late.size, 9, data_change=True),
        "b": sl.AddFile(b.path, {}, b.size, 5, data_change=True),
        "a": sl.AddFile(a.path, {}, a.size, 5, data_change=True),
    }
    commit(table, *renamed.values())
    expected = [1, 2, 3] if b.path < a.path else [2, 1, 3]
    assert all_numbers(table, start="snapshot") == expected


def test_a_snapshot_of_an_empty_table_has_no_batch():
    assert all_numbers(new_table(), start="snapshot") == []


def timed_table():
    """Versions 0 to 3 at seconds 0, 10, 20, 30."""
    table = new_table()
    start = datetime.fromtimestamp(table.log.clock.now_ms() / 1000, tz=UTC)
    for number in (1, 2, 3):
        clock_of(table).advance(10)
        table.append(rows(number))
    return table, start


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0, [1, 2, 3]), (10, [1, 2, 3]), (10.001, [2, 3]), (30, [3])]
)
def test_a_timestamp_begins_with_the_first_commit_from_then_on(seconds, expected):
    table, start = timed_table()
    moment = start + timedelta(seconds=seconds)
    assert all_numbers(table, start=moment) == expected
    assert all_numbers(table, start=moment.isoformat()) == expected
    assert all_numbers(table, start=moment.astimezone(timezone(timedelta(hours=5)))) == expected


def test_a_timestamp_after_the_newest_commit_waits_for_the_next():
    table, start = timed_table()
    clock_of(table).advance(60)
    batches = table.tail(start + timedelta(seconds=31), stop=4)
    table.append(rows(4))
    assert numbers(batches) == [4]


def test_a_timestamp_whose_first_commit_was_cleaned_up_is_no_silent_loss():
    table, start = timed_table()
    clock_of(table).advance(1)
    table.checkpoint()
    drop_commits(table, 0, 1)
    with pytest.raises(sl.LogTruncatedError, match="Version 1 has been removed"):
        all_numbers(table, start=start + timedelta(seconds=5))
    assert all_numbers(table, start=start + timedelta(seconds=20)) == [2, 3]


def test_the_stores_times_count_where_commits_say_none(tmp_path):
    table = sl.Table.create(tmp_path / "t", schema=SCHEMA)
    table.append(rows(1))
    table.append(rows(2))
    log_dir = tmp_path / "t" / "_delta_log"
    seconds = {0: 1000, 1: 3000, 2: 2000}  # the store's clock went back: 2 counts as 3000.001
    for version, second in seconds.items():
        path = log_dir / f"{version:020d}.json"
        os.utime(path, (second, second))
    at = {s: datetime.fromtimestamp(s, tz=UTC) for s in (1000, 2000, 3000, 3001)}
    assert all_numbers(table, start=at[2000]) == [1, 2]
    assert all_numbers(table, start=at[3000]) == [1, 2]
    assert all_numbers(table, start=at[3001]) == []


@pytest.mark.parametrize(
    "start",
    ["", "newest", "12:00", -1, True, 1.5, None, 2**63, "{}", datetime(2026, 1, 1)],  # noqa: DTZ001
)
def test_what_is_no_start_is_refused_at_the_call(start):
    with pytest.raises(sl.InvalidInputError):
        table_of([1]).tail(start)


def test_a_timestamp_without_a_time_zone_is_refused_with_the_remedy():
    with pytest.raises(sl.InvalidInputError, match="2026-01-31T12:00:00Z"):
        table_of([1]).tail("2026-01-31T12:00:00")


def test_a_timestamp_in_the_future_is_refused():
    table = table_of([1])
    later = datetime.fromtimestamp(table.log.clock.now_ms() / 1000 + 60, tz=UTC)
    with pytest.raises(sl.InvalidInputError, match="future"):
        table.tail(later)


@pytest.mark.parametrize("stop", ["earliest", -1, True, 1.5])
def test_what_is_no_stop_is_refused_at_the_call(stop):
    with pytest.raises(sl.InvalidInputError, match="stop"):
        table_of([1]).tail(stop=stop)


def test_there_is_no_tail_of_a_missing_table():
    for start in ("earliest", "latest", "snapshot", 3, datetime(2020, 1, 1, tzinfo=UTC)):
        with pytest.raises(sl.TableNotFoundError):
            tail(Log(MemoryStore()), start=start)


def test_the_latest_stop_is_fixed_at_the_start():
    table = table_of([1], [2])
    batches = table.tail(stop="latest")
    table.append(rows(3))
    assert numbers(batches) == [1, 2]


def test_not_following_is_stopping_at_the_latest():
    table = table_of([1], [2])
    assert all_numbers(table, stop=None, follow=False) == [1, 2]
    assert all_numbers(table, stop=99, follow=False) == [1, 2]


def test_a_stop_is_the_last_version():
    table = table_of([1], [2], [3])
    assert all_numbers(table, stop=2) == [1, 2]
    assert all_numbers(table, stop=0) == []
    assert all_numbers(table, start=3, stop=2) == []


def test_a_stop_before_the_snapshot_that_it_starts_from_is_refused():
    with pytest.raises(sl.InvalidInputError, match="past the stop 1"):
        table_of([1], [2]).tail("snapshot", stop=1)


def test_a_stop_that_does_not_exist_yet_is_waited_for():
    table = table_of([1])
    batches = table.tail(stop=2)
    table.append(rows(2))
    assert numbers(batches) == [1, 2]


def test_an_optimize_is_passed_over():
    table = table_of([1], [2])
    table.optimize()
    table.append(rows(3))
    assert all_numbers(table) == [1, 2, 3]


def test_only_changes_of_data_are_handed_on_and_counted():
    table = new_table()
    first, moved, second = stage(table, 1), stage(table, 9, data_change=False), stage(table, 2)
    commit(table, first, moved, second)
    options = sl.TailOptions(max_rows=1)
    offsets = [batch.offset for batch in table.tail(stop="latest", options=options)]
    assert offsets == [
        sl.Offset(reservoir_id=table.id, reservoir_version=1, index=0),
        sl.Offset.after_version(1, table.id),
    ]


def test_commits_without_rows_make_no_batch():
    table = new_table()
    table.commit_staged((), txn=sl.SetTransaction("a", 1))
    commit(table, stage(table))
    table.append(rows(1))
    assert [batch.version for batch in table.tail(stop="latest")] == [3]


def test_compacted_log_files_are_never_read():
    table = table_of([1], [2])
    compacted = "_delta_log/00000000000000000001.00000000000000000002.compacted.json"
    table.log.store.put(compacted, b"garbage")
    table.log.store.put("_delta_log/.tmp/00000000000000000003.json", b"garbage")
    assert all_numbers(table) == [1, 2]


def test_columns_are_projected():
    table = sl.Table.create("memory://projected", schema=SCHEMA.append(pa.field("m", "int64")))
    table.append(pa.table({"n": [1], "m": [2]}))
    (batch,) = table.tail(stop="latest", options=sl.TailOptions(columns=["m"]))
    assert batch.data.to_pydict() == {"m": [2]}


def test_a_column_that_is_not_there_is_refused():
    table = table_of([1])
    with pytest.raises(sl.InvalidInputError, match="'x'"):
        list(table.tail(stop="latest", options=sl.TailOptions(columns=["x"])))


def test_partition_values_come_with_the_rows():
    schema = SCHEMA.append(pa.field("day", pa.string()))
    table = sl.Table.create("memory://partitioned", schema=schema, partition_by=["day"])
    table.append(pa.table({"n": [1, 2, 3], "day": ["a", "b", "a"]}))
    found = [row for batch in table.tail(stop="latest") for row in batch.data.to_pylist()]
    assert sorted(row["n"] for row in found if row["day"] == "a") == [1, 3]


def test_closing_a_tail_early_is_clean():
    table = table_of(*([n] for n in range(20)))
    with closing(table.tail()) as batches:
        assert numbers(take(batches, 3)) == [0, 1, 2]


def test_two_tails_of_one_handle_do_not_disturb_each_other():
    table = table_of([1], [2], [3])
    left, right = table.tail(stop="latest"), table.tail(2, stop="latest")
    assert numbers([next(left), next(right), next(left)]) == [1, 2, 2]


def test_a_tail_follows_another_handle():
    table = table_of([1])
    batches = table.tail(stop=2)
    fresh(table).append(rows(2))
    assert numbers(batches) == [1, 2]


def test_an_unknown_feature_that_a_commit_brings_stops_the_tail():
    table = table_of([1])
    needs = Protocol(3, 7, ("fromTheFuture",), ("fromTheFuture",))
    commit(table, needs)
    batches = table.tail()
    assert numbers(take(batches, 1)) == [1]
    with pytest.raises(sl.UnsupportedFeatureError, match="fromTheFuture"):
        next(batches)


def test_a_removed_and_re_added_path_is_handed_on_again():
    table = new_table()
    add = stage(table, 1)
    commit(table, add)
    commit(table, remove(add, data_change=False), stage(table, 1, data_change=False))
    commit(table, stage(table, 2))
    assert all_numbers(table) == [1, 2]


def test_a_table_whose_id_changes_stops_the_tail():
    table = table_of([1])
    change_metadata(table, id="another")
    batches = table.tail()
    assert numbers(take(batches, 1)) == [1]
    with pytest.raises(sl.TableReplacedError, match="another"):
        next(batches)
