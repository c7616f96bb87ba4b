"""Delta's schema JSON and Arrow."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given

from strategies import table_schemas, text
from streamlake.errors import (
    CorruptTableError,
    InvalidInputError,
    LimitExceededError,
    TableError,
    UnsupportedFeatureError,
)
from streamlake.protocol import (
    MAX_SCHEMA_DEPTH,
    field_metadata,
    schema_from_json,
    schema_to_json,
    with_field_metadata,
)
from streamlake.protocol.schema.codec import MAX_SCHEMA_CHARS

DOCUMENTED = """
{"type": "struct", "fields": [
  {"name": "a", "type": "integer", "nullable": false, "metadata": {}},
  {"name": "b", "type": {"type": "struct", "fields": [
    {"name": "d", "type": "integer", "nullable": false, "metadata": {}}]},
    "nullable": true, "metadata": {}},
  {"name": "c", "type": {"type": "array", "elementType": "integer", "containsNull": false},
    "nullable": true, "metadata": {}},
  {"name": "e", "type": {"type": "array", "elementType": {"type": "struct", "fields": [
    {"name": "d", "type": "integer", "nullable": false, "metadata": {}}]}, "containsNull": true},
    "nullable": true, "metadata": {}},
  {"name": "f", "type": {"type": "map", "keyType": "string", "valueType": "string",
    "valueContainsNull": true}, "nullable": true, "metadata": {}}]}
"""
STRUCT_D = pa.struct([pa.field("d", pa.int32(), nullable=False)])


def one_column(kind: object, **more: object) -> str:
    return json.dumps({"type": "struct", "fields": [{"name": "c", "type": kind, **more}]})


def nested_array(depth: int) -> object:
    kind: object = "long"
    for _ in range(depth):
        kind = {"type": "array", "elementType": kind, "containsNull": True}
    return kind


@given(table_schemas)
def test_every_schema_comes_back_as_it_was_with_its_metadata(schema):
    again = schema_from_json(schema_to_json(schema))
    assert again.equals(schema, check_metadata=True)


def test_the_protocols_example_is_read_and_written():
    schema = schema_from_json(DOCUMENTED)
    assert schema == pa.schema(
        [
            pa.field("a", pa.int32(), nullable=False),
            pa.field("b", STRUCT_D),
            pa.field("c", pa.list_(pa.field("element", pa.int32(), nullable=False))),
            pa.field("e", pa.list_(STRUCT_D)),
            pa.field("f", pa.map_(pa.string(), pa.string())),
        ]
    )
    assert json.loads(schema_to_json(schema)) == json.loads(DOCUMENTED)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("string", pa.string()),
        ("long", pa.int64()),
        ("integer", pa.int32()),
        ("short", pa.int16()),
        ("byte", pa.int8()),
        ("float", pa.float32()),
        ("double", pa.float64()),
        ("boolean", pa.bool_()),
        ("binary", pa.binary()),
        ("date", pa.date32()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("timestamp_ntz", pa.timestamp("us")),
        ("void", pa.null()),
        ("decimal(10,2)", pa.decimal128(10, 2)),
        ("decimal(38,38)", pa.decimal128(38, 38)),
    ],
)
def test_each_primitive_type_has_its_twin(name, kind):
    schema = schema_from_json(one_column(name))
    assert schema.field("c").type == kind
    assert json.loads(schema_to_json(schema))["fields"][0]["type"] == name


@pytest.mark.parametrize(
    ("spelling", "kind"),
    [
        ("decimal", pa.decimal128(10, 0)),
        ("decimal( 10 , 2 )", pa.decimal128(10, 2)),
        ("int", pa.int32()),
        ("null", pa.null()),
    ],
)
def test_spellings_that_spark_reads_are_read(spelling, kind):
    assert schema_from_json(one_column(spelling)).field("c").type == kind


@pytest.mark.parametrize("unknown", ["interval", "geometry(OGC:CRS84)", "uint64", "Long"])
def test_an_unknown_type_is_refused_with_the_column_and_the_type(unknown):
    kind = {"type": "array", "elementType": unknown, "containsNull": True}
    with pytest.raises(UnsupportedFeatureError) as caught:
        schema_from_json(one_column(kind), where="file:///t")
    assert "'c.element'" in caught.value.what
    assert unknown in caught.value.what
    assert caught.value.where == "file:///t"


def test_an_unknown_nested_type_is_refused_by_its_name():
    with pytest.raises(UnsupportedFeatureError, match="'udt'"):
        schema_from_json(one_column({"type": "udt", "class": "x"}))


@pytest.mark.parametrize(
    "garbled",
    [
        "",
        "{",
        "[]",
        "7",
        '"struct"',
        '{"type":"array"}',
        '{"type":"struct"}',
        '{"type":"struct","fields":{}}',
        '{"type":"struct","fields":[{"type":"long"}]}',
        '{"type":"struct","fields":[{"name":"a"}]}',
        '{"type":"struct","fields":[],"fields":[]}',
        '{"type":"struct","fields":[{"name":"a","type":7}]}',
        '{"type":"struct","fields":[{"name":"a","type":{"type":7}}]}',
        '{"type":"struct","fields":[{"name":"a","type":"long","nullable":"yes"}]}',
        one_column("decimal(0,0)"),
        one_column("decimal(39,0)"),
        one_column("decimal(3,4)"),
        one_column({"type": "array"}),
        one_column({"type": "map", "keyType": "string"}),
        "\ud800",
    ],
)
def test_what_is_no_schema_is_a_corrupt_table(garbled):
    with pytest.raises(CorruptTableError):
        schema_from_json(garbled)


@pytest.mark.parametrize("names", [("a", "a"), ("Id", "iD"), ("É", "é")])
def test_two_columns_of_one_name_are_a_corrupt_table(names):
    fields = [{"name": name, "type": "long"} for name in names]
    struct = {"type": "struct", "fields": fields}
    with pytest.raises(CorruptTableError, match="differ by case"):
        schema_from_json(json.dumps(struct))
    with pytest.raises(CorruptTableError, match=r"c\."):
        schema_from_json(one_column(struct))


@given(text)
def test_any_text_is_a_schema_or_a_typed_error(schema_json):
    with pytest.raises(TableError):
        schema_from_json(schema_json)
    with pytest.raises(TableError):
        schema_from_json(one_column(schema_json + "?"))


def test_types_nest_to_a_bound():
    schema = schema_from_json(one_column(nested_array(MAX_SCHEMA_DEPTH)))
    assert json.loads(schema_to_json(schema))["fields"][0]["type"] == nested_array(MAX_SCHEMA_DEPTH)
    with pytest.raises(LimitExceededError, match="'c'"):
        schema_from_json(one_column(nested_array(MAX_SCHEMA_DEPTH + 1)))


def test_a_nesting_bomb_is_a_typed_error():
    with pytest.raises(LimitExceededError):
        schema_from_json('{"type":"struct","fields":' + "[" * 100_000)


def test_writing_a_schema_that_nests_too_deep_is_refused():
    kind: pa.DataType = pa.int64()
    for _ in range(MAX_SCHEMA_DEPTH + 1):
        kind = pa.list_(kind)
    with pytest.raises(LimitExceededError):
        schema_to_json(pa.schema([("c", kind)]))


def test_a_type_without_a_twin_is_refused_by_its_path():
    schema = pa.schema([("a", pa.struct([("b", pa.uint64())]))])
    with pytest.raises(InvalidInputError, match=r"'a\.b'"):
        schema_to_json(schema)


@pytest.mark.parametrize("value", [1, "x", None, True, 1.5, [1, {"a": None}], {"b": {}}])
def test_metadata_of_a_column_may_be_any_json(value):
    metadata = {"comment": value, "delta.columnMapping.id": 7}
    schema = schema_from_json(one_column("long", metadata=metadata))
    assert field_metadata(schema.field("c")) == metadata
    assert json.loads(schema_to_json(schema))["fields"][0]["metadata"] == metadata


def test_metadata_of_nested_fields_is_kept():
    inner = {"type": "struct", "fields": [{"name": "d", "type": "long", "metadata": {"x": 1}}]}
    schema = schema_from_json(one_column({"type": "array", "elementType": inner}))
    assert field_metadata(schema.field("c").type.value_type.field("d")) == {"x": 1}


def test_metadata_that_is_not_deltas_is_not_stored():
    field = pa.field("c", pa.int64(), metadata={b"PARQUET:field_id": b"7"})
    assert field_metadata(field) == {}
    assert json.loads(schema_to_json(pa.schema([field])))["fields"][0]["metadata"] == {}


@pytest.mark.parametrize("value", [b"no json", b"\xff", b"[" * 100_000])
def test_metadata_that_is_no_json_is_refused_by_the_column(value):
    field = pa.field("c", pa.int64(), metadata={b"delta.comment": value})
    with pytest.raises(InvalidInputError, match="'c'"):
        schema_to_json(pa.schema([field]))


def test_metadata_is_replaced_whole():
    field = with_field_metadata(pa.field("c", pa.int64()), {"a": 1})
    assert field_metadata(with_field_metadata(field, {"b": 2})) == {"b": 2}
    assert with_field_metadata(field, {}).metadata is None


def test_names_with_dots_are_told_apart_from_nesting():
    struct = pa.struct([("a.b", pa.uint8())])
    with pytest.raises(InvalidInputError, match=r"'c\.`a\.b`'"):
        schema_to_json(pa.schema([("c", struct)]))


def test_a_schema_text_past_the_limit_is_refused_before_it_is_parsed():
    text = '{"type":"struct","fields":[]' + " " * MAX_SCHEMA_CHARS + "}"
    with pytest.raises(LimitExceededError, match="MAX_SCHEMA_CHARS"):
        schema_from_json(text)
