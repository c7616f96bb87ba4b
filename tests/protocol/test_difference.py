"""How schemas differ, in sentences."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given, settings

from strategies import table_schemas
from streamlake.protocol import schema_difference

ID = pa.field("id", pa.int64(), nullable=False)
NAME = pa.field("name", pa.string())
COLUMNS: list[pa.Field[Any]] = [ID, NAME]
TABLE = pa.schema(COLUMNS)


def difference(*given_fields: pa.Field[Any]) -> list[str]:
    return schema_difference(TABLE, pa.schema(given_fields))


def nested_difference(expected: pa.DataType, found: pa.DataType) -> list[str]:
    return schema_difference(pa.schema([("c", expected)]), pa.schema([("c", found)]))


@given(table_schemas)
def test_a_schema_does_not_differ_from_itself(schema):
    assert schema_difference(schema, schema) == []


@settings(max_examples=30)
@given(table_schemas, table_schemas)
def test_whatever_differs_is_told(one, other):
    if not schema_difference(one, other) and not schema_difference(other, one):
        assert {field.name: field for field in one} == {field.name: field for field in other}


def test_order_and_metadata_do_not_count():
    assert difference(NAME.with_metadata({"a": "b"}), ID) == []


def test_a_missing_column_is_told_with_its_type():
    assert difference(NAME) == ["column 'id' (int64, NOT NULL) is missing"]
    assert difference(ID) == ["column 'name' (string) is missing"]


def test_an_unknown_column_is_told():
    assert difference(ID, NAME, pa.field("x", pa.int8())) == [
        "column 'x' (int8) is not in the table"
    ]


def test_a_name_of_another_case_is_told_as_such():
    assert difference(ID, pa.field("Name", pa.string())) == [
        "column 'name' is named 'Name' in the data: names must agree in case too"
    ]


def test_another_type_is_told_with_both():
    assert difference(ID, pa.field("name", pa.int8())) == [
        "column 'name' is string in the table and int8 in the data"
    ]


def test_nulls_count_only_where_the_table_allows_none():
    assert difference(ID.with_nullable(True), NAME) == [  # noqa: FBT003 - Arrow's signature
        "column 'id' is NOT NULL in the table and may be null in the data"
    ]
    assert difference(ID, NAME.with_nullable(False)) == []  # noqa: FBT003 - as above


def test_differences_inside_of_types_are_told_by_their_path():
    assert nested_difference(
        pa.struct([("a", pa.list_(pa.int8())), ("b", pa.int8())]),
        pa.struct([("a", pa.list_(pa.int16()))]),
    ) == [
        "column 'c.a.element' is int8 in the table and int16 in the data",
        "column 'c.b' (int8) is missing",
    ]


def test_differences_of_maps_are_told_by_key_and_value():
    assert nested_difference(pa.map_(pa.string(), pa.int8()), pa.map_(pa.int8(), pa.string())) == [
        "column 'c.key' is string in the table and int8 in the data",
        "column 'c.value' is int8 in the table and string in the data",
    ]


def test_elements_that_may_be_null_where_the_table_has_not_null_are_told():
    assert nested_difference(
        pa.list_(pa.field("element", pa.int8(), nullable=False)), pa.list_(pa.int8())
    ) == ["column 'c.element' is NOT NULL in the table and may be null in the data"]


def test_the_names_of_a_lists_child_do_not_count():
    assert (
        nested_difference(
            pa.list_(pa.field("element", pa.int8())), pa.list_(pa.field("item", pa.int8()))
        )
        == []
    )
