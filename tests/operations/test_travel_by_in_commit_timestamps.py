"""Time travel of tables that tell their own times, and agreement with another engine."""

import os
from datetime import UTC, datetime

import deltalake
import pyarrow as pa
import pytest

import streamlake as sl
from streamlake.log import Log
from streamlake.protocol import commit_path
from streamlake.testing import CountingStore, ManualClock, TableBuilder

START_MS = 1_769_860_800_000
MINUTE_MS = 60_000
TOLD = {"delta.enableInCommitTimestamps": "true"}


def by_the_minute(commits: int, *, properties=None, clock=None) -> sl.Table:
    """Version 0 at the start, then one a minute."""
    clock = clock or ManualClock(now_ms=START_MS)
    builder = TableBuilder(clock=clock).properties(properties or {})
    for _ in range(1, commits):
        builder = builder.wait(60).append()
    return builder.build()


def touch_all(table: sl.Table) -> None:
    """Write every commit file anew, as a copy of the table does: the store's times are all now."""
    store = table.log.store
    for meta in list(store.list_from("_delta_log/0")):
        store.put(meta.path, store.get(meta.path))


def version_at(table: sl.Table, minute: float) -> int:
    return table.snapshot(timestamp=START_MS + round(minute * MINUTE_MS)).version


def test_a_copied_table_keeps_its_times():
    table = by_the_minute(6, properties=TOLD)
    table.log.clock.sleep(3600)
    touch_all(table)
    assert [version_at(table, minute) for minute in (0, 0.5, 1, 4.9, 5)] == [0, 0, 1, 4, 5]
    assert [record.timestamp_ms for record in table.history(limit=2)] == [
        START_MS + 5 * MINUTE_MS,
        START_MS + 4 * MINUTE_MS,
    ]


def test_times_are_told_from_the_version_that_enabled_it():
    table = by_the_minute(4)
    table.log.clock.sleep(60)
    enabled = table.set_properties(TOLD).version
    table.log.clock.sleep(60)
    table.append(pa.table({"n": [1]}))
    assert [version_at(table, minute) for minute in (0, 3, 3.9, 4, 4.5, 5)] == [0, 3, 3, 4, 4, 5]
    times = {record.version: record.timestamp_ms for record in table.history()}
    assert times == {version: START_MS + version * MINUTE_MS for version in range(6)}
    rows = [
        batch.version
        for batch in table.tail(start=datetime.fromtimestamp(times[enabled] / 1000, tz=UTC), stop=5)
    ]
    assert rows == [5]


def test_times_are_the_stores_again_once_it_is_disabled():
    table = by_the_minute(3, properties=TOLD)
    table.set_properties({"delta.enableInCommitTimestamps": "false"})
    table.log.clock.sleep(3600)
    touch_all(table)
    with pytest.raises(sl.VersionNotFoundError, match="before the oldest"):
        version_at(table, 1)


def test_a_writer_whose_clock_went_back_still_tells_later_times():
    table = by_the_minute(3, properties=TOLD)
    behind = ManualClock(now_ms=START_MS)
    slow = sl.Table(Log(table.log.store, clock=behind))
    slow.append(pa.table({"n": [1]}))
    slow.append(pa.table({"n": [2]}))
    times = {record.version: record.timestamp_ms for record in slow.history()}
    assert times[3] == times[2] + 1
    assert times[4] == times[2] + 2
    assert slow.snapshot(timestamp=times[3]).version == 3


def test_going_back_in_a_long_log_takes_few_short_reads():
    table = by_the_minute(130, properties={**TOLD, "delta.checkpointInterval": "1000"})
    store = CountingStore(table.log.store)
    reader = sl.Table(Log(store, clock=table.log.clock))
    reader.log.refresh()
    store.requests.clear()
    assert reader.log.head.version == 129
    with pytest.raises(sl.VersionNotFoundError):
        reader.snapshot(timestamp=START_MS - 1)
    assert store.count("get_range") <= 9
    assert store.count("get") == 1


def test_after_a_clean_up_the_times_before_it_are_told_to_be_gone():
    table = by_the_minute(3, properties={**TOLD, "delta.logRetentionDuration": "interval 1 days"})
    table.checkpoint()
    table.log.clock.sleep(5 * 24 * 3600)
    table.append(pa.table({"n": [1]}))
    assert table.clean_log().first_version == 2
    with pytest.raises(sl.VersionNotFoundError, match="before the oldest") as caught:
        version_at(table, 1)
    assert "versions 2 of 2026-01-31T12:02:00.000Z" in caught.value.found
    assert version_at(table, 3) == 2


def test_deltalake_goes_back_to_the_same_versions(tmp_path):
    table = TableBuilder(tmp_path / "t").append(times=5).build()
    seconds = {0: 1000, 1: 2000, 2: 2500, 3: 3000, 4: 4000, 5: 9000}
    for version, second in seconds.items():
        os.utime(tmp_path / "t" / commit_path(version), (second, second))
    for second in (1000, 1999, 2000, 2999, 3000, 9000):
        moment = datetime.fromtimestamp(second, tz=UTC)
        peer = deltalake.DeltaTable(str(tmp_path / "t"))
        peer.load_as_version(moment)
        ours = table.snapshot(timestamp=moment)
        assert ours.to_arrow().num_rows == peer.to_pyarrow_table().num_rows, second
        assert ours.version == peer.version(), second


def test_deltalake_reads_a_log_that_was_cleaned_up(tmp_path):
    properties = {"delta.logRetentionDuration": "interval 1 days"}
    builder = TableBuilder(tmp_path / "t").properties(properties)
    table = builder.append(3, times=4).checkpoint().append(3, times=2).build()
    for version in range(5):
        os.utime(tmp_path / "t" / commit_path(version), (1000, 1000))
    assert len(table.clean_log().paths) == 4
    peer = deltalake.DeltaTable(str(tmp_path / "t"))
    assert peer.version() == 6
    assert peer.to_pyarrow_table().num_rows == table.snapshot().to_arrow().num_rows == 18
    peer.load_as_version(5)
    assert peer.to_pyarrow_table().num_rows == 15
