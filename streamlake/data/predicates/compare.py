"""Spark's order of values, and SQL's three-valued logic over it.

NaN equals itself and is greater than every other number; -0.0 equals 0.0. Strings are in the order
of their UTF-8 bytes, as Arrow has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from streamlake.data.predicates.kernels import Values, pc


def less(one: Values, two: Values) -> Values:
    """Whether each of the first comes before the second; null where either is null."""
    one, two = _ordered(one), _ordered(two)
    found = pc.less(one, two)
    if pa.types.is_floating(one.type):
        return pc.or_(found, pc.and_(pc.is_nan(two), pc.invert(pc.is_nan(one))))
    return found


def less_equal(one: Values, two: Values) -> Values:
    """Whether each of the first does not come after the second."""
    return pc.invert(less(two, one))


def equal(one: Values, two: Values) -> Values:
    """Whether both are the same value; null where either is null."""
    found = pc.equal(one, two)
    if pa.types.is_floating(one.type):
        return pc.or_(found, pc.and_(pc.is_nan(one), pc.is_nan(two)))
    return found


def same(one: Values, two: Values) -> Values:
    """``<=>``: whether both are the same value or both null; never null."""
    nulls = pc.and_(pc.is_null(one), pc.is_null(two))
    return pc.or_(nulls, pc.fill_null(equal(one, two), fill_value=False))


def among(operand: Values, choices: Sequence[Values]) -> Values:
    """``IN``: null where nothing is equal and anything is null."""
    found = equal(operand, choices[0])
    for choice in choices[1:]:
        found = pc.or_kleene(found, equal(operand, choice))
    return found


def among_constants(operand: Values, choices: pa.Array[Any]) -> Values:
    """``IN`` of constants, of a type without NaN; in one step for any number of them."""
    found = pc.is_in(operand, value_set=choices.drop_null())
    found = pc.if_else(pc.is_valid(operand), found, None)
    return pc.or_kleene(found, pa.scalar(None, pa.bool_())) if choices.null_count else found


def _ordered(values: Values) -> Values:
    return values.cast(pa.int8()) if pa.types.is_boolean(values.type) else values
