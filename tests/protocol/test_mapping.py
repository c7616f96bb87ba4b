"""The names of columns in files and log."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from streamlake.errors import CorruptTableError, InvalidInputError
from streamlake.protocol import Metadata, Protocol, column_mapping
from streamlake.protocol.mapping import FIELD_ID, column_id, max_column_id, physical_name

LEGACY = Protocol(2, 5)
FEATURES = Protocol(3, 7, ("columnMapping",), ("columnMapping",))


def field(name: str, kind: Any, number: int | None, physical: str | None, **more: Any) -> Any:
    mapped = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical}
    known = {key: value for key, value in mapped.items() if value is not None}
    return {"name": name, "type": kind, "nullable": True, "metadata": known | more}


def struct(*fields: Any) -> Any:
    return {"type": "struct", "fields": list(fields)}


def array(element: Any) -> Any:
    return {"type": "array", "elementType": element, "containsNull": True}


def mapping_of(*fields: Any, mode: str = "name", protocol: Protocol = FEATURES) -> Any:
    metadata = Metadata(
        "id",
        schema_string=json.dumps(struct(*fields)),
        configuration={"delta.columnMapping.mode": mode},
    )
    return column_mapping(protocol, metadata, where="file:///t")


NESTED = (
    field("id", "long", 1, "col-1"),
    field(
        "e",
        array(struct(field("d", "integer", 3, "col-3"))),
        2,
        "col-2",
        **{"delta.columnMapping.nested.ids": {"col-2.element": 9}},
    ),
    field(
        "m",
        {
            "type": "map",
            "keyType": struct(field("k", "string", 5, "col-5")),
            "valueType": array("long"),
            "valueContainsNull": False,
        },
        4,
        "col-4",
        **{
            "delta.columnMapping.nested.ids": {
                "col-4.key": 10,
                "col-4.value": 11,
                "col-4.value.element": 12,
            }
        },
    ),
)


@pytest.mark.parametrize("mode", ["name", "id", "NAME"])
@pytest.mark.parametrize("protocol", [LEGACY, FEATURES])
def test_every_struct_field_goes_by_its_physical_name(mode, protocol):
    mapping = mapping_of(*NESTED, mode=mode, protocol=protocol)
    assert mapping.mode == mode.lower()
    assert mapping.physical.names == ["col-1", "col-2", "col-4"]
    assert mapping.physical.field("col-2").type.value_type.field(0).name == "col-3"
    assert mapping.physical.field("col-4").type.key_type.field(0).name == "col-5"
    assert mapping.logical.names == ["id", "e", "m"]


def test_the_physical_schema_holds_the_ids_of_parquet_at_every_depth():
    physical = mapping_of(*NESTED).physical
    assert physical.field("col-1").metadata == {FIELD_ID: b"1"}
    element = physical.field("col-2").type.value_field
    assert element.metadata == {FIELD_ID: b"9"}
    assert element.type.field(0).metadata == {FIELD_ID: b"3"}
    entries = physical.field("col-4").type
    assert entries.key_field.metadata == {FIELD_ID: b"10"}
    assert entries.item_field.metadata == {FIELD_ID: b"11"}
    assert entries.item_type.value_field.metadata == {FIELD_ID: b"12"}
    assert not entries.item_field.nullable


@pytest.mark.parametrize(
    ("logical", "physical"),
    [
        (("id",), ("col-1",)),
        (("e", "element", "d"), ("col-2", "element", "col-3")),
        (("m", "key", "k"), ("col-4", "key", "col-5")),
        (("m", "value", "element"), ("col-4", "value", "element")),
    ],
)
def test_paths_are_translated_both_ways(logical, physical):
    mapping = mapping_of(*NESTED)
    assert mapping.physical_path(logical) == physical
    assert mapping.logical_path(physical) == logical


def test_names_of_columns_are_translated_both_ways():
    mapping = mapping_of(*NESTED)
    assert mapping.physical_name("m") == "col-4"
    assert mapping.logical_name("col-4") == "m"


def test_what_is_not_known_is_told_or_none():
    mapping = mapping_of(*NESTED)
    for path in [("col-1",), ("e", "d"), ("id", "x"), ("m", "value", "value")]:
        with pytest.raises(InvalidInputError, match="no column"):
            mapping.physical_path(path)
    assert mapping.logical_name("col-dropped") is None
    assert mapping.logical_path(("col-2", "element", "col-dropped")) is None


def test_the_mode_counts_only_where_the_protocol_supports_it():
    for protocol in [Protocol(1, 2), Protocol(3, 7, (), ())]:
        mapping = mapping_of(*NESTED, protocol=protocol)
        assert not mapping.is_mapped
        assert mapping.physical.names == mapping.logical.names == ["id", "e", "m"]


def test_without_a_mode_names_are_those_of_the_schema_and_ids_are_left_out():
    mapping = mapping_of(*NESTED, mode="none")
    assert not mapping.is_mapped
    assert mapping.physical.equals(mapping.logical)
    assert all(field.metadata is None for field in mapping.physical)
    assert mapping.physical_path(("e", "element", "d")) == ("e", "element", "d")


def test_a_mapping_is_made_once():
    assert mapping_of(*NESTED) is mapping_of(*NESTED)


@pytest.mark.parametrize(
    ("fields", "mode", "found"),
    [
        ([field("a", "long", 1, None)], "name", "physicalName"),
        ([field("a", "long", 1, "")], "name", "physicalName"),
        ([field("a", "long", None, "p")], "id", "'a' has no delta.columnMapping.id"),
        ([field("a", "long", -1, "p")], "id", "columnMapping.id"),
        ([field("a", "long", 2**31, "p")], "id", "columnMapping.id"),
        ([field("a", "long", 1, "p"), field("b", "long", 2, "p")], "name", "'p', of column 'b'"),
        ([field("a", "long", 1, "p"), field("b", "long", 1, "q")], "id", "1: 'a', 'b'"),
        (
            [field("a", struct(field("b", "long", 2, None)), 1, "p")],
            "name",
            "'a.b' has no delta.columnMapping.physicalName",
        ),
        ([field("a", "long", 1, "p")], "physical", "'physical'"),
    ],
)
def test_a_mapping_that_contradicts_itself_is_told(fields, mode, found):
    with pytest.raises(CorruptTableError) as error:
        mapping_of(*fields, mode=mode)
    assert found in error.value.found
    assert error.value.where == "file:///t"


def test_ids_are_not_needed_where_columns_go_by_name():
    twice = [field("a", "long", 1, "p"), field("b", "long", 1, "q"), field("c", "long", None, "r")]
    assert mapping_of(*twice).physical.names == ["p", "q", "r"]


def test_one_physical_name_may_stand_in_two_structs():
    inner = struct(field("x", "long", 2, "p"))
    mapping = mapping_of(field("a", inner, 1, "p"), field("b", inner, 3, "q"))
    assert mapping.physical_path(("a", "x")) == ("p", "p")


def test_what_the_schema_says_of_a_field_is_told():
    schema = mapping_of(*NESTED).logical
    assert max_column_id(schema) == 12
    assert (physical_name(schema.field("id")), column_id(schema.field("id"))) == ("col-1", 1)
    plain = pa.field("x", pa.int64())
    assert (physical_name(plain), column_id(plain)) == (None, None)
    assert max_column_id(pa.schema([plain])) == 0
