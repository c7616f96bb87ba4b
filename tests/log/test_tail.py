"""Following the log commit by commit."""

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

import streamlake as sl
from streamlake import operations
from streamlake.log import Limits, Log, LogTail
from streamlake.storage import MemoryStore
from streamlake.testing import CountingStore, Fault, FaultyStore, ManualClock

SCHEMA = pa.schema([pa.field("n", pa.int64())])


def table_of(commits: int, store: MemoryStore) -> sl.Table:
    log = Log(store, clock=ManualClock())
    operations.create(log, SCHEMA)
    table = sl.Table(log)
    for n in range(1, commits):
        table.append(pa.table([[n]], schema=SCHEMA))
    return table


def commit(store, version: int) -> None:
    store.put(f"_delta_log/{version:020d}.json", b'{"commitInfo":{"operation":"X"}}\n')


def tail_of(store, next_version: int = 0, **limits) -> LogTail:
    return LogTail(store, next_version=next_version, clock=ManualClock(), limits=Limits(**limits))


def drain(tail: LogTail, **options) -> list[int]:
    """Versions until two polls in a row find nothing: one may have been a listing that lags."""
    versions: list[int] = []
    idle = 0
    while idle < 2:
        commits = tail.poll(**options)
        idle = 0 if commits else idle + 1
        versions += [commit.version for commit in commits]
    return versions


def poll_often(tail: LogTail) -> None:
    for _ in range(8):
        tail.poll()


def test_every_commit_is_read_once_and_in_order():
    store = MemoryStore()
    table_of(200, store)
    assert drain(tail_of(store)) == list(range(200))


def test_reading_side_by_side_keeps_the_order():
    store = MemoryStore()
    table_of(200, store)
    with ThreadPoolExecutor(4) as executor:
        assert drain(tail_of(store), executor=executor, most=16) == list(range(200))


def test_an_idle_poll_is_one_request():
    store = CountingStore(MemoryStore())
    table_of(3, store)
    tail = tail_of(store, 3)
    store.requests.clear()
    for polls in range(1, 50):
        assert tail.poll() == ()
        assert len(store.requests) == polls


def test_an_idle_tail_lists_now_and_then_and_notices_a_truncated_log():
    store = MemoryStore()
    table = table_of(3, store)
    tail = tail_of(store, 3, idle_polls_per_listing=4)
    assert drain(tail) == []
    for n in range(3, 8):
        table.append(pa.table([[n]], schema=SCHEMA))
    table.checkpoint()
    for version in range(6):
        store.delete(f"_delta_log/{version:020d}.json")
    with pytest.raises(sl.LogTruncatedError, match="Version 3 has been removed"):
        poll_often(tail)


def test_a_log_that_is_all_checkpoint_is_truncated():
    store = MemoryStore()
    table = table_of(6, store)
    table.checkpoint()
    for version in range(6):
        store.delete(f"_delta_log/{version:020d}.json")
    with pytest.raises(sl.LogTruncatedError):
        tail_of(store, 3).look_ahead()


def test_a_checkpoint_at_the_next_version_shows_that_its_commit_is_missing():
    store = MemoryStore()
    table_of(6, store).checkpoint()
    store.delete(f"_delta_log/{5:020d}.json")
    with pytest.raises(sl.LogGapError, match="Version 5"):
        tail_of(store, 5).look_ahead()


def test_a_gap_is_an_error_and_nothing_behind_it_is_delivered():
    store = MemoryStore()
    table_of(8, store)
    store.delete(f"_delta_log/{4:020d}.json")
    tail = tail_of(store)
    assert [commit.version for _ in range(2) for commit in tail.poll()] == [0, 1]
    with pytest.raises(sl.LogGapError, match="Version 4"):
        tail.poll()
    assert tail.next_version == 2


def test_a_listing_that_lags_behind_is_waited_for():
    inner = MemoryStore()
    store = FaultyStore(inner, [Fault(kind="stale", method="list_from", entries=3, times=None)])
    table_of(20, inner)
    assert drain(tail_of(store)) == list(range(20))


def test_a_listing_that_repeats_entries_changes_nothing():
    inner = MemoryStore()
    store = FaultyStore(inner, [Fault(kind="duplicated", method="list_from", times=None)])
    table_of(20, inner)
    assert drain(tail_of(store)) == list(range(20))


def test_a_failing_read_is_an_error_and_the_next_poll_goes_on_from_there():
    inner = MemoryStore()
    store = FaultyStore(inner, [Fault(kind="lost_before", method="get", nth=2)])
    table_of(3, inner)
    tail = tail_of(store)
    first = tail.poll()
    with pytest.raises(sl.StorageError):
        tail.poll()
    assert [commit.version for commit in first] + drain(tail) == [0, 1, 2]


def test_compacted_files_and_other_names_are_passed_over():
    store = MemoryStore()
    table_of(4, store)
    for name in [
        f"{1:020d}.{3:020d}.compacted.json",
        f"{1:020d}.crc",
        f"{2:020d}.json.tmp",
        "_staged_commits/" + f"{9:020d}.json",
        f".{9:020d}.json.crc",
        f"sub/{9:020d}.json",
    ]:
        store.put(f"_delta_log/{name}", b"not to be read")
    assert drain(tail_of(store)) == [0, 1, 2, 3]


def test_a_tail_that_keeps_up_with_its_writer_lists_ever_more_rarely():
    store = CountingStore(MemoryStore())
    table_of(1, store)
    tail = tail_of(store)
    drain(tail)
    store.requests.clear()
    for version in range(1, 401):
        commit(store, version)
        while not tail.poll():
            pass
    listings = sum(method == "list_from" for method, _ in store.requests)
    assert listings <= 20


def test_a_tail_that_falls_behind_again_lists_soon():
    store = CountingStore(MemoryStore())
    table_of(1, store)
    tail = tail_of(store)
    drain(tail)
    for version in range(1, 101):
        commit(store, version)
        while not tail.poll():
            pass
    for version in range(101, 301):
        commit(store, version)
    store.requests.clear()
    assert drain(tail) == list(range(101, 301))
    assert "list_from" in [method for method, _ in store.requests[:34]]
