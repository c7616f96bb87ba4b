"""In-commit timestamps: every commit tells its own time, and times rise with versions."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import streamlake as sl
from streamlake.clock import SYSTEM_CLOCK
from streamlake.log import read_commit
from streamlake.testing import ManualClock

SCHEMA = pa.schema([("id", pa.int64())])
ENABLED = {"delta.enableInCommitTimestamps": "true"}
SINCE_VERSION = "delta.inCommitTimestampEnablementVersion"
SINCE_TIMESTAMP = "delta.inCommitTimestampEnablementTimestamp"


class BackwardsClock(ManualClock):
    """A clock whose every look at the time is a second earlier than the one before."""

    def now_ms(self) -> int:
        self.set_back_ms = getattr(self, "set_back_ms", 0) + 1000
        return super().now_ms() - self.set_back_ms


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def first_action(table: sl.Table, version: int) -> dict[str, dict[str, object]]:
    data = table.log.store.get(f"_delta_log/{version:020}.json")
    found: dict[str, dict[str, object]] = json.loads(data.splitlines()[0])
    return found


def time_of(table: sl.Table, version: int) -> int:
    found = read_commit(table.log.store, version).commit_info.in_commit_timestamp_ms
    assert found is not None
    return found


def test_a_new_table_tells_its_time_from_version_0_on(tmp_path: Path):
    table = sl.Table.create(tmp_path / "t", schema=SCHEMA, properties=ENABLED)
    table.append(rows(1))
    for version in (0, 1):
        assert isinstance(first_action(table, version)["commitInfo"]["inCommitTimestamp"], int)
    assert SINCE_VERSION not in table.properties
    assert table.log.head.protocol.writer_features == ("inCommitTimestamp",)


def test_times_rise_though_the_clock_goes_back(tmp_path: Path):
    clock = BackwardsClock()
    table = sl.Table.create(tmp_path / "t", schema=SCHEMA, properties=ENABLED, clock=clock)
    for number in range(3):
        table.append(rows(number))
    times = [time_of(table, version) for version in range(4)]
    assert times == [times[0] + n for n in range(4)]


def test_a_time_passes_that_of_a_commit_which_won_the_race(tmp_path: Path):
    ahead = ManualClock(now_ms=10**13)
    first = sl.Table.create(tmp_path / "t", schema=SCHEMA, properties=ENABLED)
    second = sl.Table.open(tmp_path / "t", clock=ahead)
    second.append(rows(1))
    assert first.version == 0
    first.append(rows(2))
    assert time_of(first, 2) == time_of(first, 1) + 1


def test_a_fresh_handle_goes_on_from_the_time_of_the_newest_commit(tmp_path: Path):
    ahead = ManualClock(now_ms=10**13)
    table = sl.Table.create(tmp_path / "t", schema=SCHEMA, properties=ENABLED, clock=ahead)
    table.append(rows(1))
    table.checkpoint()
    reopened = sl.Table.open(tmp_path / "t")
    reopened.append(rows(2))
    assert time_of(reopened, 2) == time_of(reopened, 1) + 1


def test_enabling_them_later_notes_since_when(tmp_path: Path):
    table = sl.Table.create(tmp_path / "t", schema=SCHEMA)
    table.append(rows(1))
    before_ms = table.log.store.stat("_delta_log/00000000000000000001.json").modified_ms
    table.set_properties(ENABLED)
    assert table.properties[SINCE_VERSION] == "2"
    assert table.properties[SINCE_TIMESTAMP] == str(time_of(table, 2))
    assert time_of(table, 2) > before_ms
    assert table.log.head.protocol == sl.Table.open(tmp_path / "t").log.head.protocol
    assert table.log.head.protocol.min_writer_version == 7
    assert table.log.head.protocol.min_reader_version == 1


def test_disabling_them_forgets_since_when_and_enabling_notes_it_anew(tmp_path: Path):
    table = sl.Table.create(tmp_path / "t", schema=SCHEMA)
    table.set_properties(ENABLED)
    table.unset_properties(["delta.enableInCommitTimestamps"])
    assert SINCE_VERSION not in table.properties
    table.append(rows(1))
    assert "inCommitTimestamp" not in first_action(table, 3)["commitInfo"]
    table.set_properties(ENABLED)
    assert table.properties[SINCE_VERSION] == "4"


def test_a_newest_commit_without_its_time_is_refused(tmp_path: Path):
    table = sl.Table.create(tmp_path / "t", schema=SCHEMA, properties=ENABLED)
    table.append(rows(1))
    table.checkpoint()
    table.log.store.put("_delta_log/00000000000000000001.json", b'{"commitInfo":{}}\n')
    with pytest.raises(sl.CorruptTableError, match="in-commit timestamp"):
        sl.Table.open(tmp_path / "t", clock=SYSTEM_CLOCK).append(rows(2))
