"""Log compaction files: used where they save requests, never trusted further than the commits."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamlake as sl
from streamlake.log import Limits, Log, Transaction, compact, find_segment
from streamlake.protocol import (
    CommitInfo,
    DomainMetadata,
    Protocol,
    RemoveFile,
    compacted_path,
    decode_actions,
)
from streamlake.testing import CountingStore, ManualClock, TableBuilder

ADD_X = (
    b'{"add":{"path":"x","partitionValues":{},"size":1,"modificationTime":1,"dataChange":true}}\n'
)
TEN = TableBuilder(clock=ManualClock()).append(times=10)
"""Versions 0 to 10 without a checkpoint; n is 0 to 9."""


def numbers(store) -> list[int | None]:
    return sl.Table(Log(store)).snapshot().to_arrow()["n"].to_pylist()


def row(n: int) -> pa.Table:
    return pa.table({"n": [n]})


def requests_to_open(store) -> int:
    counting = CountingStore(store)
    Log(counting).refresh()
    return len(counting.requests)


def test_a_compacted_log_opens_in_three_requests_and_gives_the_same_table():
    store = TEN.write()
    assert requests_to_open(store) == 13
    assert sl.Table(Log(store)).compact_log() == (0, 10)
    assert requests_to_open(store) == 3
    assert numbers(store) == list(range(10))


def test_it_holds_what_the_commits_come_to():
    table = TEN.remove(0, 1).append(txn=sl.SetTransaction("a", 1)).build()
    table.append(row(11), txn=sl.SetTransaction("a", 2))
    assert table.compact_log() == (0, 13)
    actions = decode_actions(table.log.store.get(compacted_path(0, 13)))
    kinds = [type(action).__name__ for action in actions]
    assert {kind: kinds.count(kind) for kind in kinds} == {
        "Protocol": 1, "Metadata": 1, "RemoveFile": 2, "AddFile": 10, "SetTransaction": 1,
    }  # fmt: skip
    assert not any(getattr(action, "data_change", False) for action in actions)


def test_a_domain_that_was_removed_stays_removed():
    gone = [DomainMetadata("d", "x", removed=False), DomainMetadata("d", "x", removed=True)]
    rights = Protocol(1, 7, None, ("domainMetadata",))
    builder = TEN.commit(rights, gone[0]).checkpoint().commit(gone[1]).append()
    table = builder.build()
    assert table.compact_log() == (12, 13)
    table.checkpoint()
    assert numbers(table.log.store) == list(range(11))
    actions = decode_actions(table.log.store.get(compacted_path(12, 13)))
    assert gone[1] in actions


def test_only_commits_since_the_newest_checkpoint_are_compacted():
    table = TEN.checkpoint().append().build()
    assert table.compact_log() is None
    table.append(row(11))
    assert table.compact_log() == (11, 12)


def test_it_is_not_used_across_a_checkpoint():
    store = TEN.checkpoint().append(times=2).write()
    first = compacted_path(9, 12)
    store.put(first, b'{"txn":{"appId":"wrong","version":1}}\n')
    snapshot = sl.Table(Log(store)).snapshot()
    assert snapshot.txn_version("wrong") is None
    assert snapshot.to_arrow().num_rows == 12


def test_it_is_not_used_for_a_version_inside_of_it():
    table = TEN.build()
    table.compact_log()
    assert table.snapshot(version=5).to_arrow()["n"].to_pylist() == list(range(5))


def test_a_tail_reads_the_commits():
    table = TEN.then(lambda t: t.append(row(10))).overwrite(1).build()
    table.compact_log()
    batches = table.tail(start="earliest", stop=11)
    assert [n for batch in batches for n in batch.data["n"].to_pylist()] == list(range(11))


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\n", b"{", b"\0" * 50, b'{"add":{"path":"x"}}',
        b'{"txn":{"appId":"a","version":2}}\n{"txn":{"appId":"a","version":1}}\n',
        b'{"remove":{"path":"x","dataChange":true}}\n' + ADD_X,
        ADD_X + ADD_X.replace(b"x", b"%78"),
        ADD_X.replace(b"add", b"aed"),
    ],
)  # fmt: skip
def test_one_that_is_garbled_or_not_reconciled_is_not_used(data):
    store = TEN.put(compacted_path(0, 10), data).write()
    assert numbers(store) == list(range(10))


@pytest.mark.parametrize("data", [b"", b"\n\n"])
def test_an_empty_one_hides_no_commits(data):
    store = TEN.put(compacted_path(3, 10), data).write()
    assert numbers(store) == list(range(10))


def test_commits_that_come_to_nothing_get_none():
    table = TEN.checkpoint().commit(CommitInfo({})).commit(CommitInfo({})).build()
    assert table.compact_log() is None
    assert find_segment(table.log.store).compactions == ()


def test_one_that_vanishes_is_not_missed():
    store = TEN.write()
    sl.Table(Log(store)).compact_log()
    segment = find_segment(store)
    store.delete(compacted_path(0, 10))
    assert compact(store, segment) == (0, 10)
    assert numbers(store) == list(range(10))


def test_compacting_again_reads_what_was_compacted():
    store = TEN.write()
    table = sl.Table(Log(store))
    table.compact_log()
    for n in (10, 11):
        table.append(row(n))
    counting = CountingStore(store)
    assert compact(counting, find_segment(store)) == (0, 12)
    assert len([1 for method, _ in counting.requests if method == "get"]) == 3
    assert requests_to_open(store) == 3
    assert numbers(store) == list(range(12))


def test_it_holds_no_more_than_a_commit_may():
    store = TEN.write()
    tight = Log(store, limits=Limits(commit_actions=6))
    assert sl.Table(tight).compact_log() == (0, 3)
    size_bytes = sum(len(store.get(f"_delta_log/{v:020d}.json")) for v in range(4))
    assert sl.Table(Log(store, limits=Limits(commit_bytes=size_bytes))).compact_log() is not None
    assert numbers(store) == list(range(10))


def test_a_table_with_a_feature_of_unknown_writers_gets_neither_compaction_nor_checkpoint():
    unknown = Protocol(1, 7, None, ("telepathy",))
    table = TEN.commit(unknown).build()
    for write in (table.compact_log, table.checkpoint):
        with pytest.raises(sl.UnsupportedFeatureError, match="telepathy"):
            write()
    assert find_segment(table.log.store).compactions == ()


def test_one_larger_than_a_commit_may_be_is_not_read():
    store = TEN.write()
    sl.Table(Log(store)).compact_log()
    limit = len(store.get(compacted_path(0, 10))) - 1
    counting = CountingStore(store)
    Log(counting, limits=Limits(commit_bytes=limit)).refresh()
    assert len(counting.requests) == 14


STEPS = st.lists(
    st.sampled_from(["append", "remove", "again", "compact", "checkpoint"]), max_size=9
)


@settings(max_examples=40)
@given(STEPS)
def test_any_history_reads_the_same_with_compaction_and_without(steps):
    table = TableBuilder(clock=ManualClock()).append(times=2).build()
    removed = []
    for step in steps:
        if step == "append":
            table.append(row(len(steps)))
        elif step == "compact":
            table.compact_log()
        elif step == "checkpoint":
            table.checkpoint()
        elif step == "remove" and len(table.snapshot().files()):
            removed.append(table.snapshot().files()[0])
            change(table, removed[-1], None)
        elif step == "again" and removed:
            change(table, None, removed.pop())
    opened = sl.Table(Log(table.log.store)).snapshot()
    files = {add.path for add in opened.files()}
    for meta in list(table.log.store.list_from("_delta_log/")):
        if not meta.path.endswith(".json") or "compacted" in meta.path:
            table.log.store.delete(meta.path)
    assert {add.path for add in sl.Table(Log(table.log.store)).snapshot().files()} == files


def change(table, old, new):
    removes = () if old is None else (remove_of(old),)
    adds = () if new is None else (new,)
    version = table.log.refresh().version
    table.log.commit(
        Transaction(operation="DELETE", removes=removes, adds=adds, read_version=version)
    )


def remove_of(add):
    return RemoveFile(path=add.path, data_change=True, deletion_timestamp=2**50)
