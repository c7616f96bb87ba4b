"""Which Arrow types fit into which without loss, and the casts themselves.

Types of a table are those that ``protocol.schema`` makes; given ones may be any of Arrow's.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streamlake.data.bounds import Column

_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}
"""How many decimal digits an integer of so many bits may have."""
_EXACT_BITS = {32: 16, 64: 32}
"""How many bits of integer a float of so many bits holds exactly, in whole integer types."""


def fits(given: pa.DataType, expected: pa.DataType, *, stored: bool = False) -> bool:
    """Whether values of ``given`` can become ``expected`` with nothing lost.

    NOT NULL inside of the types is not looked at; that, and what a value of a wider unit or range
    loses, shows when the values are converted.

    Args:
        given: Any type of Arrow's.
        expected: A type that tables have.
        stored: Whether ``given`` is of a data file of the table. Then its integers may be wider
            (Parquet has none below 32 bits), its timestamps need not say that they are in UTC
            (INT96 does not), its strings need not say that they are UTF-8, and dates may have
            become timestamps (PROTOCOL.md, "Type Widening").
    """
    if isinstance(given, pa.BaseExtensionType):
        return fits(given.storage_type, expected, stored=stored)
    if isinstance(given, pa.DictionaryType | pa.RunEndEncodedType):
        return not pa.types.is_nested(given.value_type) and fits(given.value_type, expected)
    if pa.types.is_null(given) or given.equals(expected):
        return True
    if pa.types.is_nested(expected):
        return _nested_fits(given, expected)
    if stored and _stored_fits(given, expected):
        return True
    return _is_same_kind(given, expected) or _number_fits(given, expected)


def _nested_fits(given: pa.DataType, expected: pa.DataType) -> bool:
    if isinstance(expected, pa.StructType):
        return isinstance(given, pa.StructType) and _struct_fits(given, expected)
    if isinstance(expected, pa.MapType):
        return (
            isinstance(given, pa.MapType)
            and fits(given.key_type, expected.key_type)
            and fits(given.item_type, expected.item_type)
        )
    return (
        isinstance(expected, pa.ListType)
        and isinstance(given, pa.ListType | pa.LargeListType | pa.FixedSizeListType)
        and fits(given.value_type, expected.value_type)
    )


def _struct_fits(given: pa.StructType, expected: pa.StructType) -> bool:
    found = {field.name: field.type for field in given}
    known = {field.name for field in expected}
    if len(found) != given.num_fields or not set(found) <= known:
        return False
    return all(
        fits(found[field.name], field.type) if field.name in found else field.nullable
        for field in expected
    )


def _stored_fits(given: pa.DataType, expected: pa.DataType) -> bool:
    is_ = pa.types
    if is_.is_timestamp(expected):
        return is_.is_timestamp(given) or (expected.tz is None and is_.is_date32(given))
    if is_.is_string(expected):
        return is_.is_binary(given) or is_.is_large_binary(given)
    if is_.is_binary(expected):
        return is_.is_string(given) or is_.is_large_string(given)
    return is_.is_signed_integer(expected) and is_.is_signed_integer(given)


def _is_same_kind(given: pa.DataType, expected: pa.DataType) -> bool:
    is_ = pa.types
    if is_.is_string(expected):
        return is_.is_large_string(given) or is_.is_string_view(given)
    if is_.is_binary(expected):
        return (
            is_.is_large_binary(given)
            or is_.is_binary_view(given)
            or is_.is_fixed_size_binary(given)
        )
    if isinstance(given, pa.TimestampType) and isinstance(expected, pa.TimestampType):
        return (given.tz is None) == (expected.tz is None)
    return is_.is_date64(given) and is_.is_date32(expected)


def _number_fits(given: pa.DataType, expected: pa.DataType) -> bool:
    if pa.types.is_integer(given):
        bits, signed = given.bit_width, pa.types.is_signed_integer(given)
        if pa.types.is_signed_integer(expected):
            return bits < expected.bit_width or (signed and bits == expected.bit_width)
        if pa.types.is_floating(expected):
            return bits <= _EXACT_BITS.get(expected.bit_width, 0)
        if pa.types.is_decimal(expected):
            digits = _DIGITS[bits] + (bits == 64 and not signed)  # noqa: PLR2004 - 2**64 has 20
            return bool(digits <= expected.precision - expected.scale)
        return False
    if pa.types.is_floating(given) and pa.types.is_floating(expected):
        return given.bit_width <= expected.bit_width
    return (
        pa.types.is_decimal(given)
        and pa.types.is_decimal(expected)
        and given.scale <= expected.scale
        and given.precision - given.scale <= expected.precision - expected.scale
    )


def cast_column(column: Column, expected: pa.DataType) -> Column:
    """The column in a type that its own ``fits``, with everything inside of it nullable.

    Raises:
        pyarrow.ArrowException: A value can't be had in the type without loss.
    """
    if column.type.equals(expected):
        return column
    if isinstance(column.type, pa.RunEndEncodedType):
        column = pc.call_function("run_end_decode", [column])
    return column.cast(all_nullable(expected))


def all_nullable(kind: pa.DataType) -> pa.DataType:
    """The type with NOT NULL taken from everything inside of it, but from the keys of maps."""
    if isinstance(kind, pa.StructType):
        return pa.struct(
            [pa.field(f.name, all_nullable(f.type), metadata=f.metadata) for f in kind]
        )
    if isinstance(kind, pa.ListType):
        return pa.list_(pa.field(kind.value_field.name, all_nullable(kind.value_type)))
    if isinstance(kind, pa.MapType):
        return pa.map_(all_nullable(kind.key_type), all_nullable(kind.item_type))
    return kind


def has_required_inside(kind: pa.DataType) -> bool:
    """Whether anything inside of the type is NOT NULL, but for the keys of maps."""
    return any(not field.nullable or has_required_inside(field.type) for field in _inside(kind))


def _inside(kind: pa.DataType) -> list[pa.Field[Any]]:
    if isinstance(kind, pa.StructType):
        return list(kind)
    if isinstance(kind, pa.ListType):
        return [kind.value_field]
    if isinstance(kind, pa.MapType):
        return [kind.key_field.with_nullable(True), kind.item_field]  # noqa: FBT003
    return []
