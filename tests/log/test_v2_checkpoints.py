"""V2 checkpoints that others wrote: in JSON and Parquet, with sidecars and without, and faulty."""

import pyarrow as pa
import pytest

import streamlake as sl
from log.checkpoints import UUID, v2
from streamlake.log import Limits, Log
from streamlake.protocol import CheckpointMetadata, Sidecar
from streamlake.testing import CountingStore, TableBuilder

SIX = (
    TableBuilder()
    .append(times=5)
    .remove(0)
    .append(txn=sl.SetTransaction("app", 7))
    .checkpoint()
    .append()
)
"""Versions 0 to 8 with a checkpoint at 7; n is 1 to 6; a tombstone and a marker."""
ALL = list(range(1, 7))
KINDS = ["json", "parquet", "classic"]


def read(store, **limits: int) -> list[int | None]:
    return sl.Table(Log(store, limits=Limits(**limits))).snapshot().to_arrow()["n"].to_pylist()


def without_commits(store):
    """Only the checkpoint leads to the table."""
    for version in range(8):
        store.delete(f"_delta_log/{version:020d}.json")
    return store


@pytest.mark.parametrize("sidecars", [0, 1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_gives_the_table(kind, sidecars):
    store = SIX.write()
    v2(store, 7, kind=kind, sidecars=sidecars)
    snapshot = sl.Table(Log(without_commits(store))).snapshot()
    assert sorted(snapshot.to_arrow()["n"].to_pylist()) == ALL
    assert snapshot.txn_version("app") == 7


def test_one_in_json_that_says_two_things_of_a_file_is_passed_over():
    store = SIX.write()
    path = v2(store, 7, kind="json", sidecars=0)
    lines = store.get(path).splitlines(keepends=True)
    store.put(path, b"".join([*lines, *(line for line in lines if line.startswith(b'{"add"'))]))
    assert sorted(str(n) for n in read(store)) == [str(n) for n in ALL]
    with pytest.raises(sl.CorruptTableError, match="two actions of file"):
        read(without_commits(store))


def test_opening_a_table_reads_no_sidecar():
    store = SIX.write()
    v2(store, 7, kind="json", sidecars=3)
    counting = CountingStore(store)
    log = Log(counting)
    assert log.refresh().markers["app"].version == 7
    assert not [path for _, path in counting.requests if "_sidecars" in path]
    assert len(log.snapshot().files()) == 6


def test_a_table_with_v2_checkpoints_can_be_appended_to_and_checkpointed():
    store = SIX.write()
    v2(store, 7)
    table = sl.Table(Log(store))
    table.append(pa.table({"n": [7]}))
    table.checkpoint()
    assert sorted(read(store)) == [*ALL, 7]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ({"told": [CheckpointMetadata(6)]}, "version 6"),
        ({"told": []}, "without checkpointMetadata"),
        ({"told": [CheckpointMetadata(7), CheckpointMetadata(7)]}, "2 checkpointMetadata"),
        ({"keeps_files": True}, "beside sidecars"),
        ({"extra": [Sidecar("gone.parquet", 10, 0)]}, "gone.parquet"),
    ],
)
def test_what_contradicts_itself_is_passed_over_or_told_by_name(kind, fault, said):
    store = SIX.write()
    path = v2(store, 7, kind=kind, **fault)
    assert read(store) == ALL
    with pytest.raises(sl.CorruptTableError, match=said) as caught:
        read(without_commits(store))
    assert path in caught.value.where or "_sidecars" in caught.value.where


@pytest.mark.parametrize("kind", KINDS)
def test_a_sidecar_named_twice_does_not_count_twice(kind):
    store = SIX.write()
    name = f"{7:020d}.checkpoint.0000000001.0000000001.parquet"
    v2(store, 7, kind=kind, sidecars=1, extra=[Sidecar(f"./{name}", 1, 0)])
    with pytest.raises(sl.CorruptTableError, match="named twice"):
        read(without_commits(store))


def test_two_sidecars_that_hold_the_same_file_are_told():
    store = SIX.write()
    v2(store, 7, sidecars=1)
    data = store.get(f"_delta_log/_sidecars/{7:020d}.checkpoint.0000000001.0000000001.parquet")
    store.put("_delta_log/_sidecars/copy.parquet", data)
    path = f"_delta_log/{7:020d}.checkpoint.{UUID}.json"
    line = b'{"sidecar":{"path":"copy.parquet","sizeInBytes":%d,"modificationTime":0}}\n'
    store.put(path, store.get(path) + line % len(data))
    with pytest.raises(sl.CorruptTableError, match="one file twice"):
        read(without_commits(store))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "path",
    ["../00000000000000000000.json", "%2e%2e/x.parquet", "/etc/x.parquet", "s3://other/x.parquet",
     "a\\b.parquet", "deep/x.parquet", "x.json"],
)  # fmt: skip
def test_a_sidecar_outside_of_its_folder_is_refused(kind, path):
    store = SIX.write()
    v2(store, 7, kind=kind, extra=[Sidecar(path, 10, 0)])
    with pytest.raises(sl.UnsafePathError):
        read(store)


def test_sidecars_may_be_named_by_their_whole_uri(tmp_path):
    store = TableBuilder(tmp_path / "a b", clock=SIX.clock).append(times=3).checkpoint().write()
    path = v2(store, 3, sidecars=1)
    uri = f"{store.url}/_delta_log/_sidecars/".encode()
    store.put(path, store.get(path).replace(b'"path":"', b'"path":"' + uri, 1))
    for version in range(4):
        store.delete(f"_delta_log/{version:020d}.json")
    assert sorted(read(store)) == [0, 1, 2]


@pytest.mark.parametrize("damage", [lambda data: data[: len(data) // 2], lambda data: data + b"x"])
def test_a_sidecar_of_another_size_is_told(damage):
    store = SIX.write()
    v2(store, 7, sidecars=2)
    path = f"_delta_log/_sidecars/{7:020d}.checkpoint.0000000002.0000000002.parquet"
    store.put(path, damage(store.get(path)))
    assert read(store) == ALL
    with pytest.raises(sl.CorruptTableError, match="where the checkpoint says"):
        read(without_commits(store))


@pytest.mark.parametrize("data", [b"", b"{", b'{"add":{"path":"x"}}\n', b"\0" * 99])
def test_a_garbled_manifest_is_passed_over(data):
    store = SIX.write()
    store.put(v2(store, 7), data)
    assert read(store) == ALL
    with pytest.raises(sl.CorruptTableError):
        read(without_commits(store))


def test_too_many_sidecars_are_refused_by_a_named_limit():
    store = SIX.write()
    v2(store, 7, sidecars=3)
    with pytest.raises(sl.LimitExceededError, match=r"Limits\.checkpoint_sidecars"):
        read(store, checkpoint_sidecars=2)
    assert sorted(read(store, checkpoint_sidecars=3)) == ALL


def test_a_json_checkpoint_larger_than_a_commit_may_be_is_refused():
    store = SIX.write()
    v2(store, 7, sidecars=0)
    with pytest.raises(sl.LimitExceededError, match=r"Limits\.commit_bytes"):
        read(store, commit_bytes=500)
