"""Log clean-up: what goes, what stays, in which order, and how much at a time."""

import io
import json
import uuid

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamlake as sl
from log.checkpoints import flipped
from log.cleaning import (
    BY_HAND,
    DAY_S,
    MIDNIGHT_MS,
    NAMES,
    RETENTION,
    daily,
    log_names,
    readable,
    short,
    versions_left,
)
from streamlake.log import Limits, Log
from streamlake.protocol import checkpoint_path, checksum_path, commit_path
from streamlake.testing import CountingStore, Fault, FaultyStore, ManualClock


def test_what_lies_before_the_checkpoint_that_serves_the_cutoff_goes():
    table = daily(10, checkpoints=(2, 4, 8))
    # It is day 9 at noon; three days back begins day 6 at midnight; version 5 is the newest before
    # it, and 4 the newest checkpoint up to there.
    done = table.clean_log()
    assert done.first_version == 4
    assert done.cutoff_ms == MIDNIGHT_MS + 6 * DAY_S * 1000
    assert versions_left(table) == [4, 5, 6, 7, 8, 9]
    assert "4.checkpoint" in log_names(table)
    assert "2.checkpoint" not in log_names(table)
    assert readable(table) == [4, 5, 6, 7, 8, 9]


def test_the_files_are_told_in_the_order_of_their_removal():
    done = daily(10, checkpoints=(2, 4)).clean_log()
    assert [short(path) for path in done.paths] == [
        "0.json",
        "1.json",
        "2.checkpoint",
        "2.crc",
        "2.json",
        "3.json",
    ]
    assert done.size_bytes > 0
    assert done.is_complete


def test_a_dry_run_tells_the_same_and_touches_nothing():
    table = daily(10, checkpoints=(2, 4))
    before = log_names(table)
    store = CountingStore(table.log.store)
    told = sl.Table(Log(store, clock=table.log.clock)).clean_log(dry_run=True)
    assert (store.count("put"), store.count("delete")) == (0, 0)
    assert log_names(table) == before
    assert told.paths == table.clean_log().paths


@pytest.mark.parametrize("checkpoints", [(), (6,), (8, 9)])
def test_without_a_checkpoint_up_to_the_cutoff_nothing_goes(checkpoints):
    table = daily(10, checkpoints=checkpoints)
    before = log_names(table)
    done = table.clean_log()
    assert (done.first_version, done.paths) == (None, ())
    assert log_names(table) == before


def test_a_commit_at_midnight_sharp_is_an_acceptable_cutoff():
    clock = ManualClock(now_ms=MIDNIGHT_MS, seed=next(NAMES))
    table = daily(10, checkpoints=(6,), clock=clock)
    assert table.clean_log().first_version == 6


def test_a_day_is_kept_whole():
    table = daily(10, checkpoints=(5, 6))
    table.log.clock.sleep(DAY_S // 2 - 1)
    assert table.clean_log(dry_run=True).first_version == 5
    table.log.clock.sleep(1)
    assert table.clean_log(dry_run=True).first_version == 6


def test_checksums_compacted_files_and_parts_go_with_their_versions():
    table = daily(10, checkpoints=(4,))
    store = table.log.store
    part = "_delta_log/{:020d}.checkpoint.{:010d}.{:010d}.parquet"
    compacted = "_delta_log/{:020d}.{:020d}.compacted.json"
    gone = [checksum_path(3), part.format(2, 1, 2), compacted.format(1, 3), compacted.format(4, 6)]
    kept = [checksum_path(4), part.format(7, 1, 2), compacted.format(5, 6), "_delta_log/notes.txt"]
    for path in (*gone, *kept):
        store.put(path, b"{}")
    table.clean_log()
    left = {meta.path for meta in store.list_from("_delta_log/")}
    assert not left & set(gone)
    assert left >= set(kept)


def test_an_incomplete_set_of_parts_is_no_checkpoint():
    table = daily(10, checkpoints=(3,))
    data = table.log.store.get(checkpoint_path(3))
    table.log.store.put(f"_delta_log/{5:020d}.checkpoint.{1:010d}.{2:010d}.parquet", data)
    assert table.clean_log().first_version == 3


@pytest.mark.parametrize("damage", [b"", b"PAR1 not really PAR1"])
def test_a_checkpoint_that_cannot_be_read_does_not_count(damage):
    table = daily(10, checkpoints=(3, 5))
    table.log.store.put(checkpoint_path(5), damage)
    assert table.clean_log().first_version == 3


@pytest.mark.parametrize("has_checksum", [True, False])
def test_what_a_checkpoint_damaged_among_its_files_stands_for_stays(has_checksum):
    table = daily(10, checkpoints=(4,))
    store = table.log.store
    store.put(checkpoint_path(4), flipped(store.get(checkpoint_path(4)), "add.path"))
    if not has_checksum:
        store.delete(checksum_path(4))
    fresh = sl.Table(Log(store, clock=table.log.clock))
    assert fresh.clean_log().paths == ()
    assert fresh.snapshot().to_arrow().num_rows == 9


def test_what_a_checkpoint_that_its_checksum_contradicts_stands_for_stays():
    table = daily(10, checkpoints=(3, 4))
    store = table.log.store
    other = daily(10, checkpoints=(4,), properties={**BY_HAND, "mine": "x"}).log.store
    store.put(checkpoint_path(4), other.get(checkpoint_path(4)))
    assert table.clean_log().first_version == 3
    fresh = sl.Table(Log(store, clock=table.log.clock))
    assert fresh.snapshot().to_arrow().num_rows == 9


def put_v2(table: sl.Table, version: int, *sidecars: str) -> str:
    """A checkpoint that names sidecars, which hold its files; returns its path."""
    lines = table.log.store.get(commit_path(0)).splitlines()
    kept = [line for line in lines if line.startswith((b'{"protocol"', b'{"metaData"'))]
    size = len(sidecar())
    named = [{"path": name, "sizeInBytes": size, "modificationTime": 0} for name in sidecars]
    actions = [{"checkpointMetadata": {"version": version}}, *({"sidecar": n} for n in named)]
    path = f"_delta_log/{version:020d}.checkpoint.{uuid.UUID(int=version)}.json"
    text = b"\n".join([*kept, *(json.dumps(action).encode() for action in actions)])
    table.log.store.put(path, text + b"\n")
    return path


def put_sidecars(table: sl.Table, *names: str) -> None:
    for name in names:
        table.log.store.put(f"_delta_log/_sidecars/{name}", sidecar())


def sidecar() -> bytes:
    """One that holds nothing."""
    data = io.BytesIO()
    pq.write_table(pa.table({"nothing": pa.nulls(0)}), data)
    return data.getvalue()


def sidecars_left(table: sl.Table) -> list[str]:
    listed = table.log.store.list_from("_delta_log/_sidecars/")
    return [meta.path.rpartition("/")[2] for meta in listed]


def test_our_own_v2_checkpoints_go_with_their_sidecars():
    properties = {**BY_HAND, "delta.checkpointPolicy": "v2"}
    table = daily(10, checkpoints=(1, 4, 8), compactions=(3,), properties=properties)
    assert len(sidecars_left(table)) == 3
    assert table.clean_log().first_version == 4
    assert len(sidecars_left(table)) == 2
    assert readable(table) == [4, 5, 6, 7, 8, 9]


def table_with_sidecars() -> sl.Table:
    """Checkpoints at 2, 5 and 7 of a sidecar each, one of both last, and one of none."""
    table = daily(9)
    put_sidecars(table, "2.parquet", "5.parquet", "7 a.parquet", "both.parquet", "none.parquet")
    put_v2(table, 2, "2.parquet")
    put_v2(table, 5, "5.parquet", "both.parquet")
    put_v2(table, 7, "7%20a.parquet", "both.parquet")
    table.log.clock.sleep(2 * DAY_S)
    put_sidecars(table, "fresh.parquet")
    return table


def test_sidecars_go_when_no_checkpoint_that_stays_names_them():
    table = table_with_sidecars()
    done = table.clean_log()
    assert done.first_version == 5
    assert sidecars_left(table) == ["5.parquet", "7 a.parquet", "both.parquet", "fresh.parquet"]
    assert [path.rpartition("/")[2] for path in done.paths[-2:]] == ["2.parquet", "none.parquet"]


def test_a_checkpoint_that_lacks_a_sidecar_serves_nobody():
    table = table_with_sidecars()
    table.log.store.delete("_delta_log/_sidecars/both.parquet")
    assert table.clean_log().first_version == 2


def test_while_a_checkpoint_cannot_be_read_no_sidecar_goes():
    table = table_with_sidecars()
    table.log.store.put(put_v2(table, 7), b'{"sidecar":')
    before = sidecars_left(table)
    assert table.clean_log().first_version == 5
    assert sidecars_left(table) == before


def test_a_version_that_someone_needs_is_kept_with_what_leads_to_it():
    table = daily(12, checkpoints=(2, 5, 7))
    assert table.clean_log(keep_from=6, dry_run=True).first_version == 5
    assert table.clean_log(keep_from=1, dry_run=True).paths == ()
    assert table.clean_log(keep_from=4).first_version == 2
    assert readable(table) == list(range(2, 12))


@pytest.mark.parametrize("version", [-1, True, 1.5, "3"])
def test_a_version_to_keep_that_is_none_is_refused(version):
    with pytest.raises(sl.InvalidInputError, match="keep the log from"):
        daily(2).clean_log(keep_from=version)


def test_what_the_bound_leaves_goes_the_next_time():
    table = daily(10, checkpoints=(4,))
    bounded = sl.Table(Log(table.log.store, clock=table.log.clock, limits=Limits(clean_up_files=3)))
    first = bounded.clean_log()
    assert ([short(path) for path in first.paths], first.is_complete) == (
        ["0.json", "1.json", "2.json"],
        False,
    )
    assert bounded.clean_log().is_complete
    assert versions_left(table) == [4, 5, 6, 7, 8, 9]


def test_a_checkpoint_brings_a_clean_up_along_once_a_day():
    table = daily(10, checkpoints=(4,), properties=RETENTION)
    table.checkpoint()
    assert versions_left(table)[0] == 4
    store = CountingStore(table.log.store)
    again = sl.Table(Log(store, clock=table.log.clock))
    again.checkpoint()
    store.requests.clear()
    again.checkpoint()
    assert store.count("list_from") == 1  # of the checkpoint itself


def test_appends_bring_it_along_too_when_a_checkpoint_is_due():
    properties = {**RETENTION, "delta.checkpointInterval": "2"}
    table = daily(10, properties=properties)
    assert versions_left(table)[0] == 4
    assert readable(table) == list(range(4, 10))


def test_a_table_that_switches_it_off_is_cleaned_up_only_by_hand():
    table = daily(10, checkpoints=(4, 9), properties=BY_HAND)
    assert versions_left(table)[0] == 0
    assert table.clean_log().first_version == 4


def test_what_is_in_the_way_of_a_clean_up_does_not_fail_the_checkpoint():
    table = daily(10, checkpoints=(4,), properties=RETENTION)
    store = FaultyStore(table.log.store, [Fault(kind="lost_before", method="delete", times=None)])
    assert sl.Table(Log(store, clock=table.log.clock)).checkpoint() == 9


def test_it_stops_when_it_has_taken_long_enough():
    table = daily(10, checkpoints=(4,), properties=RETENTION)

    class Slow(CountingStore):
        def delete(self, path):
            table.log.clock.sleep(3)
            super().delete(path)

    handle = sl.Table(Log(Slow(table.log.store), clock=table.log.clock))
    handle.checkpoint()
    assert versions_left(table)[0] in {1, 2}
    handle.checkpoint()
    handle.checkpoint()
    assert versions_left(table)[0] == 4
