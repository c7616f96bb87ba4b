"""When checkpoints are written, what they hold, and that no commit fails over one."""

import json
import logging
import threading
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamlake as sl
from streamlake import operations
from streamlake.log import Log, Transaction
from streamlake.log.checkpoint.policy import checkpoint_interval
from streamlake.protocol import AddFile
from streamlake.storage import MemoryStore
from streamlake.testing import CountingStore, Fault, FaultyStore, ManualClock

SCHEMA = pa.schema([pa.field("n", pa.int64())])
HINT = "_delta_log/_last_checkpoint"


def table_over(store, **properties: str) -> sl.Table:
    log = Log(store, clock=ManualClock())
    operations.create(log, SCHEMA, properties={f"delta.{k}": v for k, v in properties.items()})
    return sl.Table(log)


def append(table: sl.Table, *numbers: int) -> None:
    for n in numbers:
        table.append(pa.table([[n]], schema=SCHEMA), txn=sl.SetTransaction("a", n))


def checkpoints(store) -> list[int]:
    paths = [meta.path for meta in store.list_from("_delta_log/")]
    return [int(path[11:31]) for path in paths if "checkpoint.parquet" in path]


@pytest.mark.parametrize(("files", "interval"), [(0, 100), (3_199, 100), (32_000, 1_000)])
def test_the_interval_grows_with_the_table(files, interval):
    assert checkpoint_interval(None, files) == interval
    assert checkpoint_interval(7, files) == 7
    assert checkpoint_interval(None, 10**9) == 10_000


@pytest.mark.parametrize(
    ("files", "actions", "interval"),
    [(0, 500, 100), (0, 1_000, 50), (0, 10**6, 10), (10**6, 10, 10_000), (10**6, 1_000, 500)],
)
def test_the_interval_is_the_shorter_the_larger_the_commits_are(files, actions, interval):
    assert checkpoint_interval(None, files, actions_per_commit=actions) == interval
    assert checkpoint_interval(7, files, actions_per_commit=actions) == 7


@pytest.mark.parametrize("opened_anew", [False, True])
def test_a_table_of_large_commits_gets_its_checkpoint_sooner(opened_anew):
    store = MemoryStore()
    log = table_over(store).log
    for n in range(11):
        names = (f"{n}-{i}" for i in range(6_000))
        adds = tuple(AddFile(name, {}, 1, 1, data_change=True) for name in names)
        log.commit(Transaction(operation="WRITE", adds=adds, is_blind_append=True))
        if opened_anew and n == 8:
            log = Log(store, clock=log.clock)
    assert checkpoints(store) == [10]


def test_a_checkpoint_is_written_each_time_the_configured_interval_is_crossed():
    store = MemoryStore()
    append(table_over(store, checkpointInterval="4"), *range(1, 10))
    assert checkpoints(store) == [4, 8]
    assert json.loads(store.get(HINT))["version"] == 8


def test_a_writer_whose_commits_never_fall_on_the_interval_writes_checkpoints_too():
    store = MemoryStore()
    mine = table_over(store, checkpointInterval="4")
    other = sl.Table(Log(store, clock=mine.log.clock))
    for n in range(1, 7):
        other.log.store.put(
            f"_delta_log/{2 * n - 1:020d}.json", b'{"commitInfo":{"operation":"X"}}\n'
        )
        append(mine, n)
    assert checkpoints(store) == [4, 8, 12]


def test_a_checkpoint_holds_markers_removed_files_and_no_data_change():
    store = MemoryStore()
    table = table_over(store)
    append(table, 1, 2, 3)
    table.optimize()
    table.checkpoint()
    found = pq.read_table(pa.BufferReader(store.get(f"_delta_log/{4:020d}.checkpoint.parquet")))
    rows = {name: found[name].drop_null().to_pylist() for name in found.column_names}
    assert [len(rows[name]) for name in ("txn", "add", "remove", "metaData", "protocol")] == [
        1,
        1,
        3,
        1,
        1,
    ]
    assert {row["dataChange"] for row in rows["add"] + rows["remove"]} == {False}
    assert rows["txn"][0]["lastUpdated"] is not None


def test_expired_tombstones_are_left_out():
    store = MemoryStore()
    table = table_over(store, deletedFileRetentionDuration="interval 1 day")
    append(table, 1, 2)
    table.optimize()
    table.log.clock.advance(2 * 86_400)  # type: ignore[attr-defined]
    version = table.checkpoint()
    data = store.get(f"_delta_log/{version:020d}.checkpoint.parquet")
    assert pq.read_table(pa.BufferReader(data))["remove"].null_count == 4


def test_a_table_opens_from_its_checkpoint_without_the_commits_below():
    store = MemoryStore()
    append(table_over(store, checkpointInterval="10"), *range(1, 13))
    counting = CountingStore(store)
    found = sl.Table(Log(counting, clock=ManualClock())).snapshot()
    assert found.to_arrow()["n"].to_pylist() == list(range(1, 13))
    assert found.txn_version("a") == 12
    assert sum(path.endswith(".json") for _, path in counting.requests) <= 4


@pytest.mark.parametrize("path", ["checkpoint.parquet", "_last_checkpoint"])
def test_a_checkpoint_that_fails_does_not_fail_the_commit_and_is_tried_again(path, caplog):
    inner = MemoryStore()
    store = FaultyStore(inner, [Fault(kind="lost_before", method="put", path=path)])
    table = table_over(store, checkpointInterval="3")
    with caplog.at_level(logging.WARNING):
        append(table, 1, 2, 3)
    assert "no checkpoint" in caplog.text
    append(table, 4, 5, 6)
    assert max(checkpoints(inner)) > 3
    assert table.snapshot().to_arrow()["n"].to_pylist() == [1, 2, 3, 4, 5, 6]


def test_a_hint_from_the_future_does_not_stop_checkpoints():
    store = MemoryStore()
    table = table_over(store, checkpointInterval="3")
    store.put(HINT, b'{"version":4000000000,"size":1}')
    append(table, 1, 2, 3)
    assert checkpoints(store) == [3]


def test_opening_a_table_reads_no_file_of_its_checkpoint(monkeypatch):
    monkeypatch.setattr("streamlake.log.checkpoint.reader.WHOLE_FILE_BYTES", 100)
    inner = MemoryStore()
    append(table_over(inner, checkpointInterval="10"), *range(1, 13))
    store = CountingStore(inner)
    log = Log(store, clock=ManualClock())
    assert log.refresh().markers["a"].version == 12
    opening = [method for method, path in store.requests if "checkpoint.parquet" in path]
    store.requests.clear()
    log.snapshot()
    first = [method for method, path in store.requests if "checkpoint.parquet" in path]
    assert len(first) > len(opening) > 0
    append(sl.Table(log), 13)
    assert log.snapshot().files()[-1].num_records == 1
    assert len(log.snapshot().files()) == 13


class SlowCheckpoints(CountingStore):
    """A store whose puts of checkpoints wait until they are let through."""

    def __init__(self, inner) -> None:
        super().__init__(inner)
        self.reached = threading.Event()
        self.go_on = threading.Event()

    def put(self, path, data) -> None:
        if "checkpoint.parquet" in path:
            self.reached.set()
            assert self.go_on.wait(60)
        super().put(path, data)


def test_other_threads_commit_while_one_writes_a_checkpoint():
    store = SlowCheckpoints(MemoryStore())
    table = table_over(store, checkpointInterval="3")
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(append, table, 1, 2, 3)
        assert store.reached.wait(60)
        append(table, 4, 5, 6, 7)
        assert table.version == 7
        store.go_on.set()
        first.result()
    assert checkpoints(store) == [3]
    append(table, 8)
    assert checkpoints(store) == [3, 8]


def test_a_handle_that_is_behind_a_clean_up_reads_the_checkpoint():
    store = MemoryStore()
    table = table_over(store)
    table.snapshot()
    append(table, 1, 2, 3)
    table.checkpoint()
    for version in range(4):
        store.delete(f"_delta_log/{version:020d}.json")
    assert table.snapshot().to_arrow()["n"].to_pylist() == [1, 2, 3]
