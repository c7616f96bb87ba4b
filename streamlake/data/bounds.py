"""The smallest and the largest value of a column, and how each type's are written in the log.

A reader skips a file by its bounds, so a bound may be loose but never wrong: where one can't be
written exactly it is widened (long strings, timestamps) or left out (NaN, infinities, years beyond
9999). Types that the log knows no bounds of: boolean, binary, arrays, maps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

Column: TypeAlias = "pa.ChunkedArray[Any]"

Bound: TypeAlias = int | float | str | Decimal
"""One end of a column's values.

Dates are in days and timestamps in microseconds since the Unix epoch; the rest is as Python has it.
"""

STRING_PREFIX = 32
"""How many characters of a string are kept in its bound."""
STRING_UPPER_LIMIT = 2 * STRING_PREFIX
"""How many characters an upper bound of strings may need before it is left out."""

_ASCII_TOP = "\x7f"
_TOP = "\U0010ffff"
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - only formatted; the Z is added where there is one
_EPOCH_DAY = date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class BoundsCodec:
    """How the bounds of a type are found and written."""

    find: Callable[[Column], tuple[Bound | None, Bound | None]]
    """From a column that holds a value to its lower and upper bound; None for one not known."""
    write_lower: Callable[[Any], Any]
    """From a lower bound to its JSON value; None where it can't be written."""
    write_upper: Callable[[Any], Any]
    """From an upper bound to its JSON value; None where it can't be written."""


def bounds_codec(kind: pa.DataType) -> BoundsCodec | None:
    """The codec of a type; None for one that has no bounds in the log."""
    return next((codec for holds, codec in _CODECS if holds(kind)), None)


def _find(column: Column) -> tuple[Bound, Bound]:
    found: Any = pc.min_max(column)
    return found["min"].as_py(), found["max"].as_py()


def _find_integral(column: Column) -> tuple[Bound, Bound]:
    found: Any = pc.min_max(column)
    return found["min"].value, found["max"].value


def _find_strings(column: Column) -> tuple[Bound | None, Bound | None]:
    try:
        return _find(column)
    except UnicodeDecodeError:
        return None, None


def _find_floats(column: Column) -> tuple[Bound | None, Bound | None]:
    # A finite sum rules out NaN in one pass; infinities and overflows need the closer look.
    if not math.isfinite(pc.sum(column).as_py()) and pc.any(pc.is_nan(column)).as_py():
        return None, None
    return _find(column)


def _same(value: Bound) -> Bound:
    return value


def _lower_float(value: float) -> float | None:
    # A reader may order -0.0 below 0.0.
    return (value or -0.0) if math.isfinite(value) else None


def _upper_float(value: float) -> float | None:
    return (value or 0.0) if math.isfinite(value) else None


def _exact_decimal(value: Decimal) -> msgspec.Raw:
    return msgspec.Raw(format(value, "f").encode())


def _lower_string(value: str) -> str:
    return value[:STRING_PREFIX]


def _upper_string(value: str) -> str | None:
    if len(value) <= STRING_PREFIX:
        return value
    for end in range(STRING_PREFIX, min(len(value), STRING_UPPER_LIMIT)):
        if value[end] < _ASCII_TOP:
            return value[:end] + _ASCII_TOP
        if value[end] < _TOP:
            return value[:end] + _TOP
    return value if len(value) <= STRING_UPPER_LIMIT else None


def _date(days: int) -> str | None:
    try:
        return (_EPOCH_DAY + timedelta(days=days)).isoformat()
    except OverflowError:
        return None


def _local_time(milliseconds: int) -> str | None:
    try:
        return (_EPOCH + timedelta(milliseconds=milliseconds)).isoformat(timespec="milliseconds")
    except OverflowError:
        return None


def _utc_time(milliseconds: int) -> str | None:
    text = _local_time(milliseconds)
    return None if text is None else text + "Z"


def _floor_ms(microseconds: int) -> int:
    return microseconds // 1000


def _ceil_ms(microseconds: int) -> int:
    # The log keeps milliseconds; rounding up spares readers from knowing what a truncation lost.
    return -(-microseconds // 1000)


_CODECS: tuple[tuple[Callable[[pa.DataType], bool], BoundsCodec], ...] = (
    (pa.types.is_integer, BoundsCodec(_find, _same, _same)),
    (pa.types.is_floating, BoundsCodec(_find_floats, _lower_float, _upper_float)),
    (pa.types.is_string, BoundsCodec(_find_strings, _lower_string, _upper_string)),
    (pa.types.is_decimal, BoundsCodec(_find, _exact_decimal, _exact_decimal)),
    (pa.types.is_date32, BoundsCodec(_find_integral, _date, _date)),
    (
        lambda kind: pa.types.is_timestamp(kind) and kind.tz is None,
        BoundsCodec(
            _find_integral,
            lambda value: _local_time(_floor_ms(value)),
            lambda value: _local_time(_ceil_ms(value)),
        ),
    ),
    (
        pa.types.is_timestamp,
        BoundsCodec(
            _find_integral,
            lambda value: _utc_time(_floor_ms(value)),
            lambda value: _utc_time(_ceil_ms(value)),
        ),
    ),
)
