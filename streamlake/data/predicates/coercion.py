"""Which types meet in which, as Spark has it in ANSI mode, and text as values of a type."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pyarrow as pa

from streamlake.errors import InvalidInputError, StreamlakeError
from streamlake.protocol.partition import decode_partition_value

TIMESTAMP = pa.timestamp("us", "UTC")
TIMESTAMP_NTZ = pa.timestamp("us")
MAX_DECIMAL_DIGITS = 38
"""What a decimal of the table may have; comparisons go to 76."""
_WIDEST_DIGITS = 76
_INTEGER_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}


def is_number(kind: pa.DataType) -> bool:
    """Whether one can calculate with it."""
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def is_time(kind: pa.DataType) -> bool:
    """Whether it is a date or a timestamp."""
    return pa.types.is_date32(kind) or pa.types.is_timestamp(kind)


def common_type(one: pa.DataType, two: pa.DataType) -> pa.DataType | None:
    """The type in which both are compared; None where there is none."""
    if one.equals(two) or pa.types.is_null(two):
        return one
    if pa.types.is_null(one):
        return two
    if pa.types.is_string(one) or pa.types.is_string(two):
        return _beside_string(two if pa.types.is_string(one) else one)
    if is_number(one) and is_number(two):
        return _common_number(one, two)
    if is_time(one) and is_time(two):
        zoned = TIMESTAMP in {one, two}
        return TIMESTAMP if zoned else TIMESTAMP_NTZ
    return None


def _beside_string(kind: pa.DataType) -> pa.DataType | None:
    """What a string becomes to be compared with ``kind``."""
    if pa.types.is_integer(kind):
        return pa.int64()
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return pa.float64()
    flat = pa.types.is_boolean(kind) or pa.types.is_binary(kind) or is_time(kind)
    return kind if flat else None


def _common_number(one: pa.DataType, two: pa.DataType) -> pa.DataType | None:
    if pa.types.is_floating(one) or pa.types.is_floating(two):
        return pa.float64()
    if pa.types.is_integer(one) and pa.types.is_integer(two):
        return one if one.bit_width >= two.bit_width else two
    a, b = as_decimal(one), as_decimal(two)
    scale = max(a.scale, b.scale)
    return decimal_type(max(a.precision - a.scale, b.precision - b.scale) + scale, scale)


def as_decimal(kind: pa.DataType) -> Any:  # noqa: ANN401 - a decimal type of either width
    """The decimal type that holds every value of an integer or decimal type."""
    if pa.types.is_decimal(kind):
        return kind
    return pa.decimal128(_INTEGER_DIGITS[kind.bit_width], 0)


def decimal_type(precision: int, scale: int) -> pa.DataType | None:
    """The narrower decimal that has the digits; None for more than there are."""
    if precision <= MAX_DECIMAL_DIGITS:
        return pa.decimal128(precision, scale)
    return pa.decimal256(precision, scale) if precision <= _WIDEST_DIGITS else None


def integer_literal(digits: str) -> pa.Scalar[Any]:
    """The narrowest of int, bigint and decimal that holds the number, as Spark has it."""
    number = int(digits)
    for kind in (pa.int32(), pa.int64()):
        if -(1 << (kind.bit_width - 1)) <= number < 1 << (kind.bit_width - 1):
            return pa.scalar(number, kind)
    return decimal_literal(digits)


def decimal_literal(text: str) -> pa.Scalar[Any]:
    """A decimal of exactly the digits that were written."""
    value = Decimal(text)
    _, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    precision = max(len(digits) + max(0, int(exponent)), scale, 1)
    if precision > MAX_DECIMAL_DIGITS:
        raise InvalidInputError(
            "A number in the expression has too many digits.",
            found=text[:100],
            remedy=f"Write at most {MAX_DECIMAL_DIGITS} digits, or a double, as 1e40.",
        )
    return pa.scalar(value, pa.decimal128(precision, scale))


def parsed_text(text: str, kind: pa.DataType) -> pa.Scalar[Any] | None:
    """A string constant as a value of a type; None where it is none of it.

    Timestamps without a zone are in UTC.
    """
    stripped = text.strip()
    if pa.types.is_string(kind):
        return pa.scalar(text, kind)
    if pa.types.is_binary(kind):
        return pa.scalar(text.encode(), kind)
    if is_time(kind):
        stripped = _whole_time(stripped, kind)
    if pa.types.is_boolean(kind):
        stripped = _BOOLEANS.get(stripped.lower(), "")
    if not stripped:
        return None
    try:
        return pa.scalar(decode_partition_value(stripped, kind), kind)
    except (StreamlakeError, pa.ArrowException, ValueError, OverflowError):
        return None


def _whole_time(text: str, kind: pa.DataType) -> str:
    """A date or time with the parts that Spark lets one leave out: all after the year."""
    match = _TIME.fullmatch(text)
    if match is None:
        return text
    date = f"{match[1]}-{match[2] or '01'}-{match[3] or '01'}"
    if pa.types.is_date32(kind) or match[4] is None:
        return date + (match[7] or "" if pa.types.is_timestamp(kind) else "")
    return f"{date} {match[4]}:{match[5] or '00'}:{match[6] or '00'}{match[7] or ''}"


_TIME = re.compile(
    r"([0-9]{4})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T](?:"
    r"([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2}(?:\.[0-9]{1,9})?))?(Z|[+-][0-9:]{2,6})?"
    r")?)?)?)?"
)
_BOOLEANS = dict.fromkeys(("true", "t", "yes", "y", "1"), "true") | dict.fromkeys(
    ("false", "f", "no", "n", "0"), "false"
)
