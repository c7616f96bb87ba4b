import pyarrow as pa
import pytest

import streamlake as sl
from streamlake.cli.ddl import MAX_DEPTH, TYPES, parse_columns


@pytest.mark.parametrize("name", TYPES)
def test_every_simple_type_is_read_in_any_case(name):
    assert parse_columns(f"c {name.upper()}").field("c").type == TYPES[name]


def test_nested_types_and_not_null_are_read():
    text = "`a b` array<struct<x:int, y: decimal(10,2) not null>>, "
    text += "m map<string,array<double>> NOT NULL"
    schema = parse_columns(text)
    y = pa.field("y", pa.decimal128(10, 2), nullable=False)
    assert schema.field("a b").type.value_type == pa.struct([pa.field("x", pa.int32()), y])
    assert schema.field("m").type == pa.map_(
        pa.string(), pa.list_(pa.field("element", pa.float64()))
    )
    assert not schema.field("m").nullable


@pytest.mark.parametrize(
    "text",
    [
        "",
        "id",
        "id lung",
        "id long,",
        "id long not",
        "id long x",
        "a array<int",
        "a decimal(50,1)",
        "? int",
        "a struct<>",
        "a decimal(1,2)",
        "a " + "array<" * (MAX_DEPTH + 1),
    ],
)
def test_what_is_no_schema_is_refused_with_the_place(text):
    with pytest.raises(sl.InvalidInputError) as caught:
        parse_columns(text)
    assert caught.value.where.startswith("position ")
