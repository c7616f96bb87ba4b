"""CAST, as Spark has it in ANSI mode: what can't be converted is an error, never another value.

Without a zone is UTC: in text, and where a timestamp meets a date or a timestamp_ntz.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from streamlake.data.predicates.coercion import (
    TIMESTAMP,
    as_decimal,
    is_number,
    is_time,
)
from streamlake.data.predicates.kernels import Values, is_any, nulls, pc

_PLAIN_DECIMAL_SCALE = 6
"""Up to that scale Arrow writes decimals without an exponent."""
_TEXT_FORMS: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (pa.types.is_integer, r"^[+-]?[0-9]+$"),
    (
        lambda kind: pa.types.is_floating(kind) or pa.types.is_decimal(kind),
        r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$",
    ),
    (pa.types.is_date32, r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"),
    (
        lambda kind: pa.types.is_timestamp(kind) and kind.tz is None,
        r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?)?$",
    ),
    (
        pa.types.is_timestamp,
        (
            r"^[0-9]{4}-[0-9]{2}-[0-9]{2}"
            r"([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:[0-9]{2})?)?$"
        ),
    ),
    (pa.types.is_boolean, r"(?i)^(t|true|y|yes|1|f|false|n|no|0)$"),
)
_TRUE = r"(?i)^(t|true|y|yes|1)$"


def is_castable(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether there is a cast from one type to the other that agrees with Spark's."""
    if given.equals(wanted) or pa.types.is_null(given):
        return True
    if pa.types.is_string(wanted):
        return _is_printable(given)
    if is_number(given) and is_number(wanted):
        return not (pa.types.is_floating(given) and pa.types.is_decimal(wanted))
    return (
        (pa.types.is_string(given) and not pa.types.is_nested(wanted))
        or (pa.types.is_boolean(given) and pa.types.is_integer(wanted))
        or (is_time(given) and is_time(wanted))
    )


def _is_printable(kind: pa.DataType) -> bool:
    if pa.types.is_decimal(kind):
        decimal: Any = kind
        return bool(decimal.scale <= _PLAIN_DECIMAL_SCALE)
    return (
        pa.types.is_integer(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_binary(kind)
        or is_time(kind)
    )


def is_safe(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a cast can't meet a value that it can't convert."""
    if given.equals(wanted) or pa.types.is_null(given) or (is_time(given) and is_time(wanted)):
        return True
    if pa.types.is_string(wanted):
        return not pa.types.is_binary(given)
    if pa.types.is_string(given):
        return pa.types.is_binary(wanted)
    return is_widening(given, wanted) or pa.types.is_boolean(given)


def is_widening(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a cast between numbers keeps their order and can't fail."""
    if not (is_number(given) and is_number(wanted)):
        return False
    if pa.types.is_floating(wanted):
        return bool(wanted.bit_width == 64 or given.equals(wanted))  # noqa: PLR2004 - a double
    if pa.types.is_integer(given) and pa.types.is_integer(wanted):
        return bool(given.bit_width <= wanted.bit_width)
    if pa.types.is_decimal(wanted) and not pa.types.is_floating(given):
        narrow: Any = as_decimal(given)
        whole = wanted.precision - wanted.scale
        return bool(narrow.scale <= wanted.scale and narrow.precision - narrow.scale <= whole)
    return False


def cast_values(values: Values, wanted: pa.DataType, *, lenient: bool = False) -> Values:
    """The values in a type that ``is_castable``.

    Args:
        values: Any number of them.
        wanted: The type.
        lenient: Whether a string that spells no value of the type is null.

    Raises:
        pyarrow.ArrowException: A value can't be converted.
    """
    given = values.type
    if given.equals(wanted):
        return values
    if pa.types.is_null(given):
        return nulls(len(values), wanted)
    if pa.types.is_string(given):
        return _from_text(values, wanted, lenient=lenient)
    if pa.types.is_string(wanted):
        return _to_text(values)
    return _to_time(values, wanted) if is_time(given) else _to_number(values, wanted)


def _to_number(values: Values, wanted: pa.DataType) -> Values:
    given = values.type
    if pa.types.is_floating(wanted):
        if pa.types.is_decimal(given):
            values = values.cast(pa.string())  # Arrow's own conversion may be off by a digit
        return pc.cast(values, wanted, safe=False)
    if pa.types.is_integer(wanted):
        return _to_integer(values, wanted)
    return _to_decimal(
        values if pa.types.is_decimal(given) else values.cast(as_decimal(given)), wanted
    )


def _to_integer(values: Values, wanted: pa.DataType) -> Values:
    if pa.types.is_floating(values.type):
        values = pc.trunc(values)
    elif pa.types.is_decimal(values.type):
        values = pc.round(values, round_mode="towards_zero")
    return values.cast(wanted)


def _to_decimal(values: Values, wanted: Any) -> Values:  # noqa: ANN401 - a decimal type
    scale: int = wanted.scale
    if values.type.scale > scale:
        values = pc.round(values, ndigits=scale, round_mode="half_towards_infinity")
    return values.cast(wanted)


def _to_time(values: Values, wanted: pa.DataType) -> Values:
    given = values.type
    if pa.types.is_timestamp(given) and pa.types.is_timestamp(wanted):
        # Without a zone is UTC, and in that the numbers are the same.
        return values.view(wanted)
    if pa.types.is_date32(given) and wanted.equals(TIMESTAMP):
        return values.cast(pa.timestamp("us")).view(wanted)
    return values.cast(wanted)


def _to_text(values: Values) -> Values:
    kind = values.type
    if not pa.types.is_timestamp(kind):
        return values.cast(pa.string())
    text = pc.strftime(values, format="%Y-%m-%d %H:%M:%S")
    return pc.replace_substring_regex(text, pattern=r"\.?0+$", replacement="")


def _from_text(values: Values, wanted: pa.DataType, *, lenient: bool) -> Values:
    if pa.types.is_binary(wanted):
        return values.cast(wanted)
    text = pc.utf8_trim_whitespace(values)
    form = next(form for holds, form in _TEXT_FORMS if holds(wanted))
    spelt = pc.match_substring_regex(text, form)
    if pa.types.is_floating(wanted):
        named = pc.match_substring_regex(text, r"(?i)^([+-]?inf(inity)?|nan)$")
        spelt = pc.or_(spelt, named)
    if not lenient and is_any(pc.invert(spelt)):
        wrong = text.filter(pc.invert(spelt))[0]
        raise pa.ArrowInvalid(f"{wrong.as_py()!r} is no {wanted}")
    text = pc.if_else(spelt, text, pa.scalar(None, pa.string()))
    if pa.types.is_boolean(wanted):
        return pc.match_substring_regex(text, _TRUE)
    if pa.types.is_timestamp(wanted) and wanted.tz is not None:
        zoned = pc.match_substring_regex(text, r"(Z|:[0-9]{2}[+-][0-9]{2}:[0-9]{2}|"
                                         r"\.[0-9]+[+-][0-9]{2}:[0-9]{2})$")  # fmt: skip
        naive = pc.if_else(zoned, None, text).cast(pa.timestamp("us")).view(wanted)
        return pc.coalesce(pc.if_else(zoned, text, None).cast(wanted), naive)
    if is_number(wanted):
        text = pc.replace_substring_regex(text, pattern=r"^\+", replacement="")
    return text.cast(wanted)
