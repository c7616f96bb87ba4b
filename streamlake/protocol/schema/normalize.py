"""A user's Arrow schema brought to the one that a Delta table can have."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from streamlake.errors import InvalidInputError, LimitExceededError
from streamlake.protocol.schema.codec import (
    MAX_SCHEMA_DEPTH,
    Path,
    dotted,
    field_metadata,
    map_type,
    name_clash,
    with_field_metadata,
)
from streamlake.protocol.schema.walk import struct_fields

RESERVED_CHARACTERS = " ,;{}()\n\t="
"""What column names may not hold unless columns are mapped; Spark refuses the same."""
_MAX_DECIMAL_DIGITS = 38
_GIVE_ONE = 'Give a pyarrow.Schema, as in pyarrow.schema([("id", pyarrow.int64())]).'

_EXACT: dict[pa.DataType, pa.DataType] = {
    kind: kind
    for kind in (
        pa.string(),
        pa.int64(),
        pa.int32(),
        pa.int16(),
        pa.int8(),
        pa.float32(),
        pa.float64(),
        pa.bool_(),
        pa.binary(),
        pa.date32(),
    )
}
_WIDENED: dict[pa.DataType, pa.DataType] = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date64(): pa.date32(),
}
_SIMPLE = _EXACT | _WIDENED
_DECIMALS = (pa.Decimal32Type, pa.Decimal64Type, pa.Decimal128Type, pa.Decimal256Type)


def normalize_schema(schema: pa.Schema, *, any_name: bool = False) -> pa.Schema:
    """The schema that a table made from ``schema`` has.

    Types without an exact twin in Delta become the narrowest that holds all of their values:
    unsigned integers the next larger signed one (uint64 ``decimal(20, 0)``), float16 float32, large
    and view strings and binaries the plain ones, decimals of other widths decimal128, date64
    date32, timestamps of other units or zones microseconds (in UTC where there is a zone),
    dictionaries and run-ends their values, lists of fixed size or large ones plain lists. Digits
    below a microsecond are refused when values are written.

    Of the fields' metadata that of Delta is kept (see ``field_metadata``); that of the schema goes.
    Normalising twice changes nothing more.

    Args:
        schema: What the user wants to store.
        any_name: Whether names may hold RESERVED_CHARACTERS, as they may where columns are mapped.

    Raises:
        InvalidInputError: No Arrow schema, no columns, a name that a table can't have or that
            differs from another only by case, or a type that holds what no type of Delta does.
        LimitExceededError: Types nest deeper than MAX_SCHEMA_DEPTH.
    """
    if not isinstance(schema, pa.Schema):
        raise InvalidInputError(
            "The schema must be a schema of Arrow's.", found=repr(schema)[:200], remedy=_GIVE_ONE
        )
    if not len(schema):
        raise InvalidInputError(
            "A table needs at least one column.",
            found="a schema without fields",
            remedy="Give the schema of the data that is to be stored.",
        )
    fields = _fields(list(schema), (), 0)
    if not any_name:
        for path, _ in struct_fields(pa.schema(fields)):
            _check_characters(path)
    if all(pa.types.is_null(field.type) for field in fields):
        raise InvalidInputError(
            "Every column is of the type null, so data files would have none.",
            found=f"columns {schema.names}",
            remedy="Give at least one column a type with values.",
        )
    return pa.schema(fields)


def _fields(fields: list[pa.Field[Any]], path: Path, depth: int) -> list[pa.Field[Any]]:
    for field in fields:
        _check_name(field.name, path)
    clash = name_clash([field.name for field in fields])
    if clash is not None:
        raise InvalidInputError(
            f"Two columns have one name, {dotted((*path, clash[0]))!r}.",
            found=f"{clash[0]!r} and {clash[1]!r}; names that differ only by case are one name",
            remedy="Rename one of them.",
        )
    return [_field(field, path, depth) for field in fields]


def _field(field: pa.Field[Any], path: Path, depth: int) -> pa.Field[Any]:
    kind = _type(field.type, (*path, field.name), depth)
    normal = pa.field(field.name, kind, nullable=field.nullable)
    return with_field_metadata(normal, field_metadata(field))


def _check_name(name: str, path: Path) -> None:
    if not name:
        raise InvalidInputError(
            "A column has no name.",
            where=f"column {dotted(path)!r}" if path else "the schema",
            remedy="Name every column.",
        )


def _check_characters(path: Path) -> None:
    reserved = sorted({character for character in path[-1] if character in RESERVED_CHARACTERS})
    if reserved:
        raise InvalidInputError(
            f"Column {dotted(path)!r} has a character that column names may not hold.",
            found=", ".join(repr(character) for character in reserved),
            remedy=f"Rename it without any of {RESERVED_CHARACTERS!r}, or map columns: set the "
            'table property delta.columnMapping.mode to "name".',
        )


def _type(kind: pa.DataType, path: Path, depth: int) -> pa.DataType:
    normal = _SIMPLE.get(kind) or _flat(kind, path)
    if normal is not None:
        return normal
    if isinstance(kind, pa.DictionaryType | pa.RunEndEncodedType):
        if pa.types.is_nested(kind.value_type):
            raise _no_twin(kind, path)
        return _type(kind.value_type, path, depth)
    if not pa.types.is_nested(kind):
        raise _no_twin(kind, path)
    return _nested(kind, path, depth)


def _flat(kind: pa.DataType, path: Path) -> pa.DataType | None:
    """The twin of a parametrised type that holds no other; None for other types."""
    if isinstance(kind, pa.TimestampType):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    if isinstance(kind, _DECIMALS):
        return _decimal(kind.precision, kind.scale, kind, path)
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    return kind if pa.types.is_null(kind) and len(path) == 1 else None


def _nested(kind: pa.DataType, path: Path, depth: int) -> pa.DataType:
    if depth >= MAX_SCHEMA_DEPTH:
        raise LimitExceededError(
            f"Column {path[0]!r} nests deeper than MAX_SCHEMA_DEPTH.",
            found=f"more than {MAX_SCHEMA_DEPTH} types inside of one another",
            remedy="Flatten the column, or store its deep part as a JSON string.",
        )
    depth += 1
    if isinstance(kind, pa.StructType) and kind.num_fields:
        return pa.struct(_fields(list(kind), path, depth))
    if isinstance(kind, pa.ListType | pa.LargeListType | pa.FixedSizeListType):
        element = _type(kind.value_type, (*path, "element"), depth)
        return pa.list_(pa.field("element", element, nullable=kind.value_field.nullable))
    if isinstance(kind, pa.MapType):
        item = _type(kind.item_type, (*path, "value"), depth)
        key = _type(kind.key_type, (*path, "key"), depth)
        return map_type(key, item, nullable=kind.item_field.nullable)
    raise _no_twin(kind, path)


def _decimal(precision: int, scale: int, kind: pa.DataType, path: Path) -> pa.DataType:
    """The decimal of a scale that Delta has, from 0 to the precision."""
    precision = max(precision - min(scale, 0), scale)
    if precision > _MAX_DECIMAL_DIGITS:
        raise _no_twin(kind, path)
    return pa.decimal128(precision, max(scale, 0))


def _no_twin(kind: pa.DataType, path: Path) -> InvalidInputError:
    if pa.types.is_null(kind):
        remedy = "Give it a type; only whole columns may be of the type null."
    elif pa.types.is_struct(kind):
        remedy = "Give the struct at least one field; Parquet can't store one without."
    elif pa.types.is_decimal(kind):
        remedy = f"Cast it to a decimal of at most {_MAX_DECIMAL_DIGITS} digits."
    elif isinstance(kind, pa.BaseExtensionType):
        remedy = f"Cast it to its storage type, {kind.storage_type}."
    elif pa.types.is_temporal(kind):
        remedy = "Cast it to int64, or to a timestamp."
    else:
        remedy = "Cast it to a type that a table has, or leave the column out."
    return InvalidInputError(
        f"Column {dotted(path)!r} has a type that a Delta table can't store without loss.",
        found=str(kind),
        remedy=remedy,
    )
