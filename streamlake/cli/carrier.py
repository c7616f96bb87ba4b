"""The types that JSON and CSV can carry, and the way from them to the table's.

Arrow's JSON reader takes a time without a zone for UTC and drops a zone that is not asked for; so
times in JSON are read as text and converted here, where both are errors. Bytes are text, or
``base64:...``.
"""

from __future__ import annotations

import base64
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streamlake.cli.json_text import BASE64_PREFIX, Values
from streamlake.errors import InvalidInputError


def json_carrier(schema: pa.Schema) -> pa.Schema:
    """``schema`` with each type in the one that NDJSON is read as.

    Raises:
        InvalidInputError: A column is or holds a map, which can't be read from NDJSON.
    """
    for field in schema:
        if _holds_map(field.type):
            raise _not_carried(field, "NDJSON")
    return pa.schema([field.with_type(_json_type(field.type)) for field in schema])


def csv_carrier(schema: pa.Schema) -> pa.Schema:
    """``schema`` with each type in the one that CSV is read as.

    Raises:
        InvalidInputError: A column is nested.
    """
    for field in schema:
        if pa.types.is_nested(field.type):
            raise _not_carried(field, "CSV")
    text = pa.string()
    return pa.schema([f.with_type(text) if pa.types.is_binary(f.type) else f for f in schema])


def from_carrier(values: Values, kind: pa.DataType) -> Values:
    """Values as they were read, in the table's type.

    Raises:
        pyarrow.ArrowInvalid: A text that is no such value.
    """
    if values.type == kind:
        return values
    nested: Any = values  # of a type that only the data know
    if pa.types.is_struct(kind):
        # flatten, not field: below a null struct the text is "", which is no time
        children = [
            from_carrier(child, field.type)
            for child, field in zip(nested.flatten(), kind, strict=True)
        ]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=values.is_null())
    if pa.types.is_list(kind):
        elements = from_carrier(nested.values, kind.value_type)
        mask = values.is_null() if values.null_count else None
        return pa.ListArray.from_arrays(nested.offsets, elements, type=kind, mask=mask)
    if pa.types.is_binary(kind):
        return _bytes_of(values)
    return values.cast(kind)


def _not_carried(field: pa.Field[Any], format_name: str) -> InvalidInputError:
    return InvalidInputError(
        f"{format_name} can't carry column {field.name!r}.",
        found=str(field.type),
        remedy="Append Parquet instead.",
    )


def _holds_map(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_holds_map(field.type) for field in kind)
    return pa.types.is_map(kind) or (pa.types.is_list(kind) and _holds_map(kind.value_type))


def _json_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_binary(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_json_type(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_json_type(field.type)) for field in kind])
    return kind


def _bytes_of(text: Values) -> Values:
    plain = text.cast(pa.binary())
    if not pc.any(pc.starts_with(text, BASE64_PREFIX)).as_py():
        return plain
    return pa.array([_decoded(value) for value in plain.to_pylist()], pa.binary())


def _decoded(value: bytes | None) -> bytes | None:
    prefix = BASE64_PREFIX.encode()
    if value is None or not value.startswith(prefix):
        return value
    try:
        return base64.b64decode(value.removeprefix(prefix), validate=True)
    except ValueError as error:
        raise pa.ArrowInvalid(f"no base64: {error}") from error
