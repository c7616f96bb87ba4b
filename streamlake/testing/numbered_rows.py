"""Rows that are told apart by their number, for a table of any schema."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa

from streamlake.errors import InvalidInputError

_EPOCH = dt.date(1970, 1, 1)
_DAYS = 20_000
"""Dates repeat after so many days, which ends them in 2024."""


def numbered_rows(schema: pa.Schema, first: int, count: int) -> pa.Table:
    """Rows ``first`` to ``first + count - 1`` of a sequence that ``schema`` alone decides.

    No nulls, and each value comes from the row's number: 7 is 7, 7.0, "7", b"7", odd, the seventh
    day or second of 1970; a list, struct or map holds one such value. Types too narrow for the
    number start over.

    Raises:
        InvalidInputError: A type that no row can be made for.
    """
    numbers = range(first, first + count)
    columns = [pa.array([_value(f.type, n) for n in numbers], type=f.type) for f in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _value(kind: pa.DataType, n: int) -> Any:  # noqa: ANN401 -- what Arrow takes for the type
    if pa.types.is_struct(kind):
        return {kind.field(i).name: _value(kind.field(i).type, n) for i in range(kind.num_fields)}
    if isinstance(kind, (pa.ListType, pa.LargeListType)):
        return [_value(kind.value_type, n)]
    if isinstance(kind, pa.MapType):
        return [(_value(kind.key_type, n), _value(kind.item_type, n))]
    return _scalar(kind, n)


def _scalar(kind: pa.DataType, n: int) -> Any:  # noqa: ANN401, PLR0911 -- a value for each type
    types = pa.types
    if types.is_boolean(kind):
        return n % 2 == 1
    if types.is_integer(kind):
        return n % 2 ** (kind.bit_width - 1)
    if types.is_floating(kind):
        return float(n)
    if isinstance(kind, pa.Decimal128Type):
        return Decimal(n % 10**kind.precision).scaleb(-kind.scale)
    if types.is_string(kind) or types.is_large_string(kind):
        return str(n)
    if types.is_binary(kind) or types.is_large_binary(kind):
        return str(n).encode()
    if types.is_date(kind):
        return _EPOCH + dt.timedelta(days=n % _DAYS)
    if isinstance(kind, pa.TimestampType):
        moment = dt.datetime.combine(_EPOCH, dt.time()) + dt.timedelta(seconds=n)
        return moment if kind.tz is None else moment.replace(tzinfo=dt.UTC)
    raise InvalidInputError(
        "No row can be made for this type.",
        found=str(kind),
        remedy="Give the rows themselves.",
    )
