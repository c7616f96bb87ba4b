"""A user's schema becomes a table's."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given

from strategies import table_schemas, user_schemas
from streamlake.errors import InvalidInputError, LimitExceededError
from streamlake.protocol import (
    MAX_SCHEMA_DEPTH,
    field_metadata,
    normalize_schema,
    schema_from_json,
    schema_to_json,
    with_field_metadata,
)


def normal(kind: pa.DataType) -> Any:
    return normalize_schema(pa.schema([("c", kind)])).field("c").type


@given(table_schemas)
def test_a_tables_schema_is_normal(schema):
    assert normalize_schema(schema).equals(schema, check_metadata=True)


@given(user_schemas)
def test_what_is_normal_can_be_stored_and_stays_as_it_is(schema):
    once = normalize_schema(schema)
    assert normalize_schema(once).equals(once, check_metadata=True)
    assert schema_from_json(schema_to_json(once)).equals(once, check_metadata=True)


@given(user_schemas)
def test_names_and_nullability_stay(schema):
    once = normalize_schema(schema)
    assert [(f.name, f.nullable) for f in once] == [(f.name, f.nullable) for f in schema]
    assert [field_metadata(f) for f in once] == [field_metadata(f) for f in schema]


@pytest.mark.parametrize(
    ("given_type", "stored"),
    [
        (pa.uint8(), pa.int16()),
        (pa.uint16(), pa.int32()),
        (pa.uint32(), pa.int64()),
        (pa.uint64(), pa.decimal128(20, 0)),
        (pa.float16(), pa.float32()),
        (pa.large_string(), pa.string()),
        (pa.string_view(), pa.string()),
        (pa.large_binary(), pa.binary()),
        (pa.binary_view(), pa.binary()),
        (pa.binary(4), pa.binary()),
        (pa.date64(), pa.date32()),
        (pa.timestamp("s"), pa.timestamp("us")),
        (pa.timestamp("ns", "Asia/Tokyo"), pa.timestamp("us", "UTC")),
        (pa.timestamp("us", "+01:00"), pa.timestamp("us", "UTC")),
        (pa.decimal32(5, 2), pa.decimal128(5, 2)),
        (pa.decimal64(12, 2), pa.decimal128(12, 2)),
        (pa.decimal256(38, 38), pa.decimal128(38, 38)),
        (pa.decimal128(5, -2), pa.decimal128(7, 0)),
        (pa.decimal128(2, 5), pa.decimal128(5, 5)),
        (pa.dictionary(pa.int8(), pa.large_string()), pa.string()),
        (pa.run_end_encoded(pa.int32(), pa.uint8()), pa.int16()),
        (pa.large_list(pa.uint8()), pa.list_(pa.int16())),
        (pa.list_(pa.float16(), 3), pa.list_(pa.float32())),
        (pa.map_(pa.large_string(), pa.uint8()), pa.map_(pa.string(), pa.int16())),
        (pa.struct([("x", pa.uint8())]), pa.struct([("x", pa.int16())])),
    ],
)
def test_types_become_the_narrowest_that_holds_their_values(given_type, stored):
    assert normal(given_type) == stored
    assert normal(pa.list_(given_type)) == pa.list_(stored)


def test_not_null_inside_of_types_is_kept():
    element = pa.field("item", pa.uint8(), nullable=False)
    assert normal(pa.large_list(element)).value_field == pa.field(
        "element", pa.int16(), nullable=False
    )


@pytest.mark.parametrize(
    "kind",
    [
        pa.time32("s"),
        pa.time64("us"),
        pa.duration("s"),
        pa.month_day_nano_interval(),
        pa.decimal256(39, 0),
        pa.decimal128(38, -1),
        pa.struct([]),
        pa.list_(pa.null()),
        pa.struct([("x", pa.null())]),
        pa.sparse_union([pa.field("x", pa.int8())]),
        pa.list_view(pa.int8()),
        pa.dictionary(pa.int8(), pa.list_(pa.int8())),  # type: ignore[call-overload]
        pa.uuid(),
        pa.json_(),
    ],
    ids=str,
)
def test_a_type_that_would_lose_something_is_refused_with_a_remedy(kind):
    with pytest.raises(InvalidInputError, match="'c") as caught:
        normal(kind)
    assert caught.value.found
    assert caught.value.remedy


def test_a_column_of_nulls_may_stand_beside_others_but_not_alone():
    both: list[pa.Field[Any]] = [pa.field("n", pa.null()), pa.field("c", pa.int8())]
    assert normalize_schema(pa.schema(both)).field("n").type == pa.null()
    with pytest.raises(InvalidInputError, match="type null"):
        normalize_schema(pa.schema([("n", pa.null())]))


def test_a_schema_without_columns_is_refused():
    with pytest.raises(InvalidInputError, match="at least one column"):
        normalize_schema(pa.schema([]))


@pytest.mark.parametrize("character", " ,;{}()\n\t=")
def test_reserved_characters_are_refused_at_every_level(character):
    name = f"a{character}b"
    for schema in (
        pa.schema([(name, pa.int8())]),
        pa.schema([("c", pa.list_(pa.struct([(name, pa.int8())])))]),
    ):
        with pytest.raises(InvalidInputError) as caught:
            normalize_schema(schema)
        assert repr(character) in caught.value.found


@pytest.mark.parametrize("names", [("id", "id"), ("Id", "iD")])
def test_names_that_differ_by_case_at_most_are_refused_at_every_level(names):
    fields = [(name, pa.int8()) for name in names]
    with pytest.raises(InvalidInputError, match=r"one name, '[Ii]d'"):
        normalize_schema(pa.schema(fields))
    with pytest.raises(InvalidInputError, match=r"one name, 'c\."):
        normalize_schema(pa.schema([("c", pa.struct(fields))]))


def test_a_column_without_a_name_is_refused():
    with pytest.raises(InvalidInputError, match="no name"):
        normalize_schema(pa.schema([("", pa.int8())]))


def test_a_schema_that_nests_too_deep_is_refused():
    kind: pa.DataType = pa.int8()
    for _ in range(MAX_SCHEMA_DEPTH + 1):
        kind = pa.list_(kind)
    with pytest.raises(LimitExceededError, match="'c'"):
        normal(kind)


def test_metadata_of_arrow_goes_and_that_of_delta_stays():
    plain = pa.field("c", pa.int8(), metadata={b"PARQUET:field_id": b"1"})
    commented = with_field_metadata(pa.field("d", pa.int8()), {"comment": "x"})
    schema = normalize_schema(pa.schema([plain, commented], metadata={b"pandas": b"{}"}))
    assert schema.metadata is None
    assert schema.field("c").metadata is None
    assert field_metadata(schema.field("d")) == {"comment": "x"}
