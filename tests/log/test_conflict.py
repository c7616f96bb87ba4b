"""The rules of conflicts one by one, where the matrix of operations does not reach."""

import dataclasses
from dataclasses import dataclass
from urllib.parse import quote

import msgspec
import pytest

import conflict_cells
import streamlake as sl
from streamlake.data.predicates import read_predicate
from streamlake.log import WHOLE_TABLE, Limits, Log, Transaction, canonical_key, removal
from streamlake.log.committing.recent import RecentCommits
from streamlake.protocol import (
    AddFile,
    DeletionVector,
    DomainMetadata,
    Protocol,
    RemoveFile,
    commit_path,
    encode_actions,
)
from streamlake.testing import CountingStore, Fault, FaultyStore, ManualClock, TableBuilder

BASE = TableBuilder().append(times=4)
CLOCK = ManualClock()
"""One for all handles: it makes the tokens of their commits."""
VECTOR = DeletionVector("u", "ab^-aqEH.-t@S}K{vb[*k^", 40, 2, 1)


def table_and_store() -> tuple[sl.Table, CountingStore]:
    store = CountingStore(BASE.write())
    return handle(store), store


def handle(store) -> sl.Table:
    table = sl.Table(Log(store, clock=CLOCK))
    table.log.refresh()
    return table


def commit(table: sl.Table, **fields) -> sl.CommitResult:
    """A transaction that was staged at version 4 unless told otherwise."""
    return table.log.commit(Transaction(operation="TEST", **{"read_version": 4, **fields}))


def removed(table: sl.Table, *positions: int, data_change: bool = True) -> tuple[RemoveFile, ...]:
    files = table.snapshot(4).files()
    return tuple(removal(files[p], now_ms=1, data_change=data_change) for p in positions)


def added(name: str, *, data_change: bool = True, **fields) -> tuple[AddFile, ...]:
    return (AddFile(name, {}, 1, 1, data_change, **fields),)


@dataclass(frozen=True)
class Sees:
    """Matches whatever it is shown, and keeps it."""

    shown: list[AddFile]
    sql: str = "n = 7"

    def may_match(self, files, metadata):
        assert metadata.partition_columns == ()
        self.shown.extend(files)
        return True


def test_a_winner_without_provenance_is_no_blind_append():
    table, store = table_and_store()
    add = {"path": "x", "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
    store.put(commit_path(5), msgspec.json.encode({"add": add}) + b"\n")
    with pytest.raises(sl.ConcurrentAppendError, match=r"commit 5 of .*\n.*first x; .* TRUE"):
        commit(table, reads=(WHOLE_TABLE,))


def test_a_winner_that_calls_itself_a_blind_append_and_removes_is_none():
    table, store = table_and_store()
    lines = [
        {"commitInfo": {"isBlindAppend": True}},
        {"remove": {"path": "y", "dataChange": False}},
        {
            "add": {
                "path": "x",
                "partitionValues": {},
                "size": 1,
                "modificationTime": 1,
                "dataChange": True,
            }
        },
    ]
    store.put(commit_path(5), b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    with pytest.raises(sl.ConcurrentAppendError):
        commit(table, reads=(WHOLE_TABLE,))


def test_an_append_that_read_the_table_is_no_blind_append():
    table, store = table_and_store()
    commit(handle(store), adds=added("x"), reads=(WHOLE_TABLE,))
    with pytest.raises(sl.ConcurrentAppendError):
        commit(table, adds=added("y"), reads=(WHOLE_TABLE,))


def test_predicates_are_shown_added_files_with_their_statistics():
    table, store = table_and_store()
    result = handle(store).append(table.snapshot().to_arrow())
    shown: list[AddFile] = []
    with pytest.raises(sl.ConcurrentAppendError, match="n = 7"):
        commit(table, reads=(Sees(shown),), isolation="Serializable")
    assert shown == [handle(store).snapshot(result.version).files()[4]]
    assert shown[0].num_records == 4


def test_predicates_are_shown_removed_files_with_their_statistics():
    table, store = table_and_store()
    commit(handle(store), removes=removed(table, 2))
    shown: list[AddFile] = []
    with pytest.raises(sl.ConcurrentDeleteReadError, match="n = 7"):
        commit(table, reads=(Sees(shown),))
    assert [file.stats for file in shown] == [table.snapshot(4).files()[2].stats]


def test_a_removed_file_of_unknown_partition_may_have_been_of_any():
    cells = TableBuilder().schema(conflict_cells.SCHEMA).partitioned_by("p")
    store = cells.append(times=4).write()
    table = handle(store)
    line = {"remove": {"path": "y", "dataChange": True}}
    store.put(commit_path(5), msgspec.json.encode(line) + b"\n")
    predicate = read_predicate("p = 'no such'", table.log.head.metadata)
    with pytest.raises(sl.ConcurrentDeleteReadError, match="first y"):
        commit(table, reads=(predicate,))


def test_rows_that_only_moved_are_still_those_that_were_read():
    table, store = table_and_store()
    assert handle(store).optimize().commits == 1
    files = tuple(file.key for file in table.snapshot(4).files())
    assert commit(table, reads=(WHOLE_TABLE,), read_files=files).version == 6


def test_a_file_that_was_read_and_removed_conflicts_without_a_predicate():
    table, store = table_and_store()
    commit(handle(store), removes=removed(table, 1))
    first, second = (table.snapshot(4).files()[position].key for position in (0, 1))
    assert commit(table, read_files=(first,)).version == 6
    with pytest.raises(sl.ConcurrentDeleteReadError, match=quote(second[0])):
        commit(table, read_files=(second,))


def test_a_file_whose_deletion_vector_changed_is_another_one():
    table, store = table_and_store()
    old = table.snapshot(4).files()[0]
    new = msgspec.structs.replace(old, deletion_vector=VECTOR)
    deleting = {"adds": (new,), "removes": removed(table, 0)}
    assert commit(handle(store), **deleting).version == 5
    with pytest.raises(sl.ConcurrentDeleteDeleteError):
        commit(table, removes=removed(table, 0, 1, data_change=False))
    again = removal(new, now_ms=1)
    assert commit(table, removes=(again,), read_version=5).version == 6


def test_a_file_is_known_by_any_spelling_of_its_path():
    table, store = table_and_store()
    (gone,) = removed(table, 0)
    spelt = msgspec.structs.replace(gone, path=f"./{gone.path.replace('p', '%70', 1)}")
    commit(handle(store), removes=(spelt,))
    with pytest.raises(sl.ConcurrentDeleteDeleteError):
        commit(table, removes=(gone,))


def test_each_of_several_winners_counts():
    table, store = table_and_store()
    other = handle(store)
    commit(other, removes=removed(table, 0))
    commit(other, removes=removed(table, 3), read_version=5)
    other.optimize()
    assert commit(table, read_files=(table.snapshot(4).files()[1].key,)).version == 8
    with pytest.raises(sl.ConcurrentDeleteDeleteError, match="commit 6"):
        commit(table, removes=removed(table, 3))


def test_what_was_added_and_removed_again_counts_for_whoever_read_meanwhile():
    table, store = table_and_store()
    other = handle(store)
    new = added("x")
    commit(other, adds=new, reads=(WHOLE_TABLE,))
    commit(other, removes=(removal(new[0], now_ms=1),), read_version=5)
    with pytest.raises(sl.ConcurrentAppendError, match="commit 5"):
        commit(table, reads=(WHOLE_TABLE,))


@pytest.mark.parametrize("names", [("a", "b"), ("a",)])
def test_domain_metadata_conflicts_with_that_of_the_same_name(names):
    table, store = table_and_store()
    domains = [DomainMetadata(name, "{}", removed=False) for name in ("a", *names)]
    commit(handle(store), domains=tuple(domains[:1]))
    if len(names) == 2:
        assert commit(table, domains=(domains[2],)).version == 6
    else:
        with pytest.raises(sl.ConcurrentTransactionError, match="'a'"):
            commit(table, domains=(domains[1],))


def test_the_high_water_mark_of_row_ids_is_set_anew_and_does_not_conflict():
    table, store = table_and_store()
    mark = DomainMetadata("delta.rowTracking", '{"rowIdHighWaterMark":1}', removed=False)
    commit(handle(store), domains=(mark,))
    assert commit(table, domains=(mark,)).version == 6


def test_commits_that_the_handle_has_seen_are_tested_without_a_request():
    table, store = table_and_store()
    other = handle(store)
    other.append(table.snapshot().to_arrow())
    table.markers()
    store.requests.clear()
    with pytest.raises(sl.ConcurrentAppendError):
        commit(table, reads=(WHOLE_TABLE,), isolation="Serializable")
    assert store.requests == []


def test_commits_that_the_handle_has_not_kept_are_read():
    table, store = table_and_store()
    table.append(table.snapshot().to_arrow())
    fresh = handle(store)
    with pytest.raises(sl.ConcurrentAppendError, match="commit 5"):
        commit(fresh, reads=(WHOLE_TABLE,), isolation="Serializable")


def test_a_commit_that_is_gone_from_the_log_can_rule_out_nothing():
    table, store = table_and_store()
    table.append(table.snapshot().to_arrow())
    table.checkpoint()
    store.delete(commit_path(5))
    fresh = handle(store)
    with pytest.raises(sl.LogTruncatedError, match="run it again"):
        commit(fresh, removes=removed(table, 0))
    assert fresh.log.refresh().version == 5


def test_the_commits_that_are_kept_are_bounded_by_their_actions():
    table, store = table_and_store()
    commits = list(RecentCommits().between(0, 4, store, limits=table.log.limits))
    recent = RecentCommits(max_actions=5)
    for found in commits:
        recent.note(found)
    store.requests.clear()
    assert list(recent.between(1, 4, store, limits=table.log.limits)) == commits[1:]
    assert [path for _, path in store.requests] == [commit_path(1), commit_path(2)]


def test_the_commits_that_a_transaction_missed_are_bounded():
    table, store = table_and_store()
    for _ in range(3):
        table.append(table.snapshot(4).to_arrow())
    fresh = sl.Table(Log(store, clock=CLOCK, limits=Limits(missed_commits=2)))
    with pytest.raises(sl.LimitExceededError, match=r"3 to be read; Limits.missed_commits is 2"):
        commit(fresh, removes=removed(table, 0))
    assert commit(fresh, removes=removed(table, 0), read_version=5).version == 8


@pytest.mark.parametrize(
    ("then", "known_at"), [("append", 7), ("remove", 5), ("re-encode", 5), ("set", 5)]
)
def test_files_are_known_to_be_there_up_to_a_commit_that_touches_them(then, known_at):
    table, store = table_and_store()
    files = {canonical_key(f.key, root_url=table.url) for f in table.snapshot(4).files()[:2]}
    table.append(table.snapshot(4).to_arrow())
    other = handle(store)
    gone = removed(table, 1)
    if then == "append":
        other.append(table.snapshot(4).to_arrow())
    elif then == "set":
        other.set_properties({"team": "orders"})
    else:
        spelt = f"./{gone[0].path}" if then == "re-encode" else gone[0].path
        commit(other, removes=(msgspec.structs.replace(gone[0], path=spelt),))
    other.append(table.snapshot(4).to_arrow())
    table.markers()
    assert table.log.untouched_since(4, files) == known_at
    assert table.log.untouched_since(4, set()) == (5 if then == "set" else 7)


@pytest.mark.parametrize("version", [-1, 9])
def test_a_transaction_that_depends_on_the_table_says_at_which_version(version):
    table, _ = table_and_store()
    with pytest.raises(sl.InvalidInputError, match=f"read_version {version}"):
        commit(table, removes=removed(table, 0), read_version=version)


def test_a_read_version_that_the_handle_has_not_seen_yet_is_looked_up():
    table, store = table_and_store()
    handle(store).append(table.snapshot().to_arrow())
    assert commit(table, reads=(WHOLE_TABLE,), read_version=5).version == 6


@pytest.mark.parametrize(
    "fields", [{"reads": (WHOLE_TABLE,)}, {"read_files": (("x", None),)}, {"removes": True}]
)
def test_a_blind_append_neither_reads_nor_removes(fields):
    table, _ = table_and_store()
    if "removes" in fields:
        fields = {"removes": removed(table, 0)}
    with pytest.raises(sl.InvalidInputError, match="blind append"):
        commit(table, is_blind_append=True, **fields)


@pytest.mark.parametrize(
    "protocol",
    [
        Protocol(3, 7, ("notOfThisWorld",), ("notOfThisWorld",)),
        Protocol(1, 7, writer_features=("notOfThisWorld",)),
        Protocol(9, 9),
    ],
)
def test_a_table_that_a_winner_puts_out_of_reach_is_told_by_its_feature(protocol):
    store = conflict_cells.LetsOneIn()
    table = handle(dataclasses.replace(BASE, where=store).write())
    line = encode_actions([protocol])
    store.meanwhile = lambda: store.put(commit_path(5), line)
    with pytest.raises(sl.ProtocolChangedError, match=r"notOfThisWorld|version 9") as caught:
        table.append(table.snapshot().to_arrow())
    assert caught.value.where == f"commit 5 of {table.url}"


def test_a_feature_that_a_winner_puts_to_use_and_that_can_not_be_written_is_told():
    store = conflict_cells.LetsOneIn()
    listed = {"delta.feature.icebergCompatV1": "supported"}
    table = handle(TableBuilder(store).properties(listed).append().write())
    metadata = table.log.head.metadata
    using = {**metadata.configuration, "delta.enableIcebergCompatV1": "true"}
    line = encode_actions([msgspec.structs.replace(metadata, configuration=using)])
    store.meanwhile = lambda: store.put(commit_path(2), line)
    with pytest.raises(sl.MetadataChangedError, match="icebergCompatV1"):
        table.append(table.snapshot().to_arrow())


def isolation_of(table: sl.Table, version: int) -> object:
    line = table.log.store.get(commit_path(version)).splitlines()[0]
    return msgspec.json.decode(line)["commitInfo"]["isolationLevel"]


@pytest.mark.parametrize("level", ["WriteSerializable", "Serializable"])
def test_the_isolation_level_of_each_commit_is_told(level):
    properties = {"delta.isolationLevel": level}
    table = TableBuilder().properties(properties).append(times=4).build()
    table.optimize()
    table.confirm_read(table.snapshot())
    told = [isolation_of(table, version) for version in (0, 1, 5, 6)]
    assert told == [level, level, "SnapshotIsolation", "Serializable"]


def test_a_rebased_commit_tells_the_level_that_the_winner_set():
    table, store = table_and_store()
    other = handle(store)
    metadata = other.log.head.metadata
    serializable = {**metadata.configuration, "delta.isolationLevel": "Serializable"}
    commit(other, metadata=msgspec.structs.replace(metadata, configuration=serializable))
    assert table.append(table.snapshot(4).to_arrow()).version == 6
    assert isolation_of(table, 6) == "Serializable"


def test_a_commit_of_unknown_outcome_that_landed_is_not_its_own_conflict():
    store = FaultyStore(BASE.write(), [Fault(kind="lost_after", path=f"{5:020d}.json", times=1)])
    table = handle(store)
    result = commit(table, removes=removed(table, 0), reads=(WHOLE_TABLE,))
    assert (result.version, len(table.snapshot().files())) == (5, 3)


def test_an_old_attempt_that_lands_late_is_met_once():
    store = FaultyStore(BASE.write(), [Fault(kind="late", path=f"{5:020d}.json", times=1, after=2)])
    table = handle(store)
    assert commit(table, removes=removed(table, 0), reads=(WHOLE_TABLE,)).version == 5
    assert len(table.snapshot().files()) == 3
