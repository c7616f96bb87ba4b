"""Tails of tables that other engines gave deletion vectors, column mapping and wider types."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pyarrow as pa
import pytest

import streamlake as sl
from data.deletion import inline
from stream.builders import (
    all_numbers,
    before_error,
    change_metadata,
    commit,
    new_table,
    numbers,
    offset_of,
    remove,
    stage,
    table_of,
    take,
)
from streamlake.data import encode_parquet
from streamlake.protocol import AddFile, Metadata, Protocol


def with_vector(add: AddFile, *deleted: int) -> AddFile:
    return msgspec.structs.replace(add, deletion_vector=inline(deleted))


def test_rows_that_a_vector_deletes_are_not_handed_on():
    table = new_table()
    commit(table, with_vector(stage(table, 1, 2, 3, 4), 0, 2))
    assert all_numbers(table) == [2, 4]
    assert all_numbers(table, start="snapshot") == [2, 4]


def test_a_position_inside_of_a_file_counts_the_rows_that_are_left():
    table = new_table()
    commit(table, with_vector(stage(table, *range(10)), 0, 1, 5))
    batches = take(table.tail(options=sl.TailOptions(max_rows=3)), 1)
    assert numbers(batches) == [2, 3, 4]
    assert all_numbers(table, start=offset_of(batches[-1])) == [6, 7, 8, 9]


def test_a_delete_by_vector_removes_data():
    table = new_table()
    add = stage(table, 1, 2, 3)
    commit(table, add)
    commit(table, remove(add), with_vector(add, 1))
    assert before_error(table.tail(), sl.DataRemovedError) == [1, 2, 3]
    options = sl.TailOptions(on_removed="ignore_changes")
    assert all_numbers(table, options=options) == [1, 2, 3, 1, 3]


def test_an_optimize_reads_what_is_left():
    table = new_table()
    for first in (0, 10, 20, 30):
        commit(table, with_vector(stage(table, *range(first, first + 4)), 1, 2))
    left = [0, 3, 10, 13, 20, 23, 30, 33]
    assert table.optimize().files_added == 1
    assert table.snapshot().to_arrow().column("n").to_pylist() == left
    assert all(add.deletion_vector is None for add in table.snapshot().files())
    assert all_numbers(table) == left


def test_an_optimize_of_files_of_which_nothing_is_left_removes_them():
    table = new_table()
    for first in (0, 10, 20, 30):
        commit(table, with_vector(stage(table, first, first + 1), 0, 1))
    assert table.optimize().files_added == 0
    assert list(table.snapshot().files()) == []
    assert all_numbers(table) == []


# -------------------------------------------------------------------------------------------------
# Column mapping


def mapped(*fields: tuple[str, str, int, str]) -> str:
    """A schema of columns, each by name, physical name, id and type."""
    return json.dumps(
        {
            "type": "struct",
            "fields": [
                {
                    "name": name,
                    "type": kind,
                    "nullable": True,
                    "metadata": {
                        "delta.columnMapping.physicalName": physical,
                        "delta.columnMapping.id": number,
                    },
                }
                for name, physical, number, kind in fields
            ],
        }
    )


def mapped_table(mode: str, schema_json: str) -> sl.Table:
    """A table whose columns are mapped from version 1 on."""
    table = new_table()
    metadata = table.log.refresh().metadata
    configuration = {"delta.columnMapping.mode": mode}
    changed = msgspec.structs.replace(
        metadata, schema_string=schema_json, configuration=configuration
    )
    commit(table, Protocol(2, 5), changed)
    return table


def stored(table: sl.Table, **columns: tuple[int, Any]) -> AddFile:
    """A data file of those physical columns, each with its field id and an array."""
    fields = [
        pa.field(name, array.type, metadata={b"PARQUET:field_id": str(number).encode()})
        for name, (number, array) in columns.items()
    ]
    arrays = [array for _, array in columns.values()]
    add = stage(table, 0)
    sink = pa.BufferOutputStream()
    rows = pa.Table.from_arrays(arrays, schema=pa.schema(fields))
    with pa.parquet.ParquetWriter(sink, rows.schema) as writer:
        writer.write_table(rows)
    data = sink.getvalue()
    table.log.store.put(add.path, memoryview(data))
    return msgspec.structs.replace(add, size=len(data))


ONE = ("n", "col-n", 1, "long")


@pytest.mark.parametrize(("mode", "name"), [("name", "col-n"), ("id", "whatever")])
def test_columns_are_handed_on_by_their_logical_names(mode, name):
    table = mapped_table(mode, mapped(ONE))
    add = stored(table, **{name: (1, pa.array([1, 2]))})
    commit(table, add)
    assert all_numbers(table, start=1) == [1, 2]
    assert all_numbers(table, start=1, options=sl.TailOptions(columns=["n"])) == [1, 2]
    assert table.snapshot().to_arrow().to_pydict() == {"n": [1, 2]}


def test_a_renamed_column_stops_the_tail_or_is_followed():
    table = mapped_table("name", mapped(ONE))
    commit(table, stored(table, **{"col-n": (1, pa.array([1]))}))
    change_metadata(table, schema_string=mapped(("m", "col-n", 1, "long")))
    commit(table, stored(table, **{"col-n": (1, pa.array([2]))}))
    assert before_error(table.tail(start=1), sl.StreamError, "'n'") == [1]
    options = sl.TailOptions(on_schema_change="follow")
    batches = list(table.tail(start=1, stop="latest", options=options))
    assert [batch.data.to_pydict() for batch in batches] == [{"n": [1]}, {"m": [2]}]


def test_a_column_dropped_and_added_again_is_another_one():
    table = mapped_table("name", mapped(ONE))
    commit(table, stored(table, **{"col-n": (1, pa.array([1]))}))
    change_metadata(table, schema_string=mapped(("n", "col-new", 2, "long")))
    commit(table, stored(table, **{"col-new": (2, pa.array([2]))}))
    assert before_error(table.tail(start=1), sl.StreamError, "col-n") == [1]
    assert table.snapshot().to_arrow().to_pydict() == {"n": [None, 2]}


def test_a_mapping_that_begins_does_not_stop_the_tail():
    table = table_of([1])
    metadata = table.log.refresh().metadata
    configuration = {"delta.columnMapping.mode": "name"}
    changed = msgspec.structs.replace(
        metadata, schema_string=mapped(("n", "n", 1, "long")), configuration=configuration
    )
    commit(table, Protocol(2, 5), changed)
    commit(table, stage(table, 2))
    assert all_numbers(table) == [1, 2]


# -------------------------------------------------------------------------------------------------
# Type widening


def widened(kind: str, *changes: tuple[str, str]) -> str:
    listed = [{"fromType": before, "toType": after} for before, after in changes]
    metadata = {"delta.typeChanges": listed}
    field = {"name": "n", "type": kind, "nullable": True, "metadata": metadata}
    return json.dumps({"type": "struct", "fields": [field]})


def test_a_wider_type_stops_the_tail_or_is_followed():
    features = ("typeWidening",)
    table = new_table()
    metadata = Metadata(table.log.refresh().metadata.id, schema_string=widened("integer"))
    commit(table, Protocol(3, 7, features, features), metadata)
    narrow = bytes(encode_parquet(pa.table({"n": pa.array([1], pa.int32())})))
    add = stage(table, 0)
    table.log.store.put(add.path, narrow)
    commit(table, msgspec.structs.replace(add, size=len(narrow)))
    change_metadata(table, schema_string=widened("long", ("integer", "long")))
    commit(table, stage(table, 2**40))
    options = sl.TailOptions(on_schema_change="follow")
    kinds = {batch.data.schema.field("n").type for batch in table.tail(start=1, stop=2)}
    assert kinds == {pa.int32()}
    assert before_error(table.tail(start=1), sl.StreamError, "int64") == [1]
    assert all_numbers(table, start=1, options=options) == [1, 2**40]
    assert table.snapshot().to_arrow().to_pydict() == {"n": [1, 2**40]}
