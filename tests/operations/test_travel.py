"""Reading a table as it was at a point in time."""

import itertools
import os
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

import streamlake as sl
from streamlake import operations
from streamlake.log import Log
from streamlake.storage import MemoryStore
from streamlake.testing import ManualClock

SCHEMA = pa.schema([pa.field("n", pa.int64())])
NAMES = itertools.count()
START = datetime(2026, 1, 31, 12, tzinfo=UTC)


def rows(*numbers):
    return pa.table([pa.array(numbers, pa.int64())], schema=SCHEMA)


def table_by_the_minute(commits: int) -> sl.Table:
    """Version 0 at START, then one a minute."""
    clock = ManualClock(now_ms=int(START.timestamp() * 1000))
    log = Log(MemoryStore(clock=clock, name=f"travel-{next(NAMES)}"), clock=clock)
    operations.create(log, SCHEMA)
    table = sl.Table(log)
    for number in range(1, commits):
        clock.advance(60)
        table.append(rows(number))
    return table


def minutes(count):
    return START + timedelta(minutes=count)


def numbers(snapshot):
    return snapshot.to_arrow()["n"].to_pylist()


@pytest.mark.parametrize(("minute", "expected"), [(0, []), (1, [1]), (1.5, [1]), (3, [1, 2, 3])])
def test_a_snapshot_is_the_table_as_it_was_at_a_time(minute, expected):
    table = table_by_the_minute(4)
    moment = minutes(minute)
    assert numbers(table.snapshot(timestamp=moment)) == expected
    assert numbers(table.snapshot(timestamp=moment.isoformat())) == expected
    assert numbers(table.snapshot(timestamp=int(moment.timestamp() * 1000))) == expected


def test_the_times_that_history_tells_lead_back_to_its_versions():
    table = table_by_the_minute(5)
    for record in table.history():
        assert table.snapshot(timestamp=record.timestamp_ms).version == record.version


@pytest.mark.parametrize(("minute", "place"), [(-1, "before the oldest"), (4, "after the newest")])
def test_a_time_outside_the_log_is_refused_and_the_range_is_named(minute, place):
    table = table_by_the_minute(4)
    with pytest.raises(sl.VersionNotFoundError, match=place) as caught:
        table.snapshot(timestamp=minutes(minute))
    assert "versions 0 of 2026-01-31T12:00:00.000Z to 3 of 2026-01-31T12:03" in caught.value.found


def test_the_newest_version_is_given_for_a_later_time_where_that_is_asked_for():
    table = table_by_the_minute(4)
    assert table.version_at(minutes(2.5)) == 2
    assert table.version_at(minutes(60), or_newest=True) == 3
    with pytest.raises(sl.VersionNotFoundError, match="after the newest"):
        table.version_at(minutes(60))
    with pytest.raises(sl.VersionNotFoundError, match="before the oldest"):
        table.version_at(minutes(-1), or_newest=True)


def test_a_time_before_the_first_checkpoint_of_a_cleaned_up_log_is_told():
    table = table_by_the_minute(6)
    table.checkpoint()
    table.log.clock.sleep(60)
    table.append(rows(6))
    for version in range(3):
        table.log.store.delete(f"_delta_log/{version:020d}.json")
    with pytest.raises(sl.LogTruncatedError):
        sl.Table(Log(table.log.store)).snapshot(timestamp=minutes(4))
    assert table.snapshot(timestamp=minutes(5)).version == 5


def test_a_version_and_a_timestamp_together_are_refused():
    with pytest.raises(sl.InvalidInputError, match="not for both"):
        table_by_the_minute(2).snapshot(1, timestamp=START)


def test_a_handle_travels_to_commits_of_others_too():
    table = table_by_the_minute(2)
    other = sl.Table(Log(table.log.store, clock=table.log.clock))
    table.log.clock.sleep(60)
    other.append(rows(2))
    assert numbers(table.snapshot(timestamp=minutes(2))) == [1, 2]


def test_files_that_were_copied_out_of_order_still_have_rising_times(tmp_path):
    table = sl.Table.create(tmp_path / "t", schema=SCHEMA)
    for number in (1, 2, 3):
        table.append(rows(number))
    for version, second in {0: 1000, 1: 3000, 2: 2000, 3: 2000}.items():
        path = tmp_path / "t" / "_delta_log" / f"{version:020d}.json"
        os.utime(path, (second, second))
    times = {record.version: record.timestamp_ms for record in table.history()}
    assert times == {0: 1_000_000, 1: 3_000_000, 2: 3_000_001, 3: 3_000_002}
    assert table.snapshot(timestamp=2_000_000).version == 0
    assert table.snapshot(timestamp=3_000_001).version == 2
