"""What a user may give by mistake is told by name, with what was found and what to do."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import streamlake as sl
from streamlake.testing import TableBuilder

ROWS = pa.table({"n": [1], "s": ["a"]})
MARKER = sl.SetTransaction("a", 1)
_names = itertools.count()


@pytest.fixture
def table() -> sl.Table:
    properties = {"delta.columnMapping.mode": "name"}
    return TableBuilder().schema(ROWS.schema).properties(properties).append(ROWS).build()


def create(**given: Any) -> sl.Table:
    url = f"memory://bad-arguments-{next(_names)}"
    return sl.Table.create(url, **({"schema": ROWS.schema} | given))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"schema": None}, "schema of Arrow's"),
        ({"schema": {"n": "long"}}, "schema of Arrow's"),
        ({"schema": ROWS}, "schema of Arrow's"),
        ({"partition_by": "s"}, "partition_by must be a list"),
        ({"partition_by": 1}, "partition_by must be a list"),
        ({"partition_by": ["s", "s"]}, "named twice"),
        ({"properties": ["delta.appendOnly"]}, "must be a mapping"),
        ({"properties": {"owner": None}}, "owner has a value"),
        ({"properties": {1: "a"}}, "needs a name"),
        ({"properties": {"": "a"}}, "needs a name"),
        ({"properties": {"delta.minWriterVersion": "70"}}, "minWriterVersion has a value"),
        ({"storage_options": "endpoint"}, "must be a mapping"),
    ],
)
def test_no_table_is_created_of(given, told):
    with pytest.raises(sl.InvalidInputError, match=told) as caught:
        create(**given)
    assert caught.value.found
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda t: t.append(ROWS["n"]), "single column"),
        (lambda t: t.append(ROWS, txn=MARKER, expect={"a": 0}), "`expect` must map"),
        (lambda t: t.commit_staged(["part.parquet"]), "files must be a list of AddFile"),
        (lambda t: t.commit_staged(None), "files must be a list of AddFile"),
        (lambda t: t.commit_staged([], staged_by=t), "staged_by must be a Stager"),
        (lambda t: t.confirm_read(t), "must be a Snapshot"),
        (lambda t: t.confirm_read(create().snapshot()), "of another table"),
        (lambda t: t.confirm_read(t.snapshot(), where=1), "must be a string"),
        (lambda t: t.snapshot(1, timestamp=0), "not for both"),
        (lambda t: t.snapshot().to_arrow(columns="n"), "columns must be a list"),
        (lambda t: t.snapshot().to_arrow(where=pc.field("n") > 1), "must be a string"),
        (lambda t: t.snapshot().files(where=["n > 1"]), "must be a string"),
        (lambda t: t.history(limit="3"), "limit must be an integer"),
        (lambda t: t.optimize(target_file_size_bytes="1mb"), "target_file_size_bytes must be"),
        (lambda t: t.optimize(on_progress=3), "on_progress must be a function"),
        (lambda t: t.set_properties(None), "must be a mapping"),
        (lambda t: t.unset_properties(None), "names must be a list"),
        (lambda t: t.rename_column(None, "m"), "column must be a string"),
        (lambda t: t.drop_columns(5), "columns must be a list"),
        (lambda t: t.add_columns("m long"), "fields of Arrow's"),
        (lambda t: t.add_columns([]), "no column to add"),
        (lambda t: t.alter_column("n", type="bigint"), "type must be a DataType"),
        (lambda t: t.alter_column("n", nullable="no"), "nullable must be a bool"),
        (lambda t: t.alter_column("n", default=5), "default must be a str"),
        (lambda t: t.alter_column("n", comment=5), "comment must be a str"),
        (lambda t: t.merge_schema({"m": pa.int64()}), "schema of Arrow's"),
        (lambda t: t.add_constraint("c", None), "must be a string"),
        (lambda t: t.add_constraint("", "n > 0"), "needs a name"),
    ],
)
def test_nothing_is_done_with(table, call: Callable[[sl.Table], object], told):
    with pytest.raises(sl.InvalidInputError, match=told) as caught:
        call(table)
    assert caught.value.found
    assert caught.value.remedy
    assert sl.Table(table.log).snapshot().version == 1


def test_a_constraint_that_can_not_be_is_told_as_the_users_own():
    with pytest.raises(sl.UnsupportedFeatureError, match="constraint 'c'") as caught:
        create(properties={"delta.constraints.c": "n >"})
    assert caught.value.remedy.startswith("Correct it")


def test_a_feature_that_a_change_would_bring_is_told_as_the_users_own(table):
    with pytest.raises(sl.UnsupportedFeatureError, match="teleportation") as caught:
        table.set_properties({"delta.feature.teleportation": "supported"})
    assert caught.value.remedy.startswith("Leave that out")


def test_what_is_inside_of_an_array_has_no_name(table):
    table.add_columns([pa.field("tags", pa.list_(pa.string()))])
    with pytest.raises(sl.InvalidInputError, match="type of the whole column"):
        table.rename_column("tags.element", "tag")
    with pytest.raises(sl.InvalidInputError, match="other types have no fields"):
        table.add_columns([pa.field("m", pa.int64())], within="n")


def test_the_table_that_lacks_a_column_is_told(table):
    for ask in (
        lambda: table.snapshot().to_arrow(columns=["x"]),
        lambda: table.rename_column("x", "y"),
        lambda: table.drop_columns(["x"]),
    ):
        with pytest.raises(sl.InvalidInputError, match="no column 'x'") as caught:
            ask()
        assert caught.value.where == table.url


@pytest.mark.parametrize(
    "given",
    [pa.schema([("n", pa.string())]), pa.schema([("m", pa.int64()), ("N", pa.int64())])],
)
def test_a_schema_that_no_new_column_can_help_is_not_merged(table, given):
    with pytest.raises(sl.SchemaMismatchError):
        table.merge_schema(given)
    assert table.schema.names == ["n", "s"]


def test_rows_of_the_table_that_stand_in_the_way_are_told_as_such(table):
    table.append(pa.table({"n": [0], "s": pa.nulls(1, pa.string())}))
    with pytest.raises(sl.ConstraintViolationError, match="rows of the table") as caught:
        table.add_constraint("positive", "n > 0")
    assert caught.value.where == table.url
    with pytest.raises(sl.ConstraintViolationError, match="rows of the table") as caught:
        table.alter_column("s", nullable=False)
    assert caught.value.found == "s: 1 null"


def test_a_snapshot_shows_where_and_when(table):
    assert repr(table.snapshot()) == f"Snapshot({table.url!r}, version=1)"


def test_columns_that_the_table_lacks_may_join_it(table):
    with pytest.raises(sl.SchemaMismatchError, match="merge_schema=True") as caught:
        table.append(ROWS.append_column("m", [[1]]))
    assert caught.value.where == table.url
    with pytest.raises(sl.SchemaMismatchError, match="cast or drop"):
        table.append(ROWS.rename_columns(["N", "s"]))
