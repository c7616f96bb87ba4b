"""The operators and functions that there are: what they take, what they give, how they compute.

A function gets its arguments with the types that its entry names and gives null for null unless it
says otherwise. Those that need a constant find it in the tree. Names are Spark's in small letters;
operators go by their sign.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from streamlake.data.predicates import compare, patterns, times
from streamlake.data.predicates.kernels import Values, is_any, pc
from streamlake.log.arrays import array_of

Compute: TypeAlias = Callable[..., Values]

TEXT, DATE, TIME, NUMBER, INTEGER, FLOAT, BOOLEAN, ANY = (
    "a string",
    "a date",
    "a timestamp",
    "a number",
    "an integer",
    "a double",
    "a boolean",
    "any",
)
"""Kinds of parameters."""
TEXT_OR_BINARY = "a string or binary"
COLLECTION = "an array or map"
CONSTANT_TEXT = "a constant string"
CONSTANT_INTEGER = "a constant integer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """What there is to know of an operator or function."""

    compute: Compute
    """From an array for each argument, or the Python value of a constant one, to an array."""
    takes: tuple[str, ...] = (ANY,)
    """The kind of each parameter; the last one stands for all further ones where ``repeats``."""
    repeats: bool = False
    optional: int = 0
    """How many parameters at the end may be left out."""
    alike: bool = False
    """Whether the arguments are brought to one type."""
    fails: bool = False
    """Whether values can be an error, so that only rows that count may be computed."""
    rises: bool = False
    """Whether the result never falls while the first argument rises and the others stay."""


def _negated(values: Values) -> Values:
    floating = pa.types.is_floating(values.type)
    return pc.negate(values) if floating else pc.negate_checked(values)


def _whole_quotient(one: Values, two: Values) -> Values:
    return pc.divide_checked(one.cast(pa.int64()), two.cast(pa.int64()))


def _remainder(one: Values, two: Values) -> Values:
    return pc.subtract(one, pc.multiply(pc.divide_checked(one, two), two))


def _substring(text: Values, start: int, length: int | None = None) -> Values:
    if length is not None and length <= 0:
        return pc.if_else(pc.is_valid(text), "", None)
    first = start - 1 if start > 0 else start
    if length is None:
        stop = None
    elif first >= 0:
        stop = first + length
    else:
        stop = first + length if first + length < 0 else None
    return pc.utf8_slice_codeunits(text, start=first, stop=stop)


def _left(text: Values, length: int) -> Values:
    return _substring(text, 1, length)


def _right(text: Values, length: int) -> Values:
    return _substring(text, -length, length)


def _replaced(text: Values, old: str, new: str) -> Values:
    # Arrow would look for nothing for ever.
    return pc.replace_substring(text, old, new) if old else text


def _length(values: Values) -> Values:
    text = pa.types.is_string(values.type)
    return (pc.utf8_length if text else pc.binary_length)(values).cast(pa.int32())


def _lower(text: Values) -> Values:
    return _recased(text, pc.ascii_lower, str.lower)


def _upper(text: Values) -> Values:
    return _recased(text, pc.ascii_upper, str.upper)


def _recased(text: Values, plain: Compute, full: Callable[[str], str]) -> Values:
    """Arrow maps a character to one; Java, as Python, one to several where Unicode says so."""
    if not is_any(pc.invert(pc.string_is_ascii(text))):
        return plain(text)
    distinct = text.dictionary_encode()
    recased = [None if one is None else full(one) for one in distinct.dictionary.to_pylist()]
    held: Values = array_of(recased, pa.string())
    return pc.take(held, distinct.indices)


def _size(values: Values) -> Values:
    kind: Any = values.type
    if pa.types.is_map(kind):
        values = pc.cast(values, pa.list_(pa.struct([kind.key_field, kind.item_field])))
    return pc.list_value_length(values)


def _joined(*parts: Values) -> Values:
    return pc.binary_join_element_wise(*parts, "", null_handling="emit_null")


def _joined_with(separator: str, *parts: Values) -> Values:
    # Two by two: told to skip nulls, Arrow leaves out rows that have nothing else.
    found = parts[0]
    for part in parts[1:]:
        both = pc.binary_join_element_wise(found, part, separator)
        found = pc.coalesce(both, found, part)
    return pc.coalesce(found, pa.scalar(""))


def _is_nan(values: Values) -> Values:
    return pc.fill_null(pc.is_nan(values), fill_value=False)


def _least(*values: Values) -> Values:
    return _extreme(values, lambda one, two: compare.less(two, one))


def _greatest(*values: Values) -> Values:
    return _extreme(values, compare.less)


def _extreme(values: Sequence[Values], gives_way: Callable[[Values, Values], Values]) -> Values:
    best = values[0]
    for value in values[1:]:
        better = pc.or_(pc.is_null(best), pc.fill_null(gives_way(best, value), fill_value=False))
        best = pc.if_else(better, value, best)
    return best


def _absolute(values: Values) -> Values:
    return (pc.abs if pa.types.is_floating(values.type) else pc.abs_checked)(values)


def _whole(rounded: Callable[..., Any]) -> Compute:
    def compute(values: Values) -> Values:
        kind: Any = values.type
        if pa.types.is_integer(kind):
            return pc.cast(values, pa.int64())
        if pa.types.is_decimal(kind):
            return pc.cast(rounded(values), pa.decimal128(kind.precision - kind.scale + 1, 0))
        return pc.cast(rounded(values), pa.int64())

    return compute


def _truth(wanted: bool) -> Compute:  # noqa: FBT001 - the value itself
    def compute(values: Values) -> Values:
        found = values if wanted else pc.invert(values)
        return pc.fill_null(found, fill_value=False)

    return compute


def _compares(compute: Compute) -> Function:
    return Function(compute=compute, takes=(ANY, ANY), alike=True)


def _part(compute: Compute, kind: str = DATE, *, rises: bool = False) -> Function:
    return Function(compute=compute, takes=(kind,), rises=rises)


def _text(compute: Compute, *more: str, optional: int = 0) -> Function:
    return Function(compute=compute, takes=(TEXT, *more), optional=optional)


def _on_text(compute: Compute) -> Function:
    return _text(compute, CONSTANT_TEXT)


FUNCTIONS: dict[str, Function] = {
    "=": _compares(compare.equal),
    "<": _compares(compare.less),
    "<=": _compares(compare.less_equal),
    "<=>": _compares(compare.same),
    "not": Function(compute=pc.invert, takes=(BOOLEAN,)),
    "is null": Function(compute=pc.is_null),
    "is true": Function(compute=_truth(True), takes=(BOOLEAN,)),  # noqa: FBT003
    "is false": Function(compute=_truth(False), takes=(BOOLEAN,)),  # noqa: FBT003
    "+": Function(compute=pc.add_checked, takes=(NUMBER, NUMBER), fails=True, rises=True),
    "-": Function(compute=pc.subtract_checked, takes=(NUMBER, NUMBER), fails=True, rises=True),
    "*": Function(compute=pc.multiply_checked, takes=(NUMBER, NUMBER), fails=True),
    "/": Function(compute=pc.divide_checked, takes=(FLOAT, FLOAT), fails=True),
    "div": Function(compute=_whole_quotient, takes=(INTEGER, INTEGER), fails=True),
    "%": Function(compute=_remainder, takes=(INTEGER, INTEGER), alike=True, fails=True),
    "negative": Function(compute=_negated, takes=(NUMBER,), fails=True),
    "abs": Function(compute=_absolute, takes=(NUMBER,), fails=True),
    "floor": Function(compute=_whole(pc.floor), takes=(NUMBER,), fails=True, rises=True),
    "ceil": Function(compute=_whole(pc.ceil), takes=(NUMBER,), fails=True, rises=True),
    "isnan": Function(compute=_is_nan, takes=(FLOAT,)),
    "greatest": Function(compute=_greatest, takes=(ANY, ANY), repeats=True, alike=True),
    "least": Function(compute=_least, takes=(ANY, ANY), repeats=True, alike=True),
    "length": Function(compute=_length, takes=(TEXT_OR_BINARY,)),
    "size": Function(compute=_size, takes=(COLLECTION,)),
    "lower": _text(_lower),
    "upper": _text(_upper),
    "trim": _text(lambda text: pc.utf8_trim(text, characters=" ")),
    "ltrim": _text(lambda text: pc.utf8_ltrim(text, characters=" ")),
    "rtrim": _text(lambda text: pc.utf8_rtrim(text, characters=" ")),
    "reverse": _text(pc.utf8_reverse),
    "substring": _text(_substring, CONSTANT_INTEGER, CONSTANT_INTEGER, optional=1),
    "left": _text(_left, CONSTANT_INTEGER),
    "right": _text(_right, CONSTANT_INTEGER),
    "replace": _text(_replaced, CONSTANT_TEXT, CONSTANT_TEXT),
    "concat": Function(compute=_joined, takes=(TEXT,), repeats=True),
    "concat_ws": Function(compute=_joined_with, takes=(CONSTANT_TEXT, TEXT), repeats=True),
    "like": _text(patterns.like, CONSTANT_TEXT, CONSTANT_TEXT),
    "ilike": _text(patterns.ilike, CONSTANT_TEXT, CONSTANT_TEXT),
    "rlike": _on_text(patterns.rlike),
    "startswith": _on_text(pc.starts_with),
    "endswith": _on_text(pc.ends_with),
    "contains": _on_text(pc.match_substring),
    "year": _part(times.year, rises=True),
    "quarter": _part(times.quarter),
    "month": _part(times.month),
    "day": _part(times.day),
    "dayofweek": _part(times.day_of_week),
    "dayofyear": _part(times.day_of_year),
    "weekofyear": _part(times.week_of_year),
    "hour": _part(times.hour, TIME),
    "minute": _part(times.minute, TIME),
    "second": _part(times.second, TIME),
    "date_add": Function(compute=times.add_days, takes=(DATE, INTEGER), fails=True, rises=True),
    "date_sub": Function(
        compute=times.subtract_days,
        takes=(DATE, INTEGER),
        fails=True,
        rises=True,
    ),
    "datediff": Function(compute=times.days_between, takes=(DATE, DATE)),
    "trunc": Function(compute=times.truncated_date, takes=(DATE, CONSTANT_TEXT), rises=True),
    "date_trunc": Function(compute=times.truncated_time, takes=(TIME, CONSTANT_TEXT), rises=True),
    "date_format": Function(compute=times.formatted, takes=(TIME, CONSTANT_TEXT)),
}
"""By name. AND, OR, IN and COALESCE are evaluated by their own rules (``evaluate``)."""

ALIASES: dict[str, str] = {
    "char_length": "length",
    "character_length": "length",
    "len": "length",
    "cardinality": "size",
    "array_size": "size",
    "lcase": "lower",
    "ucase": "upper",
    "substr": "substring",
    "ceiling": "ceil",
    "dayofmonth": "day",
    "dateadd": "date_add",
    "date_diff": "datediff",
    "mod": "%",
    "starts_with": "startswith",
    "ends_with": "endswith",
    "regexp": "rlike",
    "regexp_like": "rlike",
    "nvl": "coalesce",
    "ifnull": "coalesce",
    "isnull": "is null",
}
"""Other names of Spark's for the same."""
