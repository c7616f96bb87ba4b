"""Bits flip in any file beside the commits: the table is the same, or an error names the file."""

import random

import pyarrow as pa
import pytest

import streamlake as sl
from log.checkpoints import flipped
from streamlake.log import Log
from streamlake.protocol import checkpoint_path, commit_path
from streamlake.storage import ObjectStore
from streamlake.testing import ManualClock, TableBuilder

FORMS = {
    "classic": {},
    "v2": {"delta.checkpointPolicy": "v2"},
    "typed": {
        "delta.checkpoint.writeStatsAsStruct": "true",
        "delta.checkpoint.writeStatsAsJson": "false",
    },
}
ROUNDS = 40


def state(store: ObjectStore) -> tuple[object, ...]:
    snapshot = sl.Table(Log(store)).snapshot()
    counts = [add.num_records for add in snapshot.files()]
    rows = snapshot.to_arrow()["n"].to_pylist()
    return snapshot.version, snapshot.txn_version("a"), counts, sorted(map(str, rows))


def damaged(data: bytes, chance: random.Random) -> bytes:
    """One bit or a few turned over, or the end missing."""
    if chance.random() < 0.1:
        return data[: chance.randrange(len(data))]
    changed = bytearray(data)
    for _ in range(chance.choice([1, 1, 1, 3])):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


@pytest.mark.parametrize("needs_checkpoint", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_no_damage_goes_unnoticed(form, needs_checkpoint):
    builder = TableBuilder(clock=ManualClock()).properties(FORMS[form]).append(times=6).remove(1)
    store = builder.append(txn=sl.SetTransaction("a", 3)).checkpoint().append(times=2).write()
    truth = state(store)
    if needs_checkpoint:
        for version in range(9):
            store.delete(f"_delta_log/{version:020d}.json")
    parts = ("checkpoint", "_sidecars", ".crc")
    paths = [m.path for m in store.list_from("") if any(part in m.path for part in parts)]
    chance = random.Random(f"{form} {needs_checkpoint}")
    refusals: list[tuple[str, sl.TableError]] = []
    for _ in range(ROUNDS):
        path = chance.choice(paths)
        data = store.get(path)
        store.put(path, damaged(data, chance))
        try:
            assert state(store) == truth
        except sl.TableError as error:
            refusals.append((path, error))
        store.put(path, data)
    assert len(refusals) < ROUNDS / 2
    assert refusals or not needs_checkpoint
    for path, told in refusals:
        assert path in told.where or "_sidecars" in told.where or "checksum" in str(told)


@pytest.mark.parametrize("leaf", ["add.path", "add.stats", "add.modificationTime", "remove.path"])
def test_damage_to_any_column_does_not_keep_the_next_checkpoint_from_being_written(leaf):
    store = TableBuilder().append(times=4).remove(0).checkpoint().write()
    path = checkpoint_path(5)
    store.put(path, flipped(store.get(path), leaf))
    table = sl.Table(Log(store))
    table.append(pa.table({"n": [7]}))
    assert table.checkpoint() == 6
    for version in range(6):
        store.delete(commit_path(version))
    assert state(store)[3] == ["1", "2", "3", "7"]
