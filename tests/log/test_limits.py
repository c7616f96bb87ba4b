"""Every bound on the log has a name, and an input that goes past it is told by that name."""

import json
import os

import pyarrow as pa
import pytest

import streamlake as sl
from streamlake.log import Limits, Log, commit_times, list_log, read_commit
from streamlake.protocol import LAST_CHECKPOINT, MAX_INT64, commit_path
from streamlake.storage import LocalStore, MemoryStore
from streamlake.storage.store import WHOLE_OBJECT_BYTES
from streamlake.testing import TableBuilder


def line(action: str, **fields: object) -> bytes:
    return json.dumps({action: fields}).encode() + b"\n"


def add(number: int, **fields: object) -> bytes:
    base = {"path": f"{number}.parquet", "partitionValues": {}, "size": 1, "modificationTime": 0}
    return line("add", **base, dataChange=True, **fields)


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


PAST = {
    "commit_bytes": (Limits(commit_bytes=500), add(1, stats="x" * 500)),
    "commit_actions": (Limits(commit_actions=3), b"".join(add(n) for n in range(4))),
    "action_bytes": (Limits(action_bytes=300), add(0) + add(1, stats="x" * 300)),
    "json_depth": (Limits(json_depth=5), line("commitInfo", deep=nested(5))),
}


@pytest.mark.parametrize("name", PAST)
def test_a_commit_past_a_limit_is_told_by_the_limits_name(name):
    limits, data = PAST[name]
    table = TableBuilder().append().build()
    table.log.store.put(commit_path(2), data)
    with pytest.raises(sl.LimitExceededError, match="past a limit") as caught:
        Log(table.log.store, limits=limits).refresh()
    assert f"Limits.{name} is {getattr(limits, name)}" in caught.value.found
    assert f"Limits.{name}" in caught.value.remedy


@pytest.mark.parametrize("name", PAST)
def test_the_same_commit_is_read_where_the_limit_allows_it(name):
    _, data = PAST[name]
    store = MemoryStore()
    store.put(commit_path(2), data)
    assert read_commit(store, 2).size_bytes == len(data)


def test_a_nesting_bomb_in_a_commit_is_past_a_limit():
    store = MemoryStore()
    store.put(commit_path(0), b'{"commitInfo":{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}}\n")
    with pytest.raises(sl.LimitExceededError, match="past a limit"):
        read_commit(store, 0)


def test_a_number_of_a_million_digits_is_refused_or_read_but_no_crash():
    store = MemoryStore()
    store.put(commit_path(0), b'{"txn":{"appId":"a","version":' + b"9" * 1_000_000 + b"}}\n")
    with pytest.raises(sl.CorruptTableError):
        read_commit(store, 0)


@pytest.mark.parametrize("name", ["commit_actions", "action_bytes"])
def test_what_nobody_could_read_is_not_committed(name):
    limits = Limits(**{name: 4 if name == "commit_actions" else 900})
    table = TableBuilder().build()
    writer = sl.Table(Log(table.log.store, limits=limits))
    markers = [sl.SetTransaction(app_id, 1) for app_id in ("a" * 1000, "b", "c")]
    with pytest.raises(sl.LimitExceededError, match="nothing was committed") as caught:
        writer.append(pa.table({"n": [1]}), txn=markers)
    assert f"Limits.{name}" in caught.value.found
    assert table.snapshot().version == 0


def test_a_listing_is_bounded():
    store = MemoryStore()
    for version in range(20):
        store.put(commit_path(version), b"{}\n")
    assert len(list(list_log(store, limits=Limits(listed_entries=20)))) == 20
    with pytest.raises(sl.LimitExceededError, match="more entries than the limit"):
        list(list_log(store, limits=Limits(listed_entries=19)))
    assert len(list(commit_times(store, 15, limits=Limits(listed_entries=5)))) == 5


CHECKPOINT_PAST = {
    "checkpoint_actions": 3,
    "checkpoint_block_bytes": 60,
    "checkpoint_column_bytes": 100,
}


@pytest.mark.parametrize("name", CHECKPOINT_PAST)
def test_a_checkpoint_past_a_limit_is_told_by_the_limits_name(name):
    table = TableBuilder().append(times=20).checkpoint().build()
    limit = CHECKPOINT_PAST[name]
    bounded = Log(table.log.store, limits=Limits(**{name: limit}))
    with pytest.raises(sl.LimitExceededError, match="checkpoint is past a limit") as caught:
        bounded.snapshot().files().column("path")
    assert f"Limits.{name} is {limit}" in caught.value.found


def test_a_column_that_decodes_to_more_than_its_file_is_bounded():
    table = TableBuilder().append().build()
    for number in range(100):
        bomb = add(number, stats='{"numRecords":1,"minValues":{"n":"' + "x" * 10_000 + '"}}')
        table.log.store.put(commit_path(2 + number), bomb)
    table.checkpoint()
    (path,) = [m.path for m in table.log.store.list_from("_delta_log/") if "checkpoint.p" in m.path]
    assert len(table.log.store.get(path)) < 500_000
    files = Log(table.log.store, limits=Limits(checkpoint_column_bytes=500_000)).snapshot().files()
    assert len(files) == 101
    with pytest.raises(sl.LimitExceededError, match="past a limit"):
        files.column("stats")


def test_a_footer_past_its_limit_is_refused():
    table = TableBuilder().append(times=3).checkpoint().delete_commits(below=4).build()
    bounded = Log(table.log.store, limits=Limits(checkpoint_footer_elements=2))
    with pytest.raises(sl.CorruptTableError, match="can't be read"):
        bounded.refresh()


def test_an_object_that_is_too_large_is_not_fetched_whole(tmp_path):
    path = tmp_path / commit_path(0)
    path.parent.mkdir()
    path.touch()
    os.truncate(path, WHOLE_OBJECT_BYTES + 1)
    with pytest.raises(sl.LimitExceededError, match="too large to be fetched whole"):
        read_commit(LocalStore(tmp_path), 0)


def test_the_highest_version_there_can_be_is_read_and_no_other_follows():
    table = TableBuilder().append(2).checkpoint().build()
    store = table.log.store
    checkpoint = store.get(f"_delta_log/{1:020d}.checkpoint.parquet")
    store.put(f"_delta_log/{MAX_INT64:020d}.checkpoint.parquet", checkpoint)
    store.put(commit_path(MAX_INT64), line("commitInfo", operation="WRITE"))
    store.put(LAST_CHECKPOINT, json.dumps({"version": MAX_INT64, "size": 3}).encode())
    poisoned = sl.Table(Log(store))
    assert poisoned.snapshot().version == MAX_INT64
    assert poisoned.snapshot().to_arrow().num_rows == 2
    with pytest.raises(sl.InvalidInputError, match="reservoirVersion"):
        list(poisoned.tail(start=MAX_INT64, stop="latest"))  # no offset can lie behind it
    with pytest.raises(sl.InvalidInputError, match="can't be a version"):
        poisoned.append(pa.table({"n": [1]}))


@pytest.mark.parametrize("rogue", [40, 10**12, MAX_INT64])
def test_a_huge_gap_is_told_at_once(rogue):
    table = TableBuilder().append(times=3).build()
    store = table.log.store
    store.put(commit_path(rogue), line("commitInfo", operation="WRITE"))
    with pytest.raises(sl.LogGapError, match="Commit 4"):
        Log(store).refresh()
    quick = Log(store, limits=Limits(gap_wait_s=0.01, idle_polls_per_listing=2))
    with pytest.raises(sl.LogGapError):
        list(sl.Table(quick).tail(start=0, stop=4))


@pytest.mark.parametrize("name", ["9223372036854775808", "99999999999999999999"])
def test_a_version_past_int64_names_nothing(name):
    table = TableBuilder().append().build()
    table.log.store.put(f"_delta_log/{name}.json", line("commitInfo"))
    assert Log(table.log.store).refresh().version == 1
