"""Log clean-up beside crashes, readers and clocks that are wrong."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamlake as sl
from log.cleaning import (
    BY_HAND,
    DAY_S,
    MIDNIGHT_MS,
    NAMES,
    RETENTION,
    daily,
    log_names,
    one_row,
    readable,
    versions_left,
)
from streamlake.log import Log
from streamlake.protocol import (
    LAST_CHECKPOINT,
    AddFile,
    checkpoint_path,
    commit_path,
    encode_actions,
)
from streamlake.testing import CountingStore, Fault, FaultyStore, ManualClock


@pytest.mark.parametrize("kind", ["lost_before", "lost_after"])
@pytest.mark.parametrize("nth", range(1, 7))
def test_breaking_off_at_any_removal_leaves_a_log_that_reads_whole(nth, kind):
    table = daily(10, checkpoints=(2, 4, 8))
    expected = table.snapshot().to_arrow().num_rows
    store = FaultyStore(
        table.log.store, [Fault(kind=kind, method="delete", path="_delta_log", nth=nth)]
    )
    with pytest.raises(sl.StorageError):
        sl.Table(Log(store, clock=table.log.clock)).clean_log()
    fresh = sl.Table(Log(table.log.store, clock=table.log.clock))
    assert fresh.snapshot().to_arrow().num_rows == expected
    assert set(readable(table)) >= set(range(4, 10))
    fresh.clean_log()
    assert versions_left(table) == [4, 5, 6, 7, 8, 9]


def test_a_store_whose_clock_is_another_refuses_every_removal():
    clock = ManualClock(now_ms=MIDNIGHT_MS, seed=next(NAMES))
    table = daily(10, checkpoints=(4,), clock=clock)
    ahead = ManualClock(now_ms=clock.now_ms() + 400 * DAY_S * 1000)
    before = log_names(table)
    with pytest.raises(sl.ClockError, match="the store's clock contradict"):
        sl.Table(Log(table.log.store, clock=ahead)).clean_log()
    assert log_names(table) == before


class JumpingClock(ManualClock):
    """A wall clock that somebody sets."""

    offset_ms = 0

    def now_ms(self):
        return super().now_ms() + self.offset_ms


@pytest.mark.parametrize("jump_days", [-400, 400])
def test_a_clock_that_jumps_while_the_table_is_open_removes_nothing(jump_days):
    clock = JumpingClock(now_ms=MIDNIGHT_MS, seed=next(NAMES))
    table = daily(10, checkpoints=(4, 9), clock=clock)
    before = log_names(table)
    clock.offset_ms = jump_days * DAY_S * 1000
    if jump_days < 0:
        assert table.clean_log().paths == ()
    else:
        with pytest.raises(sl.ClockError, match="the time that passed contradict"):
            table.clean_log()
    assert log_names(table) == before


def test_a_commit_of_the_future_refuses_every_removal():
    clock = JumpingClock(now_ms=MIDNIGHT_MS, seed=next(NAMES))
    table = daily(10, checkpoints=(4,), clock=clock)
    clock.offset_ms = 30 * DAY_S * 1000
    table.append(one_row(table))
    clock.offset_ms = 0
    with pytest.raises(sl.ClockError, match="the newest commit contradict"):
        sl.Table(Log(table.log.store, clock=clock)).clean_log()


def test_a_contradiction_of_clocks_does_not_fail_the_checkpoint_and_is_told_once_a_day(caplog):
    clock = JumpingClock(now_ms=MIDNIGHT_MS, seed=next(NAMES))
    table = daily(10, checkpoints=(4,), clock=clock, properties=RETENTION)
    clock.offset_ms = 400 * DAY_S * 1000
    for _ in range(3):
        assert table.checkpoint() == 9
    assert caplog.text.count("contradict each other") == 1
    assert versions_left(table)[0] == 0


def test_times_that_fall_back_do_not_make_a_commit_older_than_the_one_before():
    clock = JumpingClock(now_ms=MIDNIGHT_MS, seed=next(NAMES))
    table = daily(10, checkpoints=(8,), clock=clock)
    store = table.log.store
    for version in (6, 7, 8):
        clock.offset_ms = -100 * DAY_S * 1000
        store.put(commit_path(version), store.get(commit_path(version)))
    clock.offset_ms = 0
    assert table.clean_log(dry_run=True).first_version == 8
    store.put(commit_path(5), store.get(commit_path(5)))
    assert table.clean_log(dry_run=True).paths == ()


def test_a_tail_that_is_overtaken_learns_of_it():
    table = daily(10, checkpoints=(4,))
    batches = table.tail(start=1, stop="latest")
    next(batches)
    table.clean_log()
    for _ in batches:  # what was read ahead may still come
        pass
    with pytest.raises(sl.LogTruncatedError):
        list(table.tail(start=1, stop="latest"))


def test_a_handle_that_knows_an_old_version_goes_on_from_the_checkpoint():
    table = daily(3)
    other = sl.Table(Log(table.log.store, clock=table.log.clock))
    other.snapshot()
    for version in range(3, 12):
        table.log.clock.sleep(DAY_S)
        table.append(one_row(table))
        if version == 7:
            table.checkpoint()
    table.clean_log()
    assert versions_left(table)[0] == 7
    assert other.snapshot().version == 11
    assert other.snapshot().to_arrow().num_rows == table.snapshot().to_arrow().num_rows


class CleanedMeanwhile(CountingStore):
    """Another process cleans the log up right before the read of one path."""

    def __init__(self, inner, path, clean):
        super().__init__(inner)
        self.path, self.clean = path, clean

    def get(self, path):
        if path == self.path:
            self.path = ""
            self.clean()
        return super().get(path)


@pytest.mark.parametrize("stale_hint", [False, True])
def test_a_reader_of_the_newest_version_reads_on_from_a_newer_checkpoint(stale_hint):
    table = daily(12, checkpoints=(2, 7))
    if stale_hint:
        table.log.store.put(LAST_CHECKPOINT, b'{"version":2}')
    path = commit_path(5) if stale_hint else checkpoint_path(7)
    store = CleanedMeanwhile(table.log.store, path, table.clean_log)
    reader = Log(store, clock=table.log.clock)
    assert reader.snapshot().version == 11
    assert len(reader.snapshot().files()) == len(table.snapshot().files())


def test_a_reader_of_a_version_that_is_going_is_told():
    table = daily(12, checkpoints=(2, 7))
    store = CleanedMeanwhile(table.log.store, commit_path(5), table.clean_log)
    with pytest.raises(sl.LogTruncatedError):
        Log(store, clock=table.log.clock).snapshot(5)


@settings(max_examples=15, deadline=None)
@given(
    checkpoints=st.sets(st.integers(0, 8), max_size=4),
    compactions=st.sets(st.integers(0, 8), max_size=2),
    policy=st.sampled_from(["classic", "v2"]),
    idle_hours=st.integers(0, 100),
    keep_from=st.none() | st.integers(0, 9),
)
def test_every_version_since_the_cutoff_can_be_read_afterwards(
    checkpoints, compactions, policy, idle_hours, keep_from
):
    table = daily(
        9,
        checkpoints=checkpoints,
        compactions=compactions,
        properties={**BY_HAND, "delta.checkpointPolicy": policy},
    )
    table.log.clock.sleep(idle_hours * 3600)
    times = {record.version: record.timestamp_ms for record in table.history()}
    rows = {version: table.snapshot(version).to_arrow().num_rows for version in times}
    done = table.clean_log(keep_from=keep_from)
    since = [version for version, ms in times.items() if ms > done.cutoff_ms]
    needed = {*since, table.version, *(range(keep_from, 9) if keep_from is not None else ())}
    left = readable(table)
    assert needed <= set(left)
    fresh = sl.Table(Log(table.log.store))
    assert {v: fresh.snapshot(v).to_arrow().num_rows for v in left} == {v: rows[v] for v in left}
    assert table.clean_log(keep_from=keep_from).paths == ()


def test_a_snapshot_whose_checkpoint_is_removed_says_so_when_more_of_it_is_read():
    table = daily(2)
    dice = random.Random(7)
    adds = [
        AddFile(f"{n}.parquet", {}, 1, 0, data_change=True, stats=dice.randbytes(150_000).hex())
        for n in range(100)
    ]
    table.log.store.put(commit_path(2), encode_actions(adds))
    table.checkpoint()  # too large to be fetched whole: its columns are read as they are asked for
    for _ in range(6):
        table.log.clock.sleep(DAY_S)
        table.append(one_row(table))
    table.checkpoint()
    old = sl.Table(Log(table.log.store, clock=table.log.clock)).snapshot(3)
    assert len(old.files()) == 102
    table.log.clock.sleep(5 * DAY_S)
    assert table.clean_log().first_version == 8
    assert len(old.files()) == 102
    with pytest.raises(sl.LogTruncatedError, match="removed while it was read"):
        old.files().column("stats")
