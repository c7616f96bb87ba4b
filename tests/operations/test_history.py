"""What the log tells of each commit."""

import pyarrow as pa
import pytest

import streamlake as sl
from streamlake import operations
from streamlake.log import Log
from streamlake.log.committing.metrics import operation_metrics
from streamlake.operations.history import LOOK_BACK_VERSIONS
from streamlake.protocol import AddFile, CommitInfo, commit_path, encode_actions
from streamlake.storage import MemoryStore
from streamlake.testing import CountingStore, ManualClock

SCHEMA = pa.schema([pa.field("n", pa.int64())])


def new_table() -> tuple[sl.Table, CountingStore]:
    store = CountingStore(MemoryStore())
    log = Log(store, clock=ManualClock())
    operations.create(log, SCHEMA)
    return sl.Table(log), store


def commit_info(store, version: int, **fields) -> None:
    """A commit of another engine, which says no more than this."""
    store.put(commit_path(version), encode_actions([CommitInfo(fields)]))


def test_a_record_is_complete():
    table, store = new_table()
    commit_info(
        store,
        1,
        operation="MERGE",
        operationParameters={"predicate": "[]"},
        operationMetrics={"numOutputRows": "5"},
        isolationLevel="Serializable",
        readVersion=0,
        userMetadata="by hand",
        engineInfo="Apache-Spark/4.2.0 Delta-Lake/4.4.0",
        isBlindAppend=False,
    )
    record = next(table.history())
    assert (record.version, record.operation, record.isolation_level) == (
        1,
        "MERGE",
        "Serializable",
    )
    assert record.operation_parameters == {"predicate": "[]"}
    assert record.operation_metrics == {"numOutputRows": "5"}
    assert (record.read_version, record.user_metadata) == (0, "by hand")
    assert record.engine_info == "Apache-Spark/4.2.0 Delta-Lake/4.4.0"
    assert not record.is_blind_append


def test_what_a_commit_does_not_tell_is_none_or_empty():
    table, store = new_table()
    store.put(commit_path(1), b'{"txn":{"appId":"a","version":3}}\n')
    record = next(table.history())
    assert record.operation is None
    assert record.isolation_level is None
    assert record.user_metadata is None
    assert not record.operation_metrics
    assert record.markers["a"].version == 3


def test_our_own_commits_say_isolation_and_engine():
    table, _ = new_table()
    table.append(pa.table([[1, 2]], schema=SCHEMA), txn=sl.SetTransaction("job", 7))
    record = next(table.history())
    assert record.isolation_level
    assert record.engine_info
    assert record.engine_info.startswith("streamlake/")
    assert (record.rows_added, record.files_added, record.markers["job"].version) == (2, 1, 7)


def test_our_own_commits_tell_what_they_did_in_numbers():
    table, _ = new_table()
    for number in range(4):
        table.append(pa.table([[number, number]], schema=SCHEMA))
    size = sum(add.size for add in table.snapshot().files())
    table.optimize()
    optimized, appended, *_, created = table.history()
    (packed,) = table.snapshot().files()
    assert appended.operation_metrics["numFiles"] == "1"
    assert appended.operation_metrics["numOutputRows"] == "2"
    assert optimized.operation_metrics == {
        "numRemovedFiles": "4",
        "numRemovedBytes": str(size),
        "numAddedFiles": "1",
        "numAddedBytes": str(packed.size),
    }
    assert not created.operation_metrics


def test_rows_are_not_told_where_a_file_does_not_say_how_many_it_has():
    add = AddFile("a.parquet", {}, 10, 0, data_change=True, stats='{"numRecords":3}')
    silent = AddFile("b.parquet", {}, 5, 0, data_change=True)
    assert operation_metrics("STREAMING UPDATE", (add,), ()) == {
        "numAddedFiles": "1",
        "numOutputBytes": "10",
        "numOutputRows": "3",
    }
    assert operation_metrics("WRITE", (add, silent), ()) == {
        "numFiles": "2",
        "numOutputBytes": "15",
    }


def test_a_limited_history_lists_the_end_of_the_log_and_reads_no_more_than_it_shows():
    table, store = new_table()
    for version in range(1, LOOK_BACK_VERSIONS + 200):
        commit_info(store, version, operation="WRITE")
    table.log.refresh()
    store.requests.clear()
    assert [record.version for record in table.history(limit=3)] == [699, 698, 697]
    assert store.count("list_from") == 1
    assert len(store.requests) == 1 + 1 + 3  # the newest version, the listing, the commits


def test_a_history_that_is_not_read_to_its_end_reads_no_further():
    table, store = new_table()
    for version in range(1, 50):
        commit_info(store, version, operation="WRITE")
    table.log.refresh()
    store.requests.clear()
    records = table.history()
    assert [next(records).version, next(records).version] == [49, 48]
    assert store.count("get") == 1 + 2


def test_log_clean_up_meanwhile_ends_the_history():
    table, store = new_table()
    for version in range(1, 10):
        commit_info(store, version, operation="WRITE")
    records = table.history()
    assert next(records).version == 9
    for version in range(6):
        store.delete(commit_path(version))
    assert [record.version for record in records] == [8, 7, 6]


@pytest.mark.parametrize("limit", [0, -1, True])
def test_a_limit_that_is_none_is_refused_at_the_call(limit):
    table, _ = new_table()
    with pytest.raises(sl.InvalidInputError, match="limit"):
        table.history(limit=limit)
