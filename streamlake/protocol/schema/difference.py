"""How a schema that was given differs from the one expected, in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from streamlake.protocol.schema.codec import Path, dotted


def schema_difference(expected: pa.Schema, given: pa.Schema) -> list[str]:
    """Each difference that keeps data of ``given`` from being data of ``expected``, as a sentence.

    Columns and struct fields are matched by name; their order and metadata don't count. What counts
    is a column that is missing or unknown, another type, and nulls allowed where ``expected`` has
    NOT NULL (the other way round nothing can go wrong). Types are told as Arrow names them.

    Returns:
        Nothing where ``given`` fits.
    """
    return list(_fields(list(expected), list(given), ()))


def _fields(expected: list[pa.Field[Any]], given: list[pa.Field[Any]], path: Path) -> Iterator[str]:
    found = {field.name: field for field in given}
    known = {field.name for field in expected}
    extra = {name.lower(): name for name in found if name not in known}
    for field in expected:
        match = found.get(field.name)
        if match is not None:
            yield from _field(field, match, (*path, field.name))
            continue
        where = dotted((*path, field.name))
        cased = extra.pop(field.name.lower(), None)
        if cased is None:
            yield f"column {where!r} ({_told(field)}) is missing"
        else:
            yield f"column {where!r} is named {cased!r} in the data: names must agree in case too"
    for name in extra.values():
        yield f"column {dotted((*path, name))!r} ({found[name].type}) is not in the table"


def _field(expected: pa.Field[Any], given: pa.Field[Any], path: Path) -> Iterator[str]:
    if given.nullable and not expected.nullable:
        yield f"column {dotted(path)!r} is NOT NULL in the table and may be null in the data"
    yield from _types(expected.type, given.type, path)


def _types(expected: pa.DataType, given: pa.DataType, path: Path) -> Iterator[str]:
    if isinstance(expected, pa.StructType) and isinstance(given, pa.StructType):
        yield from _fields(list(expected), list(given), path)
    elif isinstance(expected, pa.ListType) and isinstance(given, pa.ListType):
        yield from _field(expected.value_field, given.value_field, (*path, "element"))
    elif isinstance(expected, pa.MapType) and isinstance(given, pa.MapType):
        yield from _types(expected.key_type, given.key_type, (*path, "key"))
        yield from _field(expected.item_field, given.item_field, (*path, "value"))
    elif not expected.equals(given):
        yield f"column {dotted(path)!r} is {expected} in the table and {given} in the data"


def _told(field: pa.Field[Any]) -> str:
    return f"{field.type}" if field.nullable else f"{field.type}, NOT NULL"
