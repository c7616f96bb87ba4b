"""Many processes bring columns to one table at once, while it tells times and gives ids."""

import multiprocessing as mp

import pyarrow as pa
import pytest

import streamlake as sl

WRITERS = 6
APPENDS = 4
PROPERTIES = {
    "delta.columnMapping.mode": "name",
    "delta.enableInCommitTimestamps": "true",
    "delta.enableRowTracking": "true",
}


def bring_columns(url: str, writer: int, barrier) -> None:
    table = sl.Table.open(url)
    barrier.wait(60)
    for number in range(APPENDS):
        rows = {"writer": [writer, writer], "number": [number] * 2, f"c{number}": [writer] * 2}
        txn = sl.SetTransaction(f"writer-{writer}", number)
        assert not table.append(pa.table(rows), txn=txn, merge_schema=True).already_committed


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_every_column_comes_once_and_every_row_has_an_id_of_its_own(tmp_path):
    schema = pa.schema([("writer", pa.int64()), ("number", pa.int64())])
    table = sl.Table.create(tmp_path / "t", schema=schema, properties=PROPERTIES)
    context = mp.get_context("fork")
    barrier = context.Barrier(WRITERS)
    processes = [
        context.Process(target=bring_columns, args=(table.url, writer, barrier))
        for writer in range(WRITERS)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0] * WRITERS
    snapshot = table.snapshot()
    assert sorted(snapshot.schema.names) == ["c0", "c1", "c2", "c3", "number", "writer"]
    assert snapshot.to_arrow().num_rows == WRITERS * APPENDS * 2
    for row in snapshot.to_arrow().to_pylist():
        assert row[f"c{row['number']}"] == row["writer"]
    ids = sorted(add.base_row_id for add in snapshot.files())
    assert ids == list(range(0, WRITERS * APPENDS * 2, 2))
    assert all(add.default_row_commit_version for add in snapshot.files())
    times = [record.info["inCommitTimestamp"] for record in table.history()]
    assert times == sorted(set(times), reverse=True)
