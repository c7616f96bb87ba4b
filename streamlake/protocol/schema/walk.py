"""Schemas taken apart and put together again, field by field."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pyarrow as pa

from streamlake.protocol.schema.codec import Path, map_type

Visit: TypeAlias = "Callable[[pa.Field[Any], Path], pa.Field[Any]]"
"""Gets a struct field or column, whose inside is visited already, and the names on the way to it
("element", "key" and "value" for what is in arrays and maps)."""


def visited(schema: pa.Schema, visit: Visit) -> pa.Schema:
    """The schema with ``visit`` applied to every column and struct field, inner ones first."""
    return pa.schema([_field(field, visit, ()) for field in schema])


def struct_fields(schema: pa.Schema) -> Iterator[tuple[Path, pa.Field[Any]]]:
    """Every column and struct field with the path to it, outer ones first."""
    for field in schema:
        yield from _fields(field, ())


def retyped(field: pa.Field[Any], kind: pa.DataType) -> pa.Field[Any]:
    """The field with another type and its own name, nullability and metadata."""
    return pa.field(field.name, kind, nullable=field.nullable, metadata=field.metadata)


def _field(field: pa.Field[Any], visit: Visit, path: Path) -> pa.Field[Any]:
    here = (*path, field.name)
    return visit(retyped(field, _type(field.type, visit, here)), here)


def _type(kind: pa.DataType, visit: Visit, path: Path) -> pa.DataType:
    if isinstance(kind, pa.StructType):
        return pa.struct([_field(field, visit, path) for field in kind])
    if isinstance(kind, pa.ListType):
        element = _type(kind.value_type, visit, (*path, "element"))
        return pa.list_(pa.field("element", element, nullable=kind.value_field.nullable))
    if isinstance(kind, pa.MapType):
        key = _type(kind.key_type, visit, (*path, "key"))
        value = _type(kind.item_type, visit, (*path, "value"))
        return map_type(key, value, nullable=kind.item_field.nullable)
    return kind


def _fields(field: pa.Field[Any], path: Path) -> Iterator[tuple[Path, pa.Field[Any]]]:
    here = (*path, field.name)
    yield here, field
    yield from _inside(field.type, here)


def _inside(kind: pa.DataType, path: Path) -> Iterator[tuple[Path, pa.Field[Any]]]:
    if isinstance(kind, pa.StructType):
        for field in kind:
            yield from _fields(field, path)
    elif isinstance(kind, pa.ListType):
        yield from _inside(kind.value_type, (*path, "element"))
    elif isinstance(kind, pa.MapType):
        yield from _inside(kind.key_type, (*path, "key"))
        yield from _inside(kind.item_type, (*path, "value"))
