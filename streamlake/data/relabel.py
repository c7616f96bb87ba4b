"""Columns under other names: the same memory seen through another type."""

from __future__ import annotations

from typing import Any, cast

import pyarrow as pa

from streamlake.data.bounds import Column


def relabelled(column: Column, kind: pa.DataType) -> Column:
    """The column as one of ``kind``, without a copy or a look at a value.

    Args:
        column: Of a type that differs from ``kind`` in no more than names, nullability and metadata
            of the fields inside; NOT NULL there is taken on trust.
        kind: What the column is to be.

    Raises:
        ValueError: The types differ in more than that.
    """
    if not same_layout(column.type, kind):
        raise ValueError(f"{column.type} is laid out otherwise than {kind}")
    # The stubs know neither arrays that come by the interface nor chunks of any type.
    chunks = [cast("Any", pa.array)(_Relabelled(chunk, kind)) for chunk in column.chunks]
    chunked: Column = cast("Any", pa.chunked_array)(chunks, kind)
    return chunked


def same_layout(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether the types differ in names, nullability and metadata of fields inside at most."""
    if not pa.types.is_nested(one):
        return one.equals(other)
    if one.id != other.id or one.num_fields != other.num_fields:
        return False
    if isinstance(one, pa.FixedSizeListType) and one != other:
        return False
    return all(same_layout(one.field(i).type, other.field(i).type) for i in range(one.num_fields))


class _Relabelled:
    """An array that says to be of another type (the Arrow PyCapsule interface)."""

    def __init__(self, array: pa.Array[Any], kind: pa.DataType) -> None:
        self._array = array
        self._kind = kind

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """The type that it says to be, and the array's own memory."""
        return self._kind.__arrow_c_schema__(), self._array.__arrow_c_array__()[1]
