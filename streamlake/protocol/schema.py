"""Delta's schema JSON to and from Arrow (PROTOCOL.md, "Schema Serialization Format")."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import msgspec
import pyarrow as pa

from streamlake.errors import (
    CorruptTableError,
    InvalidInputError,
    LimitExceededError,
    UnsupportedFeatureError,
)

FIELD_METADATA = b"delta"
"""The key of an Arrow field's metadata that holds Delta's column metadata, as one JSON object."""
MAX_DEPTH = 64
_FORBIDDEN = frozenset(" ,;{}()\n\t=")

_PRIMITIVES: dict[str, pa.DataType] = {
    "string": pa.string(),
    "long": pa.int64(),
    "integer": pa.int32(),
    "short": pa.int16(),
    "byte": pa.int8(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
}
_NAMES = {kind: name for name, kind in _PRIMITIVES.items()}
_DECIMAL = re.compile(r"decimal(?:\(\s*(\d+)\s*,\s*(-?\d+)\s*\))?")
_MAX_PRECISION = 38

_LOSSLESS: dict[pa.DataType, pa.DataType] = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date64(): pa.date32(),
}


@functools.lru_cache(maxsize=256)
def schema_from_json(text: str) -> pa.Schema:
    """The Arrow schema of a ``schemaString``; column metadata is kept.

    Raises:
        CorruptTableError: It is empty or no schema.
        UnsupportedFeatureError: A type that is not supported.
    """
    try:
        struct = msgspec.json.decode(text)
        return pa.schema([_field(field, "", 1) for field in struct["fields"]])
    except (msgspec.DecodeError, KeyError, TypeError) as error:
        raise CorruptTableError(
            "The table's schema can't be decoded.", found=repr(text[:80]), remedy=str(error)
        ) from error


def _field(field: dict[str, Any], parent: str, depth: int) -> pa.Field[Any]:
    name = field["name"]
    metadata = field.get("metadata") or None
    encoded = {FIELD_METADATA: msgspec.json.encode(metadata)} if metadata else None
    kind = _type(field["type"], f"{parent}{name}", depth)
    return pa.field(name, kind, nullable=field.get("nullable", True), metadata=encoded)


def _type(kind: Any, path: str, depth: int) -> pa.DataType:  # noqa: ANN401 -- a JSON edge
    if depth > MAX_DEPTH:
        raise LimitExceededError("The schema is nested too deep.", where=path[:80])
    if isinstance(kind, str):
        return _primitive(kind, path)
    match kind["type"]:
        case "struct":
            return pa.struct([_field(field, f"{path}.", depth + 1) for field in kind["fields"]])
        case "array":
            element = _type(kind["elementType"], f"{path}.element", depth + 1)
            return pa.list_(pa.field("element", element, nullable=kind.get("containsNull", True)))
        case "map":
            key = _type(kind["keyType"], f"{path}.key", depth + 1)
            value = _type(kind["valueType"], f"{path}.value", depth + 1)
            nullable = kind.get("valueContainsNull", True)
            return _map(key, value, nullable=nullable)
        case other:
            raise _unsupported(str(other), path)


def _map(key: pa.DataType, value: pa.DataType, *, nullable: bool) -> pa.DataType:
    field: Any = pa.field("value", value, nullable=nullable)
    return pa.map_(key, field)


def _primitive(kind: str, path: str) -> pa.DataType:
    if kind in _PRIMITIVES:
        return _PRIMITIVES[kind]
    match = _DECIMAL.fullmatch(kind)
    if match is None:
        raise _unsupported(kind, path)
    precision, scale = int(match[1] or 10), int(match[2] or 0)
    if not (1 <= precision <= _MAX_PRECISION and 0 <= scale <= precision):
        raise CorruptTableError(f"Column {path!r} has an impossible type.", found=kind)
    return pa.decimal128(precision, scale)


def _unsupported(kind: str, path: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"Column {path!r} has a type that is not supported: {kind!r}.",
        remedy="Read the table with an engine that knows the type, or drop the column there.",
    )


def schema_to_json(schema: pa.Schema) -> str:
    """The ``schemaString`` of a schema that ``normalize_schema`` gave."""
    fields = [_field_json(field) for field in schema]
    return msgspec.json.encode({"type": "struct", "fields": fields}).decode()


def _field_json(field: pa.Field[Any]) -> dict[str, Any]:
    encoded = (field.metadata or {}).get(FIELD_METADATA)
    return {
        "name": field.name,
        "type": _type_json(field.type),
        "nullable": field.nullable,
        "metadata": msgspec.json.decode(encoded) if encoded else {},
    }


def _type_json(kind: Any) -> Any:  # noqa: ANN401 -- a JSON edge
    if pa.types.is_struct(kind):
        return {"type": "struct", "fields": [_field_json(field) for field in kind.fields]}
    if pa.types.is_list(kind):
        element = kind.value_field
        return {
            "type": "array",
            "elementType": _type_json(element.type),
            "containsNull": element.nullable,
        }
    if pa.types.is_map(kind):
        return {
            "type": "map",
            "keyType": _type_json(kind.key_type),
            "valueType": _type_json(kind.item_type),
            "valueContainsNull": kind.item_field.nullable,
        }
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return _NAMES[kind]


def normalize_schema(schema: pa.Schema) -> pa.Schema:
    """The schema of a table made for ``schema``: every type its exact or lossless Delta twin.

    Raises:
        InvalidInputError: A type or a name that a Delta table can't have, or no columns.
    """
    if not len(schema):
        raise InvalidInputError(
            "A table needs at least one column.", remedy="Pass a schema with columns."
        )
    return pa.schema(_normal_fields(list(schema), ""))


def _normal_fields(fields: list[pa.Field[Any]], parent: str) -> list[pa.Field[Any]]:
    seen: dict[str, str] = {}
    for field in fields:
        twin = seen.setdefault(field.name.lower(), field.name)
        if twin is not field.name and len(seen) < len(fields):
            if [f.name.lower() for f in fields].count(field.name.lower()) > 1:
                raise InvalidInputError(
                    f"Column names must differ by more than case: {twin!r} and {field.name!r}.",
                    remedy="Rename one of them.",
                )
        if not field.name or _FORBIDDEN & set(field.name):
            raise InvalidInputError(
                f"Column {parent + field.name!r} has a name that data files can't have.",
                found='the empty name or one of " ,;{}()\\n\\t="',
                remedy="Rename the column.",
            )
    return [_normal_field(field, parent) for field in fields]


def _normal_field(field: pa.Field[Any], parent: str) -> pa.Field[Any]:
    kept = (field.metadata or {}).get(FIELD_METADATA)
    return pa.field(
        field.name,
        _normal_type(field.type, f"{parent}{field.name}"),
        nullable=field.nullable,
        metadata={FIELD_METADATA: kept} if kept else None,
    )


def _normal_type(kind: Any, path: str) -> Any:  # noqa: ANN401, PLR0911 -- any Arrow type
    if isinstance(kind, pa.BaseExtensionType):
        return _normal_type(kind.storage_type, path)
    if pa.types.is_dictionary(kind):
        return _normal_type(kind.value_type, path)
    if kind in _LOSSLESS:
        return _LOSSLESS[kind]
    if kind in _NAMES and not pa.types.is_null(kind):
        return kind
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_decimal(kind) and 0 <= kind.scale <= kind.precision <= _MAX_PRECISION:
        return pa.decimal128(kind.precision, kind.scale)
    if pa.types.is_struct(kind) and kind.num_fields:
        return pa.struct(_normal_fields(list(kind.fields), f"{path}."))
    if pa.types.is_map(kind):
        value = _normal_type(kind.item_type, f"{path}.value")
        key = _normal_type(kind.key_type, f"{path}.key")
        return _map(key, value, nullable=kind.item_field.nullable)
    if _is_listy(kind):
        element = _normal_type(kind.value_type, f"{path}.element")
        nullable = kind.value_field.nullable
        return pa.list_(pa.field("element", element, nullable=nullable))
    raise InvalidInputError(
        f"Column {path!r} has a type that a Delta table can't have.",
        found=str(kind),
        remedy="Cast it, for example uint64 to decimal128(20, 0), a time or a duration to int64, "
        "a column of nulls to its type.",
    )


_LISTS: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_list,
    pa.types.is_large_list,
    pa.types.is_fixed_size_list,
    pa.types.is_list_view,
    pa.types.is_large_list_view,
)


def _is_listy(kind: pa.DataType) -> bool:
    return any(test(kind) for test in _LISTS)


def schema_difference(expected: pa.Schema, given: pa.Schema) -> list[str]:
    """A sentence for each column that is missing, unexpected or of another type."""
    differences: list[str] = []
    for field in expected:
        index = given.get_field_index(field.name)
        if index < 0:
            rule = "" if field.nullable else ", NOT NULL"
            differences.append(f"column {field.name!r} ({field.type}{rule}) is missing")
        elif given.field(index).type != field.type:
            differences.append(
                f"column {field.name!r} is {given.field(index).type}, the table has {field.type}"
            )
    known = set(expected.names)
    differences += [
        f"column {field.name!r} ({field.type}) is not in the table"
        for field in given
        if field.name not in known
    ]
    return differences
