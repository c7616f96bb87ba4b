"""Appends that bring columns, fields and wider types with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import streamlake as sl
from operations.overtaken import overtaken
from streamlake.protocol import Protocol, field_metadata

SCHEMA = pa.schema([("id", pa.int32()), ("s", pa.struct([("x", pa.int32())]))])


def made(path: Path, schema: pa.Schema = SCHEMA, **properties: str) -> sl.Table:
    named = {f"delta.{key}": value for key, value in properties.items()}
    return sl.Table.create(path / "t", schema=schema, properties=named)


def row(**values: Any) -> pa.Table:
    return pa.Table.from_pylist([values])


def rows_of(table: sl.Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = sl.Table.open(table.url).snapshot().to_arrow().to_pylist()
    return found


def test_new_columns_and_fields_join_the_table_with_their_rows_in_one_commit(tmp_path: Path):
    table = made(tmp_path)
    table.append(pa.table({"id": pa.array([1], pa.int32()), "s": [{"x": 1}]}, schema=SCHEMA))
    given = pa.schema(
        [
            ("note", pa.large_string()),
            ("id", pa.int32()),
            pa.field("s", pa.struct([("y", pa.list_(pa.int8())), ("x", pa.int32())])),
        ]
    )
    data = pa.Table.from_pylist([{"id": 2, "note": "n", "s": {"x": 2, "y": [3]}}], schema=given)
    assert table.append(data, merge_schema=True).version == 2
    assert table.schema.names == ["id", "s", "note"]
    assert rows_of(table) == [
        {"id": 1, "s": {"x": 1, "y": None}, "note": None},
        {"id": 2, "s": {"x": 2, "y": [3]}, "note": "n"},
    ]
    record = next(table.history())
    assert (record.operation, record.is_blind_append, record.files_added) == ("WRITE", True, 1)


def test_data_that_fits_is_an_append_like_any_other(tmp_path: Path):
    table = made(tmp_path)
    table.append(pa.table({"id": pa.array([1], pa.int8())}), merge_schema=True)
    assert table.schema.equals(SCHEMA)
    assert table.log.known_head.metadata == sl.Table.open(table.url).log.head.metadata


def test_without_it_new_columns_are_refused(tmp_path: Path):
    table = made(tmp_path)
    with pytest.raises(sl.SchemaMismatchError, match="'note'"):
        table.append(row(note="n"))


def test_a_new_column_is_nullable_whatever_the_data_say(tmp_path: Path):
    table = made(tmp_path)
    strict = pa.schema([pa.field("n", pa.int64(), nullable=False)])
    table.append(pa.table({"n": [1]}, schema=strict), merge_schema=True)
    assert table.schema.field("n").nullable


@pytest.mark.parametrize(
    ("data", "error", "told"),
    [
        (row(id="one"), sl.SchemaMismatchError, "'id'"),
        (row(ID=1), sl.SchemaMismatchError, "'ID'"),
        (row(s=5), sl.SchemaMismatchError, "'s'"),
        (pa.table({"id": [2**40]}), sl.SchemaMismatchError, "'id'"),
        (pa.table({"a b": [1]}), sl.InvalidInputError, "character"),
        (pa.table({"d": pa.array([1], pa.duration("s"))}), sl.InvalidInputError, "'d'"),
    ],
)
def test_what_no_merge_can_help_is_refused_and_nothing_is_written(tmp_path, data, error, told):
    table = made(tmp_path)
    with pytest.raises(error, match=told):
        table.append(data, merge_schema=True)
    assert sl.Table.open(table.url).version == 0
    assert not list((tmp_path / "t").glob("*.parquet"))


def test_types_widen_with_the_data_where_the_table_allows_it(tmp_path: Path):
    schema = pa.schema(
        [
            ("i", pa.int8()),
            ("f", pa.float32()),
            ("d", pa.decimal128(4, 2)),
            ("l", pa.list_(pa.int16())),
            ("s", pa.struct([("x", pa.int32())])),
        ]
    )
    table = made(tmp_path, schema, enableTypeWidening="true")
    first = {"i": 1, "f": 0.5, "d": None, "l": [1], "s": {"x": 1}}
    table.append(pa.Table.from_pylist([first], schema=schema))
    wide = pa.schema(
        [
            ("i", pa.int64()),
            ("f", pa.float64()),
            ("d", pa.decimal128(6, 3)),
            ("l", pa.list_(pa.int32())),
            ("s", pa.struct([("x", pa.int64())])),
        ]
    )
    second = {"i": 2**40, "f": 0.1, "d": None, "l": [2**20], "s": {"x": 2**33}}
    table.append(pa.Table.from_pylist([second], schema=wide), merge_schema=True)
    assert table.schema.equals(wide)
    assert rows_of(table) == [first, second]
    noted = field_metadata(table.schema.field("l"))["delta.typeChanges"]
    assert noted == [{"fromType": "short", "toType": "integer", "fieldPath": "element"}]


def test_an_integer_does_not_become_a_float_by_itself(tmp_path: Path):
    table = made(tmp_path, enableTypeWidening="true")
    with pytest.raises(sl.SchemaMismatchError, match="'id'"):
        table.append(pa.table({"id": [0.5]}), merge_schema=True)


def test_a_void_column_takes_the_type_that_comes(tmp_path: Path):
    table = made(tmp_path, pa.schema([("id", pa.int64()), ("v", pa.null())]))
    table.append(pa.table({"id": [1], "v": ["a"]}), merge_schema=True)
    assert table.schema.field("v").type == pa.string()
    assert table.log.head.protocol == Protocol(1, 2)


def test_new_columns_of_a_mapped_table_are_mapped(tmp_path: Path):
    table = made(tmp_path, **{"columnMapping.mode": "name"})
    table.append(row(**{"a b": 1}), merge_schema=True)
    assert table.properties["delta.columnMapping.maxColumnId"] == "4"
    assert rows_of(table) == [{"id": None, "s": None, "a b": 1}]


def test_a_column_that_needs_a_feature_brings_it(tmp_path: Path):
    table = made(tmp_path)
    table.append(pa.table({"t": pa.array([0], pa.timestamp("us"))}), merge_schema=True)
    assert table.log.head.protocol.reader_features == ("timestampNtz",)


def test_a_stream_of_batches_brings_its_columns(tmp_path: Path):
    table = made(tmp_path)
    table.append(row(note="n").to_reader(), merge_schema=True)
    assert rows_of(table)[0]["note"] == "n"


def test_markers_keep_their_promise_while_the_schema_grows(tmp_path: Path):
    table = made(tmp_path)
    marker = sl.SetTransaction("a", 1)
    table.append(row(note="n"), txn=marker, merge_schema=True)
    again = sl.Table.open(table.url).append(row(note="n"), txn=marker, merge_schema=True)
    assert again.already_committed
    assert len(rows_of(table)) == 1


def test_two_writers_that_bring_columns_at_once_both_get_them(tmp_path: Path):
    one = made(tmp_path)
    other = overtaken(one, lambda: one.append(row(a=1, b="x"), merge_schema=True))
    other.append(row(b="y", c=2.5), merge_schema=True)
    assert sorted(one.snapshot().schema.names) == ["a", "b", "c", "id", "s"]
    assert [r["b"] for r in rows_of(one)] == ["x", "y"]


def test_a_plain_append_goes_on_while_another_brings_columns(tmp_path: Path):
    one = made(tmp_path)
    other = overtaken(one, lambda: one.append(row(a=1), merge_schema=True))
    other.append(pa.table({"id": pa.array([7], pa.int32())}))
    assert [r["id"] for r in rows_of(one)] == [None, 7]


def test_a_handle_learns_of_columns_that_others_brought_before_it_adds_them(tmp_path: Path):
    one = made(tmp_path)
    other = sl.Table.open(one.url)
    one.append(row(a=1), merge_schema=True)
    other.append(row(a=2), merge_schema=True)
    assert not next(other.history()).info.get("operationParameters", {}).get("mergeSchema")
    assert [r["a"] for r in rows_of(one)] == [1, 2]


def test_a_schema_is_merged_without_rows(tmp_path: Path):
    table = made(tmp_path)
    assert table.merge_schema(pa.schema([("a", pa.int64())])).version == 1
    assert table.merge_schema(pa.schema([("a", pa.int64())])).already_committed
    assert table.schema.names == ["id", "s", "a"]


def test_a_sink_may_bring_columns(tmp_path: Path):
    table = made(tmp_path)
    source = made(tmp_path / "source", pa.schema([("note", pa.string())]))
    source.append(row(note="n"))
    sink = sl.TableSink(table, app_id="a", merge_schema=True)
    sl.Pipeline(sl.TableSource(source, stop="latest"), sink).run()
    assert rows_of(table) == [{"id": None, "s": None, "note": "n"}]
