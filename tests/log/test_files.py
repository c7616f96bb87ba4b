"""The files of a table by column: what a list of them tells, and what is hidden from it."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamlake as sl
from streamlake import operations
from streamlake.log import FileList, Log
from streamlake.log.files import FILE_TYPES
from streamlake.log.replay import MOST_LOOSE_ACTIONS, Replay
from streamlake.protocol import AddFile, DeletionVector, RemoveFile
from streamlake.storage import LocalStore, MemoryStore
from streamlake.testing import CountingStore, ManualClock, TableBuilder

SCHEMA = pa.schema([pa.field("n", pa.int64())])


def add(path: str, *, vector: str | None = None, **partition: str | None) -> AddFile:
    return AddFile(
        path=path,
        partition_values=partition,
        size=len(path),
        modification_time=7,
        data_change=True,
        stats='{"numRecords":1}',
        tags={"a": "b"} if vector else None,
        deletion_vector=None if vector is None else DeletionVector("u", vector, 4, 1, 3),
    )


def remove(path: str, vector: str | None = None) -> RemoveFile:
    found = None if vector is None else DeletionVector("u", vector, 4, 1, 3)
    return RemoveFile(path=path, data_change=True, deletion_vector=found)


FILES = [add("a"), add("b", day="1"), add("c", day=None, hour="2"), add("d", vector="x")]


def test_a_list_gives_the_actions_that_it_was_made_of():
    files = FileList.from_actions(FILES)
    assert list(files) == FILES
    assert [files[i] for i in range(-4, 4)] == FILES * 2
    assert files[1:3] == FILES[1:3]
    assert files == FILES
    assert files != FILES[:3]
    assert len(files) == 4
    with pytest.raises(IndexError):
        files[4]


def test_columns_are_named_as_in_the_log():
    files = FileList.from_actions(FILES)
    assert files.column("size").to_pylist() == [1, 1, 1, 1]
    assert files.to_arrow(["path"]).to_pydict() == {"path": ["a", "b", "c", "d"]}
    assert files.size_bytes == 4
    assert [row for block in files.blocks(["path"]) for row in block["path"].to_pylist()] == [
        "a",
        "b",
        "c",
        "d",
    ]


def test_filters_add_up_and_null_leaves_a_file_out():
    files = FileList.from_actions(FILES)
    some = files.filter(pa.array([True, None, True, True]))
    assert [f.path for f in some] == ["a", "c", "d"]
    assert [f.path for f in some.filter(pa.array([None, True, False]))] == ["c"]
    assert some.filter(pa.array([False] * 3)) == ()


def table_with_checkpoint(store, count: int = 12) -> sl.Table:
    log = Log(store, clock=ManualClock())
    operations.create(log, SCHEMA, properties={})
    table = sl.Table(log)
    for n in range(count):
        table.append(pa.table([[n]], schema=SCHEMA))
    table.checkpoint()
    return sl.Table(Log(store, clock=ManualClock()))


@pytest.mark.parametrize(
    "spelling",
    ["{}", "./{}", ".//{}", "{}".replace("{}", "%70{}")],
    ids=["plain", "dot", "dots", "encoded"],
)
def test_a_file_of_the_checkpoint_leaves_however_its_removal_spells_it(spelling):
    store = MemoryStore()
    table = table_with_checkpoint(store)
    gone = table.snapshot().files()[3].path
    spelt = spelling.format(gone[1:] if "%70" in spelling else gone)
    commit = {"remove": {"path": spelt, "dataChange": True, "deletionTimestamp": 1}}
    store.put(f"_delta_log/{13:020d}.json", json.dumps(commit).encode() + b"\n")
    files = table.snapshot().files()
    assert len(files) == 11
    assert gone not in files.column("path").to_pylist()


@pytest.mark.parametrize(
    ("stored", "spelt"),
    [
        ("p=a%0Ab/x", "p=a%0Ab/x"), ("p=a%0Ab/x", "p=a\nb/x"), ("p=a\nb/x", "p=a%0Ab/x"),
        ("p=a%0A/%0Ax", "p=a%0A/%0Ax"), ("x/.", "x"), ("x/", "x"), ("x", "x/."),
    ],
)  # fmt: skip
def test_line_ends_in_a_path_and_ends_that_name_nothing_hide_no_removal(stored, spelt):
    added, removed = add(stored), RemoveFile(spelt, data_change=True, deletion_timestamp=2**50)
    table = TableBuilder().append().commit(added).checkpoint().commit(removed).build()
    assert len(sl.Table(Log(table.log.store)).snapshot().files()) == 1


def test_a_checkpoint_that_spells_paths_apart_is_matched_too(tmp_path):
    log = tmp_path / "_delta_log"
    table = table_with_checkpoint(LocalStore(tmp_path))
    path = log / f"{12:020d}.checkpoint.parquet"
    found = pq.read_table(path)
    rows = found.to_pylist(maps_as_pydicts="lossy")
    names = [row["add"]["path"] for row in rows if row["add"]]
    for row in rows:
        if row["add"]:
            row["add"]["path"] = f"{tmp_path.as_uri()}/%2e/{row['add']['path']}".replace("%2e/", "")
    pq.write_table(pa.Table.from_pylist([fixed(row) for row in rows], found.schema), path)
    commit = {"remove": {"path": names[5], "dataChange": True, "deletionTimestamp": 1}}
    (log / f"{13:020d}.json").write_text(json.dumps(commit) + "\n")
    assert len(table.snapshot().files()) == 11


def fixed(row):
    """Maps as lists of pairs, which is how Arrow takes them back."""
    for action in row.values():
        for name, value in (action or {}).items():
            if name in {"partitionValues", "tags", "configuration"} and value is not None:
                action[name] = list(value.items())
            if name == "format":
                value["options"] = []
    return row


def test_logical_files_are_told_apart_by_their_vectors():
    state = Replay("memory://t")
    state.apply_actions([add("a", vector="x"), add("b")])
    state.apply_actions([remove("a", "other"), remove("b", "x")])
    assert [f.path for f in state.files()] == ["a", "b"]
    state.apply_actions([remove("a", "x"), add("a", vector="y")])
    assert [f.deletion_vector.path_or_inline_dv for f in state.files() if f.deletion_vector] == [
        "y"
    ]
    assert state.held([("a", "ux@3"), ("a", "uy@3"), ("./b", None)]) == {
        ("a", "uy@3"),
        ("./b", None),
    }
    assert len(state.tombstones()) == 3


def test_many_actions_of_commits_become_columns_and_stay_right():
    state = Replay("memory://t")
    count = MOST_LOOSE_ACTIONS + 10
    state.apply_actions(add(f"f{i}") for i in range(count))
    assert state.loose_actions == 0
    state.apply_actions([remove("f3"), add("f4", day="1"), add("new")])
    files = state.files()
    assert len(files) == count
    assert files.column("path").to_pylist()[-2:] == ["f4", "new"]
    assert state.held([("f3", None), ("f4", None), ("f5", None)]) == {("f4", None), ("f5", None)}
    assert state.tombstones()["path"].to_pylist() == ["f3"]


def test_a_snapshot_does_not_change_with_the_table():
    table = table_with_checkpoint(MemoryStore())
    before = table.snapshot().files()
    table.optimize()
    assert len(table.snapshot().files()) == 1
    assert len(before) == 12
    assert len(list(before)) == 12


def test_a_later_snapshot_reads_the_new_commits_alone():
    store = CountingStore(MemoryStore())
    table = table_with_checkpoint(store)
    table.snapshot()
    table.append(pa.table([[99]], schema=SCHEMA))
    store.requests.clear()
    assert len(table.snapshot().files()) == 13
    assert [method for method, _ in store.requests] == ["get", "get"]


def test_a_large_checkpoint_is_read_by_the_columns_that_are_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr("streamlake.log.checkpoint.reader.WHOLE_FILE_BYTES", 100)
    store = CountingStore(LocalStore(tmp_path))
    table = table_with_checkpoint(store)
    files = table.snapshot().files()
    store.requests.clear()
    assert len(files) == 12
    assert store.requests == []
    assert [f.num_records for f in files] == [1] * 12
    assert "get" not in [method for method, _ in store.requests]


def test_a_checkpoint_that_is_replaced_while_it_is_read_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr("streamlake.log.checkpoint.reader.WHOLE_FILE_BYTES", 100)
    table = table_with_checkpoint(LocalStore(tmp_path))
    files = table.snapshot().files()
    path = tmp_path / "_delta_log" / f"{12:020d}.checkpoint.parquet"
    path.write_bytes(path.read_bytes() + b"PAR1")
    with pytest.raises(sl.CorruptTableError, match="checkpoint"):
        list(files)


@pytest.mark.parametrize(
    ("mask", "told"),
    [
        (pa.array([True]), "1 values of the type bool; 4 files"),
        (pa.array([1, 0, 1, 0]), "4 values of the type int64"),
        ([True] * 4, "a list"),
    ],
)
def test_a_mask_that_does_not_fit_is_refused(mask, told):
    with pytest.raises(sl.InvalidInputError, match="one boolean for each file") as caught:
        FileList.from_actions(FILES).filter(mask)
    assert told in caught.value.found


def test_a_column_that_files_do_not_have_is_refused_with_those_that_they_have():
    files = FileList.from_actions(FILES)
    for ask in (files.column, lambda name: files.to_arrow([name]), lambda n: list(files.blocks(n))):
        with pytest.raises(sl.InvalidInputError, match="no column 'x'") as caught:
            ask("x")
        assert "path, partitionValues, size" in caught.value.found


def test_columns_asked_for_together_are_read_in_one_pass(tmp_path, monkeypatch):
    monkeypatch.setattr("streamlake.log.checkpoint.reader.WHOLE_FILE_BYTES", 100)
    store = CountingStore(LocalStore(tmp_path))
    files = table_with_checkpoint(store).snapshot().files()
    store.requests.clear()
    whole = files.to_arrow()
    together = len(store.requests)
    store.requests.clear()
    apart = [files.column(name) for name in FILE_TYPES]
    assert whole == pa.Table.from_arrays(apart, names=list(FILE_TYPES))
    assert together < len(store.requests) / 3
