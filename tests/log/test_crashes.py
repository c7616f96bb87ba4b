"""A process dies at each request of an append; whoever repeats the append finds the truth."""

import contextlib
import multiprocessing as mp
import os
from pathlib import Path

import pyarrow as pa
import pytest

import streamlake as sl
from streamlake.log import Limits, Log
from streamlake.protocol import commit_path
from streamlake.storage import LocalStore
from streamlake.testing import TableBuilder

SCHEMA = pa.schema([pa.field("n", pa.int64())])
EXIT_CODE = 77
PUTS_OF_AN_APPEND_WITH_CHECKPOINT = 9
"""Data file, two of the probe, commit, sidecar, manifest twice, hint, checksum."""


class DyingStore(LocalStore):
    """Local disk under a process that dies right before or right after its nth put."""

    puts_left = -1
    dies_after = False

    def _step(self, request):
        self.puts_left -= 1
        if self.puts_left == 0 and not self.dies_after:
            os._exit(EXIT_CODE)
        result = request()
        if self.puts_left == 0:
            os._exit(EXIT_CODE)
        return result

    def put(self, path, data):
        return self._step(lambda: LocalStore.put(self, path, data))

    def put_if_absent(self, path, data):
        return self._step(lambda: LocalStore.put_if_absent(self, path, data))


def rows(n: int) -> pa.Table:
    return pa.table([[n]], schema=SCHEMA)


def append_and_die(root: Path, nth: int, dies_after: bool) -> None:  # noqa: FBT001
    store = DyingStore(root)
    log = Log(store)
    log.refresh()
    store.dies_after, store.puts_left = dies_after, nth
    sl.Table(log).append(rows(5), txn=sl.SetTransaction("a", 5))
    os._exit(0)


@pytest.mark.parametrize("dies_after", [False, True])
@pytest.mark.parametrize("nth", range(1, PUTS_OF_AN_APPEND_WITH_CHECKPOINT + 1))
def test_an_append_cut_off_at_any_put_is_in_the_table_once(tmp_path, nth, dies_after):
    table = sl.Table.create(
        tmp_path / "t",
        schema=SCHEMA,
        properties={"delta.checkpointInterval": "5", "delta.checkpointPolicy": "v2"},
    )
    for n in range(1, 5):
        table.append(rows(n), txn=sl.SetTransaction("a", n))
    child = mp.get_context("spawn").Process(
        target=append_and_die, args=(tmp_path / "t", nth, dies_after)
    )
    child.start()
    child.join(60)
    assert child.exitcode in {EXIT_CODE, 0}
    before = sl.Table.open(tmp_path / "t").snapshot().to_arrow()["n"].to_pylist()
    assert before in ([1, 2, 3, 4], [1, 2, 3, 4, 5])
    again = sl.Table.open(tmp_path / "t").append(rows(5), txn=sl.SetTransaction("a", 5))
    assert again.already_committed == (5 in before)
    found = sl.Table.open(tmp_path / "t").snapshot()
    assert found.to_arrow()["n"].to_pylist() == [1, 2, 3, 4, 5]
    assert found.txn_version("a") == 5


class UnsyncedFolder(LocalStore):
    """The commit's name is there, and its folder can't be synced: the outcome is unknown."""

    def put_if_absent(self, path, data):
        if path.endswith(f"{1:020d}.json"):
            with contextlib.suppress(sl.ObjectExistsError):
                super().put_if_absent(path, data)
            raise sl.StorageError("The folder could not be synced.", where=path)
        super().put_if_absent(path, data)


def test_a_repeat_of_a_commit_that_log_clean_up_has_removed_is_one_all_the_same():
    marker = sl.SetTransaction("a", 1)
    table = TableBuilder().append(txn=marker).checkpoint().build()
    store = table.log.store
    behind = sl.Table(Log(store))
    behind.log.refresh()
    for version in (0, 1):
        store.delete(commit_path(version))
    for again in (behind, sl.Table(Log(store))):
        assert again.append(rows(1), txn=marker).already_committed


def test_a_commit_that_is_visible_and_not_durable_is_not_acknowledged(tmp_path):
    sl.Table.create(tmp_path / "t", schema=SCHEMA)
    table = sl.Table(Log(UnsyncedFolder(tmp_path / "t"), limits=Limits(puts_per_version=3)))
    with pytest.raises(sl.CommitUnknownError):
        table.append(rows(1), txn=sl.SetTransaction("a", 1))
    assert sl.Table.open(tmp_path / "t").append(rows(1), txn=sl.SetTransaction("a", 1)).version == 1
