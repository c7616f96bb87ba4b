"""NOT NULL: finding the nulls that break it, and the arrays that Parquet can store it with."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pyarrow as pa

from streamlake.data.bounds import Column
from streamlake.data.cast import has_required_inside
from streamlake.errors import ConstraintViolationError


@lru_cache(maxsize=256)
def required_columns(schema: pa.Schema) -> tuple[tuple[int, bool], ...]:
    """The columns that are NOT NULL or hold something that is.

    Each as its index and whether anything inside of it is NOT NULL.
    """
    inside = [has_required_inside(field.type) for field in schema]
    return tuple(
        (i, inside[i]) for i, field in enumerate(schema) if inside[i] or not field.nullable
    )


def check_not_null(columns: list[Column], schema: pa.Schema) -> None:
    """Refuse nulls where ``schema`` has NOT NULL.

    Args:
        columns: One for each field, with its type; NOT NULL inside of the type may be absent.
        schema: What they must keep.

    Raises:
        ConstraintViolationError: Naming each column or nested field and how many nulls it has.
    """
    broken: dict[str, int] = {}
    for i, inside in required_columns(schema):
        field = schema.field(i)
        if inside:
            for chunk in columns[i].chunks:
                _count_nulls(chunk, field, field.name, broken)
        elif columns[i].null_count:
            broken[field.name] = columns[i].null_count
    if broken:
        raise ConstraintViolationError(
            "The data has nulls in columns that are NOT NULL.",
            found=", ".join(f"{name}: {count} null" for name, count in broken.items()),
            remedy="Fill or drop those rows; nothing of this data was written.",
        )


def _count_nulls(
    array: pa.Array[Any], field: pa.Field[Any], path: str, broken: dict[str, int]
) -> None:
    nulls = array.null_count
    if nulls and not field.nullable:
        broken[path] = broken.get(path, 0) + nulls
    if not len(array) or not has_required_inside(field.type):
        return
    if nulls:
        array = array.drop_null()
    kind = field.type
    if isinstance(array, pa.StructArray):
        for i in range(kind.num_fields):
            child = kind.field(i)
            _count_nulls(array.field(i), child, f"{path}.{child.name}", broken)
    elif isinstance(array, pa.MapArray):
        start, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
        _count_nulls(array.keys[start:end], kind.key_field, f"{path}.key", broken)
        _count_nulls(array.items[start:end], kind.item_field, f"{path}.value", broken)
    elif isinstance(array, pa.ListArray):
        _count_nulls(array.flatten(), kind.value_field, f"{path}.element", broken)


def tighten(column: Column, field: pa.Field[Any]) -> Column:
    """The column with the exact type of ``field``, NOT NULL inside of it included.

    The nulls that a required field has where the struct around it is null are dropped, for Parquet
    takes them for violations. The column has passed ``check_not_null``.
    """
    return pa.chunked_array([_tighten(chunk, field) for chunk in column.chunks], field.type)


def _tighten(array: pa.Array[Any], field: pa.Field[Any]) -> pa.Array[Any]:
    kind, nullable = field.type, field.nullable
    if isinstance(array, pa.ExtensionArray):
        storage = _tighten(array.storage, field.with_type(array.type.storage_type))
        return pa.ExtensionArray.from_storage(array.type, storage)
    if isinstance(array, pa.StructArray):
        children = [_tighten(array.field(i), kind.field(i)) for i in range(kind.num_fields)]
        mask = array.is_null() if nullable and array.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)
    if isinstance(array, pa.MapArray):
        children = [_tighten(array.keys, kind.key_field), _tighten(array.items, kind.item_field)]
        entries = pa.StructArray.from_arrays(children, fields=[kind.key_field, kind.item_field])
        return _with_validity(array, kind, children=[entries], nullable=nullable)
    if isinstance(array, pa.ListArray):
        values = _tighten(array.values, kind.value_field)
        return _with_validity(array, kind, children=[values], nullable=nullable)
    if nullable or not array.null_count:
        return array
    return _with_validity(array, kind, children=None, nullable=False)


def _with_validity(
    array: pa.Array[Any],
    kind: pa.DataType,
    *,
    children: list[pa.Array[Any]] | None,
    nullable: bool,
) -> pa.Array[Any]:
    own = array.buffers()[: 2 if children is not None else None]
    validity = own[0] if nullable else None
    return pa.Array.from_buffers(
        kind, len(array), [validity, *own[1:]], offset=array.offset, children=children
    )
