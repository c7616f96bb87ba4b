"""Columns that data leave out get their defaults."""

from __future__ import annotations

import datetime as dt
import decimal
from pathlib import Path

import pyarrow as pa
import pytest

import streamlake as sl
from streamlake.testing import ManualClock

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("n", pa.int32(), nullable=False, metadata={b"delta.CURRENT_DEFAULT": b'"6 + 1"'}),
        pa.field("s", pa.string()),
    ]
)


@pytest.fixture
def table(tmp_path: Path) -> sl.Table:
    return sl.Table.create(tmp_path / "t", schema=SCHEMA, clock=ManualClock())


def rows_of(table: sl.Table) -> list[dict[str, object]]:
    found: list[dict[str, object]] = sl.Table.open(table.url).snapshot().to_arrow().to_pylist()
    return found


def test_a_column_that_is_left_out_gets_its_default_and_one_that_is_given_does_not(table):
    assert table.log.head.protocol.writer_features == ("allowColumnDefaults", "invariants")
    table.append(pa.table({"id": [1, 2]}))
    table.append(pa.table({"id": [3], "n": pa.array([0], pa.int32())}))
    table.append(pa.table({"id": [4]}).to_reader())
    assert [row["n"] for row in rows_of(table)] == [7, 7, 0, 7]


def test_a_null_that_is_given_stays_one(table):
    table.alter_column("s", default="'none'")
    table.append(pa.table({"id": [1], "s": pa.array([None], pa.string())}))
    table.append(pa.table({"id": [2]}))
    assert [row["s"] for row in rows_of(table)] == [None, "none"]


@pytest.mark.parametrize(
    ("kind", "sql", "value"),
    [
        (pa.decimal128(5, 2), "1.5", decimal.Decimal("1.50")),
        (pa.date32(), "date '2024-05-06'", dt.date(2024, 5, 6)),
        (pa.bool_(), "true", True),
        (pa.int8(), "NULL", None),
        (pa.date32(), "current_date", dt.date(2024, 1, 1)),
        (pa.timestamp("us", "UTC"), "NOW()", dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
    ],
)
def test_defaults_of_many_types_are_computed(tmp_path: Path, kind, sql, value):
    clock = ManualClock(now_ms=1_704_067_200_000)
    schema = pa.schema([("id", pa.int64()), ("c", kind)])
    table = sl.Table.create(tmp_path / "t", schema=schema, clock=clock)
    table.alter_column("c", default=sql)
    table.append(pa.table({"id": [1]}))
    assert rows_of(table)[0]["c"] == value


@pytest.mark.parametrize(
    ("column", "sql", "told"),
    [
        ("n", "'one'", "default of column 'n'"),
        ("n", "id + 1", "default of column 'n'"),
        ("s", "uuid()", "uuid"),
        ("gone", "1", "no column 'gone'"),
    ],
)
def test_defaults_that_can_not_be_are_refused(table, column, sql, told):
    with pytest.raises(sl.InvalidInputError, match=told):
        table.alter_column(column, default=sql)
    assert table.version == 0


def test_a_default_that_can_not_be_computed_here_is_told_where_it_is_needed(tmp_path: Path):
    field = pa.field("u", pa.string(), metadata={b"delta.CURRENT_DEFAULT": b'"uuid()"'})
    table = sl.Table.create(tmp_path / "t", schema=pa.schema([("id", pa.int64()), field]))
    table.append(pa.table({"id": [1], "u": ["given"]}))
    with pytest.raises(sl.InvalidInputError, match="default of column 'u'"):
        table.append(pa.table({"id": [2]}))
    assert [row["u"] for row in rows_of(table)] == ["given"]


def test_a_default_is_taken_back(table):
    table.alter_column("n", nullable=True, default="")
    table.append(pa.table({"id": [1]}))
    assert rows_of(table)[0]["n"] is None
