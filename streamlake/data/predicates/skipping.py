"""Which files an expression may be true in, by what is known of them without opening them.

The expression is computed over ranges in place of values: of a condition what comes out is whether
it may be true, may be false and may be null for some row of the file. What is not known may be
anything, so no file is left out that has a row which satisfies the expression.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import pyarrow as pa

from streamlake.data.predicates import compare
from streamlake.data.predicates.facts import FileFacts, range_of
from streamlake.data.predicates.kernels import Values, is_any, nulls, pc, repeated
from streamlake.data.predicates.patterns import constant_prefix
from streamlake.data.predicates.statistics import Range, to_domain
from streamlake.data.predicates.tree import (
    Call,
    Column,
    ColumnPath,
    Expression,
    Literal,
    columns_of,
)

_MAX_NAN_COLUMNS = 3
"""For how many columns numbers and NaN are looked at apart."""
_MAX_CHOICES = 64
"""Up to how many values IN looks at each of them, above at the smallest and the largest."""
_AFTER_ALL = b"\xff"


@dataclass(frozen=True, slots=True)
class _Truth:
    """Whether a condition may be true, false and null for a row of each file."""

    true: Values
    false: Values
    null: Values


def may_be_true(expression: Expression, facts: FileFacts) -> Values:
    """For each file whether the expression may be true for one of its rows."""
    floats = [
        path
        for path, kind in columns_of(expression).items()
        if pa.types.is_floating(kind) and path in facts.ranges
    ]
    if len(floats) > _MAX_NAN_COLUMNS:
        unbounded = {path: _unbounded(facts.ranges[path]) for path in floats}
        facts = _with_ranges(facts, unbounded)
        floats = []
    found = facts.every(False)  # noqa: FBT003 - of every file
    for choice in product((False, True), repeat=len(floats)):
        nans = {
            path: _not_a_number(facts.ranges[path])
            for path, is_nan in zip(floats, choice, strict=True)
            if is_nan
        }
        found = pc.or_(found, _truth(expression, _with_ranges(facts, nans)).true)
    return found


def _with_ranges(facts: FileFacts, ranges: Mapping[ColumnPath, Range]) -> FileFacts:
    merged = {**facts.ranges, **ranges}
    return FileFacts(facts.num_files, facts.partitions, facts.doubtful, merged)


def _not_a_number(known: Range) -> Range:
    nan = repeated(float("nan"), len(known.lower))
    return Range(nan, nan, known.may_be_null, known.may_be_value)


def _unbounded(known: Range) -> Range:
    nothing = nulls(len(known.upper), known.upper.type)
    return Range(known.lower, nothing, known.may_be_null, known.may_be_value)


# -------------------------------------------------------------------------------------------------
# Conditions


def _truth(expression: Expression, facts: FileFacts) -> _Truth:
    if facts.is_exact(expression):
        return _exact_truth(expression, facts)
    if isinstance(expression, Column):
        known = facts.ranges.get(expression.path)
        if known is not None:
            return _Truth(known.may_be_value, known.may_be_value, known.may_be_null)
    if isinstance(expression, Call):
        rule = _RULES.get(expression.function)
        if rule is not None:
            return rule(expression, facts)
    return _anything(facts)


def _anything(facts: FileFacts) -> _Truth:
    yes = facts.every(True)  # noqa: FBT003 - of every file
    return _Truth(yes, yes, yes)


def _exact_truth(expression: Expression, facts: FileFacts) -> _Truth:
    values = facts.values(expression)
    if values is None:
        return _anything(facts)
    doubt = facts.doubtful if facts.doubtful is not None else facts.every(False)  # noqa: FBT003
    return _Truth(
        pc.or_(doubt, pc.fill_null(values, fill_value=False)),
        pc.or_(doubt, pc.fill_null(pc.invert(values), fill_value=False)),
        pc.or_(doubt, pc.is_null(values)),
    )


def _all(call: Call, facts: FileFacts) -> _Truth:
    found = _truth(call.arguments[0], facts)
    for argument in call.arguments[1:]:
        more = _truth(argument, facts)
        found = _Truth(
            pc.and_(found.true, more.true),
            pc.or_(found.false, more.false),
            pc.or_(found.null, more.null),
        )
    return found


def _any(call: Call, facts: FileFacts) -> _Truth:
    found = _truth(call.arguments[0], facts)
    for argument in call.arguments[1:]:
        more = _truth(argument, facts)
        found = _Truth(
            pc.or_(found.true, more.true),
            pc.and_(found.false, more.false),
            pc.or_(found.null, more.null),
        )
    return found


def _not(call: Call, facts: FileFacts) -> _Truth:
    found = _truth(call.arguments[0], facts)
    return _Truth(found.false, found.true, found.null)


def _is_null(call: Call, facts: FileFacts) -> _Truth:
    known = range_of(call.arguments[0], facts)
    never = facts.every(False)  # noqa: FBT003 - of every file
    if known is None:
        anything = _anything(facts)
        return _Truth(anything.true, anything.false, never)
    return _Truth(known.may_be_null, known.may_be_value, never)


def _is_true(call: Call, facts: FileFacts) -> _Truth:
    found = _truth(call.arguments[0], facts)
    never = facts.every(False)  # noqa: FBT003 - of every file
    return _Truth(found.true, pc.or_(found.false, found.null), never)


def _is_false(call: Call, facts: FileFacts) -> _Truth:
    found = _truth(call.arguments[0], facts)
    never = facts.every(False)  # noqa: FBT003 - of every file
    return _Truth(found.false, pc.or_(found.true, found.null), never)


def _comparison(call: Call, facts: FileFacts) -> _Truth:
    one, two = (range_of(argument, facts) for argument in call.arguments)
    if one is None or two is None:
        return _anything(facts)
    # Bounds of decimals are rounded: what is equal then may be less or greater before.
    rounded = pa.types.is_decimal(call.arguments[0].type)
    return _compared(call.function, one, two, rounded=rounded)


def _compared(operator: str, one: Range, two: Range, *, rounded: bool) -> _Truth:
    values = pc.and_(one.may_be_value, two.may_be_value)
    either_null = pc.or_(one.may_be_null, two.may_be_null)
    before = compare.less_equal if rounded else compare.less
    if operator == "<":
        holds = before(one.lower, two.upper)
        fails = compare.less_equal(two.lower, one.upper)
    elif operator == "<=":
        holds = compare.less_equal(one.lower, two.upper)
        fails = before(two.lower, one.upper)
    else:
        holds = pc.and_kleene(
            compare.less_equal(one.lower, two.upper), compare.less_equal(two.lower, one.upper)
        )
        fails = pc.invert(_is_one_value(one, two, rounded=rounded))
    true, false = pc.and_(values, _maybe(holds)), pc.and_(values, _maybe(fails))
    if operator != "<=>":
        return _Truth(true, false, either_null)
    either = pc.or_(
        pc.and_(one.may_be_null, two.may_be_value), pc.and_(one.may_be_value, two.may_be_null)
    )
    both = pc.and_(one.may_be_null, two.may_be_null)
    return _Truth(pc.or_(true, both), pc.or_(false, either), pc.is_null(either_null))


def _is_one_value(one: Range, two: Range, *, rounded: bool) -> Values:
    if rounded:
        return pc.is_null(one.may_be_null)  # never
    same = pc.and_(compare.equal(one.lower, one.upper), compare.equal(two.lower, two.upper))
    return pc.fill_null(pc.and_(same, compare.equal(one.lower, two.lower)), fill_value=False)


def _maybe(condition: Values) -> Values:
    return pc.fill_null(condition, fill_value=True)


def _in(call: Call, facts: FileFacts) -> _Truth:
    operand, *choices = call.arguments
    known = range_of(operand, facts)
    if known is None:
        return _anything(facts)
    rounded = pa.types.is_decimal(operand.type)
    if len(choices) > _MAX_CHOICES:
        return _in_hull(known, choices, facts)
    found: _Truth | None = None
    for choice in choices:
        value = range_of(choice, facts)
        if value is None:
            return _anything(facts)
        more = _compared("=", known, value, rounded=rounded)
        found = (
            more
            if found is None
            else _Truth(
                pc.or_(found.true, more.true),
                pc.and_(found.false, more.false),
                pc.or_(found.null, more.null),
            )
        )
    return found or _anything(facts)


def _in_hull(known: Range, choices: list[Expression], facts: FileFacts) -> _Truth:
    """By the smallest and the largest of many values alone."""
    values = [choice.value for choice in choices if isinstance(choice, Literal)]
    held = to_domain(pa.array([value.as_py() for value in values], choices[0].type))
    numbers = pa.types.is_floating(held.type)
    if len(values) < len(choices) or (numbers and is_any(pc.is_nan(held))):
        return _anything(facts)
    ends: Any = pc.min_max(held)
    low, high = (repeated(end, facts.num_files) for end in ends.values())
    no, yes = facts.every(False), facts.every(True)  # noqa: FBT003 - of every file
    hull = Range(low, high, yes if held.null_count else no, yes)
    return _compared("=", known, hull, rounded=True)


def _like(call: Call, facts: FileFacts) -> _Truth:
    pattern = [part.value.as_py() for part in call.arguments[1:] if isinstance(part, Literal)]
    known = range_of(call.arguments[0], facts)
    if known is None:
        return _anything(facts)
    start = pattern[0] if call.function == "startswith" else constant_prefix(*pattern)
    first = pa.scalar(start.encode(), pa.binary())
    last = pa.scalar(start.encode() + _AFTER_ALL, pa.binary())
    holds = pc.and_kleene(pc.less_equal(known.lower, last), pc.greater_equal(known.upper, first))
    true = pc.and_(known.may_be_value, _maybe(holds))
    return _Truth(true, known.may_be_value, known.may_be_null)


_RULES = {
    "and": _all,
    "or": _any,
    "not": _not,
    "is null": _is_null,
    "is true": _is_true,
    "is false": _is_false,
    "=": _comparison,
    "<": _comparison,
    "<=": _comparison,
    "<=>": _comparison,
    "in": _in,
    "like": _like,
    "startswith": _like,
}
