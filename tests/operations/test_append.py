"""Appends that can't be: a typed error, and nothing is written."""

import datetime as dt
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import streamlake as sl
from streamlake import operations
from streamlake.log import Log
from streamlake.storage import MemoryStore
from streamlake.testing import ManualClock

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("day", pa.date32()),
        ("name", pa.string()),
    ]
)


@pytest.fixture
def table(tmp_path: Path) -> sl.Table:
    return sl.Table.create(tmp_path / "t", schema=SCHEMA, partition_by=["day"])


def rows(*ids: int | None) -> pa.Table:
    count = len(ids)
    days = [dt.date(2024, 1, 1)] * count
    return pa.table({"id": ids, "day": days, "name": ["x"] * count})


def files_of(table: sl.Table) -> list[str]:
    return sorted(meta.path for meta in table.log.store.list_from("") if "probe" not in meta.path)


def assert_untouched(table: sl.Table, before: list[str]) -> None:
    assert files_of(table) == before
    assert table.snapshot().version == 0


def test_a_schema_that_differs_is_told_column_by_column(table):
    before = files_of(table)
    wrong = pa.table({"id": ["one"], "name": ["x"], "extra": [1]})
    with pytest.raises(sl.SchemaMismatchError) as caught:
        table.append(wrong)
    assert "'id'" in caught.value.found
    assert "'extra'" in caught.value.found
    assert_untouched(table, before)


def test_a_null_in_a_not_null_column_is_told_with_the_column(table):
    before = files_of(table)
    with pytest.raises(sl.ConstraintViolationError, match="id"):
        table.append(rows(1, None))
    assert_untouched(table, before)


def test_a_missing_not_null_column_is_refused(table):
    before = files_of(table)
    with pytest.raises(sl.SchemaMismatchError, match="'id'"):
        table.append(pa.table({"name": ["x"]}))
    assert_untouched(table, before)


def test_what_is_no_arrow_data_is_refused(table):
    with pytest.raises(sl.InvalidInputError, match="Arrow"):
        table.append([{"id": 1}])


def test_no_rows_with_a_marker_are_a_commit_without_files(table):
    assert table.append(rows(), txn=sl.SetTransaction("a", 1)).version == 1
    assert table.snapshot().files() == ()
    assert table.snapshot().txn_version("a") == 1


def test_columns_are_found_by_name_and_cast_without_loss(table):
    table.append(pa.table({"name": ["x"], "id": pa.array([1], pa.int8())}))
    assert table.snapshot().to_arrow().to_pylist() == [{"id": 1, "day": None, "name": "x"}]


def test_a_projection_reads_the_columns_asked_for(table):
    table.append(rows(1))
    found = table.snapshot().to_arrow(columns=["name", "day"])
    assert found.to_pylist() == [{"name": "x", "day": dt.date(2024, 1, 1)}]
    with pytest.raises(sl.InvalidInputError, match="'nothing'"):
        table.snapshot().to_arrow(columns=["nothing"])


@pytest.mark.parametrize(
    ("schema", "partition_by"),
    [
        (SCHEMA, ["nothing"]),
        (SCHEMA, ["id", "day", "name"]),
        (SCHEMA, ["day", "day"]),
        (pa.schema([("a", pa.list_(pa.int8())), ("b", pa.int8())]), ["a"]),
        (pa.schema([("a", pa.int8()), ("A", pa.int8())]), []),
        (pa.schema([("a b", pa.int8())]), []),
        (pa.schema([("t", pa.duration("s"))]), []),
        (pa.schema([]), []),
    ],
)
def test_a_table_that_can_not_be_is_refused_before_it_is_made(tmp_path, schema, partition_by):
    with pytest.raises(sl.InvalidInputError):
        sl.Table.create(tmp_path / "t", schema=schema, partition_by=partition_by)
    assert not (tmp_path / "t" / "_delta_log").exists()


def test_a_property_with_an_impossible_value_is_refused(tmp_path):
    properties = {"delta.checkpointInterval": "often"}
    with pytest.raises(sl.InvalidInputError, match="checkpointInterval"):
        sl.Table.create(tmp_path / "t", schema=SCHEMA, properties=properties)


class OverwritingStore(MemoryStore):
    """A store that takes the condition and ignores it, as some do."""

    def put_if_absent(self, path, data):
        self.put(path, data)


def test_a_store_without_put_if_absent_is_refused_unless_there_is_one_writer():
    with pytest.raises(sl.ConditionalPutUnsupportedError):
        operations.create(Log(OverwritingStore(), clock=ManualClock()), SCHEMA)
    log = Log(OverwritingStore(), clock=ManualClock(), single_writer=True)
    assert operations.create(log, SCHEMA).version == 0


FULL_DISK = """
import resource, signal, sys
import pyarrow as pa
import streamlake as sl

table = sl.Table.open(sys.argv[1])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    table.append(pa.table({"id": range(1000), "name": ["x" * 50] * 1000}))
except sl.WriteRefusedError as error:
    print(error)
"""


@pytest.mark.parametrize("room_bytes", [0, 100, 900])
def test_a_full_disk_is_told_and_leaves_nothing_half_written(table, room_bytes):
    table.append(rows(1))
    before = files_of(table)
    command = [sys.executable, "-c", FULL_DISK, table.url, str(room_bytes)]
    told = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    assert "refused" in told.stdout
    assert files_of(table) == before
    table.append(rows(2))
    assert sorted(table.snapshot().to_arrow()["id"].to_pylist()) == [1, 2]
