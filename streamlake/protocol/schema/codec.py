"""Delta's schema JSON to Arrow and back, without loss.

===============  ==================================================================
Delta            Arrow
===============  ==================================================================
string           ``string``
long             ``int64``; integer ``int32``, short ``int16``, byte ``int8``
float, double    ``float32``, ``float64``
decimal(p,s)     ``decimal128(p, s)``
boolean, binary  ``bool``, ``binary``
date             ``date32``
timestamp        ``timestamp("us", "UTC")``
timestamp_ntz    ``timestamp("us")``
void             ``null``
variant          ``VariantType``: a struct of two binaries, as an extension type
struct           ``struct``
array            ``list``, its child named "element"
map              ``map``, its children named "key" and "value"
===============  ==================================================================

``nullable``, ``containsNull`` and ``valueContainsNull`` are the nullability of Arrow's fields. The
``metadata`` of a struct field is kept in the Arrow field's, see ``field_metadata``.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa

from streamlake.errors import (
    CorruptTableError,
    InvalidInputError,
    LimitExceededError,
    TableError,
    UnsupportedFeatureError,
)
from streamlake.protocol.json_bounds import Json, check_keys
from streamlake.protocol.schema.variant import VariantType

MAX_SCHEMA_DEPTH = 32
"""How many structs, arrays and maps may lie inside of one another in a column."""

MAX_SCHEMA_CHARS = 32 * 2**20
"""The longest ``schemaString`` that is parsed."""

_METADATA_PREFIX = b"delta."

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
    "variant": VariantType(),
}
_NAMES: dict[pa.DataType, str] = {kind: name for name, kind in _PRIMITIVES.items()}
_ALIASES = {"null": "void", "int": "integer", "decimal": "decimal(10,0)"}
"""Spellings that Spark reads as well."""
_DECIMAL = re.compile(r"decimal\(\s*([0-9]{1,2})\s*,\s*([0-9]{1,2})\s*\)")
_MAX_DECIMAL_DIGITS = 38

_encoder = msgspec.json.Encoder()


class _Field(msgspec.Struct, frozen=True):
    name: str
    type: Json
    nullable: bool = True
    metadata: dict[str, Json] | None = None


class _Struct(msgspec.Struct, frozen=True):
    fields: list[_Field]


class _Array(msgspec.Struct, frozen=True, rename="camel"):
    element_type: Json
    contains_null: bool = True


class _Map(msgspec.Struct, frozen=True, rename="camel"):
    key_type: Json
    value_type: Json
    value_contains_null: bool = True


def schema_to_json(schema: pa.Schema) -> str:
    """``metaData.schemaString`` of an Arrow schema that ``normalize_schema`` gave.

    Raises:
        InvalidInputError: A type has no exact twin in Delta, or a field's metadata under
            ``b"delta.<key>"`` is no JSON.
        LimitExceededError: Types nest deeper than MAX_SCHEMA_DEPTH.
    """
    return _encoder.encode(_struct_to_json(list(schema), (), 0)).decode()


def schema_from_json(schema_json: str, *, where: str = "") -> pa.Schema:
    """The Arrow schema that ``metaData.schemaString`` says.

    Args:
        schema_json: Of the metadata. Each text is parsed once and then remembered.
        where: The table, for errors.

    Raises:
        CorruptTableError: It is no schema, or two columns have one name.
        UnsupportedFeatureError: A column is of a type that is not known here.
        LimitExceededError: Types nest deeper than MAX_SCHEMA_DEPTH, or the text is longer than
            MAX_SCHEMA_CHARS.
    """
    try:
        _check_length(schema_json)
        return _parse(schema_json)
    except TableError as error:
        error.where = where
        raise


def field_metadata(field: pa.Field[Any]) -> dict[str, Json]:
    """Delta's metadata of a struct field or column (PROTOCOL.md, "Column Metadata").

    In an Arrow schema the JSON of each value stands under the key ``b"delta.<key>"``. Other keys of
    the Arrow field are no metadata of the table.

    Raises:
        InvalidInputError: One of them is no JSON.
    """
    found: dict[str, Json] = {}
    for key, value in (field.metadata or {}).items():
        if not key.startswith(_METADATA_PREFIX):
            continue
        try:
            name = key[len(_METADATA_PREFIX) :].decode()
            found[name] = msgspec.json.decode(value)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidInputError(
                f"The metadata of column {field.name!r} can't be stored.",
                found=f"{key!r}: {value!r}",
                remedy='Give the value as JSON under "delta." and the key, as in '
                '{"delta.delta.generationExpression": \'"n + 1"\'}, or leave the key out.',
            ) from error
    return found


def with_field_metadata(field: pa.Field[Any], metadata: dict[str, Json]) -> pa.Field[Any]:
    """``field`` with exactly ``metadata`` as Delta's; the inverse of ``field_metadata``."""
    encoded: dict[bytes | str, bytes | str] = {
        _METADATA_PREFIX + key.encode(): _encoder.encode(value) for key, value in metadata.items()
    }
    return field.with_metadata(encoded) if encoded else field.remove_metadata()


# -------------------------------------------------------------------------------------------------
# Arrow to JSON


Path: TypeAlias = tuple[str, ...]


def _struct_to_json(fields: list[pa.Field[Any]], path: Path, depth: int) -> Json:
    return {"type": "struct", "fields": [_field_to_json(field, path, depth) for field in fields]}


def _field_to_json(field: pa.Field[Any], path: Path, depth: int) -> Json:
    return {
        "name": field.name,
        "type": _type_to_json(field.type, (*path, field.name), depth),
        "nullable": field.nullable,
        "metadata": field_metadata(field),
    }


def type_to_json(kind: pa.DataType) -> Json:
    """A type as a schema's JSON has it: the name of a primitive one, an object of a nested one."""
    return _type_to_json(kind, (), 0)


def _type_to_json(kind: pa.DataType, path: Path, depth: int) -> Json:
    name = _NAMES.get(kind)
    if name is not None:
        return name
    if pa.types.is_decimal128(kind) and 0 <= kind.scale <= kind.precision:
        return f"decimal({kind.precision},{kind.scale})"
    depth = _deeper(path, depth)
    if isinstance(kind, pa.StructType):
        return _struct_to_json(list(kind), path, depth)
    if isinstance(kind, pa.ListType):
        return {
            "type": "array",
            "elementType": _type_to_json(kind.value_type, (*path, "element"), depth),
            "containsNull": kind.value_field.nullable,
        }
    if isinstance(kind, pa.MapType):
        return {
            "type": "map",
            "keyType": _type_to_json(kind.key_type, (*path, "key"), depth),
            "valueType": _type_to_json(kind.item_type, (*path, "value"), depth),
            "valueContainsNull": kind.item_field.nullable,
        }
    raise InvalidInputError(
        f"Column {dotted(path)!r} has a type without an exact twin in a Delta table.",
        found=str(kind),
        remedy="Bring the schema to what a table can have with normalize_schema.",
    )


# -------------------------------------------------------------------------------------------------
# JSON to Arrow


@lru_cache(maxsize=256)
def _parse(schema_json: str) -> pa.Schema:
    try:
        data = schema_json.encode()
        decoded = msgspec.json.decode(data)
        check_keys(data, decoded)
        if not isinstance(decoded, dict) or decoded.get("type") != "struct":
            raise msgspec.ValidationError("A schema is a JSON object whose type is struct")
        return pa.schema(_fields_from_json(decoded, (), 0))
    except RecursionError:
        raise _too_deep(()) from None
    except (msgspec.DecodeError, ValueError) as error:
        raise CorruptTableError(
            "The table's schema can't be decoded.",
            found=f"{error}: {schema_json[:80]!r}" if schema_json else "no schema at all",
            remedy="The metaData action was garbled or written by a faulty writer; restore it.",
        ) from error


def _fields_from_json(value: Json, path: Path, depth: int) -> list[pa.Field[Any]]:
    fields = msgspec.convert(value, _Struct).fields
    _check_unique([field.name for field in fields], path)
    return [_field_from_json(field, path, depth) for field in fields]


def _field_from_json(value: _Field, path: Path, depth: int) -> pa.Field[Any]:
    kind = _type_from_json(value.type, (*path, value.name), depth)
    field = pa.field(value.name, kind, nullable=value.nullable)
    return with_field_metadata(field, value.metadata) if value.metadata else field


def _type_from_json(value: Json, path: Path, depth: int) -> pa.DataType:
    if isinstance(value, str):
        return _primitive(value, path)
    if not isinstance(value, dict):
        raise msgspec.ValidationError(f"Column {dotted(path)!r} has the type {value!r}")
    depth = _deeper(path, depth)
    match value.get("type"):
        case "struct":
            return pa.struct(_fields_from_json(value, path, depth))
        case "array":
            array = msgspec.convert(value, _Array)
            element = _type_from_json(array.element_type, (*path, "element"), depth)
            return pa.list_(pa.field("element", element, nullable=array.contains_null))
        case "map":
            entries = msgspec.convert(value, _Map)
            key = _type_from_json(entries.key_type, (*path, "key"), depth)
            item = _type_from_json(entries.value_type, (*path, "value"), depth)
            return map_type(key, item, nullable=entries.value_contains_null)
        case "variant":
            return VariantType()
        case str(name):
            raise _unknown_type(name, path)
        case other:
            raise msgspec.ValidationError(f"Column {dotted(path)!r} has the type {other!r}")


def _primitive(name: str, path: Path) -> pa.DataType:
    name = _ALIASES.get(name, name)
    kind = _PRIMITIVES.get(name)
    if kind is not None:
        return kind
    match = _DECIMAL.fullmatch(name)
    if match is None:
        raise _unknown_type(name, path)
    precision, scale = int(match[1]), int(match[2])
    if not (1 <= precision <= _MAX_DECIMAL_DIGITS and scale <= precision):
        raise msgspec.ValidationError(f"Column {dotted(path)!r} has the type {name}")
    return pa.decimal128(precision, scale)


def map_type(key: pa.DataType, value: pa.DataType, *, nullable: bool) -> pa.DataType:
    """Arrow's map of values that may be null or not; keys never are."""
    item: Any = pa.field("value", value, nullable=nullable)  # the stubs know only types here
    return pa.map_(key, item)


def _check_unique(names: list[str], path: Path) -> None:
    twice = name_clash(names)
    if twice is not None:
        raise msgspec.ValidationError(
            f"Columns {dotted((*path, twice[0]))!r} and {dotted((*path, twice[1]))!r} "
            "differ by case at most"
        )


def name_clash(names: list[str]) -> tuple[str, str] | None:
    """The first two names that are one to Delta, whatever their case; or None."""
    seen: dict[str, str] = {}
    for name in names:
        folded = name.lower()
        if folded in seen:
            return seen[folded], name
        seen[folded] = name
    return None


def dotted(path: Path) -> str:
    """A column path for people: names joined by dots, in backticks where they hold one."""
    return ".".join(f"`{name}`" if "." in name else name for name in path)


def _deeper(path: Path, depth: int) -> int:
    if depth >= MAX_SCHEMA_DEPTH:
        raise _too_deep(path)
    return depth + 1


def _check_length(schema_json: str) -> None:
    if len(schema_json) > MAX_SCHEMA_CHARS:
        raise LimitExceededError(
            "The table's schema is longer than MAX_SCHEMA_CHARS.",
            found=f"{len(schema_json)} characters; the limit is {MAX_SCHEMA_CHARS}",
            remedy="A faulty writer made the metaData action; have it repaired before going on.",
        )


def _too_deep(path: Path) -> LimitExceededError:
    inside = f"Column {path[0]!r}" if path else "The table's schema"
    return LimitExceededError(
        f"{inside} nests deeper than MAX_SCHEMA_DEPTH.",
        found=f"more than {MAX_SCHEMA_DEPTH} structs, arrays and maps inside of one another",
        remedy="Flatten the column, or store its deep part as a JSON string.",
    )


def _unknown_type(name: str, path: Path) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"Column {dotted(path)!r} is of the type {name!r}, which is not supported.",
        found=f"supported are {', '.join(_PRIMITIVES)}, decimal(p,s), struct, array and map",
        remedy="Read the table with an engine that knows the type, or drop the column with it.",
    )
