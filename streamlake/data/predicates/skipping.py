"""Which files an expression may be true in, by what is known of them without opening them.

The expression is computed over ranges in place of values: of a condition what comes out is whether
it may be true, may be false and may be null for some row of the file. What is not known may be
anything, so no file is left out that has a row which satisfies the expression.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import pyarrow as pa

from streamlake.data.predicates import compare
from streamlake.data.predicates.casts import cast_values, is_widening
from streamlake.data.predicates.coercion import is_time
from streamlake.data.predicates.evaluate import Rows, apply, compute, kinds_of
from streamlake.data.predicates.functions import (
    CONSTANT_INTEGER,
    CONSTANT_TEXT,
    FUNCTIONS,
)
from streamlake.data.predicates.kernels import Values, is_any, nulls, pc, repeated
from streamlake.data.predicates.patterns import constant_prefix
from streamlake.data.predicates.statistics import Range, domain, to_domain
from streamlake.data.predicates.tree import (
    Call,
    Cast,
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
class FileFacts:
    """What is known of some files."""

    num_files: int
    partitions: pa.RecordBatch | None = None
    """The values of the partition columns that are looked at, a row a file, by logical names."""
    doubtful: Values | None = None
    """Files of which a partition value is not known; None for no such file."""
    ranges: Mapping[ColumnPath, Range] = field(default_factory=dict)
    """Of other columns, by their logical paths; those not there are not known."""

    def is_exact(self, expression: Expression) -> bool:
        """Whether the expression has one value in each file."""
        known = set() if self.partitions is None else set(self.partitions.schema.names)
        return all(path[0] in known for path in columns_of(expression))

    def values(self, expression: Expression) -> Values | None:
        """The value of an expression that is exact; None where it can't be computed."""
        try:
            return compute(expression, Rows(self.partitions, self.num_files))
        except pa.ArrowException:
            return None

    def every(self, value: bool) -> Values:  # noqa: FBT001 - the value itself
        """One boolean for each file."""
        return repeated(value, self.num_files)


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
    known = _range(call.arguments[0], facts)
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
    one, two = (_range(argument, facts) for argument in call.arguments)
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
    known = _range(operand, facts)
    if known is None:
        return _anything(facts)
    rounded = pa.types.is_decimal(operand.type)
    if len(choices) > _MAX_CHOICES:
        return _in_hull(known, choices, facts)
    found: _Truth | None = None
    for choice in choices:
        value = _range(choice, facts)
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
    known = _range(call.arguments[0], facts)
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


# -------------------------------------------------------------------------------------------------
# Values


def _range(expression: Expression, facts: FileFacts) -> Range | None:
    """What is known of an expression's values; None for nothing."""
    if facts.is_exact(expression):
        return _exact_range(expression, facts)
    if isinstance(expression, Column):
        return facts.ranges.get(expression.path)
    if isinstance(expression, Cast):
        known = _range(expression.operand, facts)
        return None if known is None else _cast_range(expression, known)
    if isinstance(expression, Call):
        return _rising_range(expression, facts)
    return None


def _exact_range(expression: Expression, facts: FileFacts) -> Range | None:
    values = facts.values(expression)
    if values is None:
        return None
    missing, valid = pc.is_null(values), pc.is_valid(values)
    if domain(values.type) is None:
        bounds: Values = nulls(facts.num_files, pa.null())
    else:
        bounds = to_domain(values)
    if facts.doubtful is not None:
        missing, valid = pc.or_(missing, facts.doubtful), pc.or_(valid, facts.doubtful)
        bounds = pc.if_else(facts.doubtful, pa.scalar(None, bounds.type), bounds)
    return Range(bounds, bounds, missing, valid)


def _cast_range(cast: Cast, known: Range) -> Range | None:
    given, wanted = cast.operand.type, cast.type
    if is_time(given) and is_time(wanted):
        return _mapped(known, lambda bound: cast_values(bound, wanted))
    integers = pa.types.is_integer(given) and pa.types.is_integer(wanted)
    if not integers and not is_widening(given, wanted):
        return None
    if known.lower.type.equals(domain(wanted)):
        return known
    return _mapped(known, lambda bound: pc.cast(bound, domain(wanted), safe=False))


def _rising_range(call: Call, facts: FileFacts) -> Range | None:
    """Of a function that rises with its one argument that is not constant."""
    function = FUNCTIONS.get(call.function)
    if function is None or not function.rises:
        return None
    operand, *rest = call.arguments
    if call.function == "+" and isinstance(operand, Literal):
        operand, rest = rest[0], [operand]
    known = _range(operand, facts)
    kind = operand.type
    if known is None or not all(isinstance(part, Literal) for part in rest):
        return None
    if pa.types.is_decimal(kind) or domain(kind) is None:
        return None

    def bound_of(bound: Values) -> Values:
        values: list[Any] = [bound.cast(kind)]
        for part, place in zip(rest, kinds_of(function, len(call.arguments))[1:], strict=True):
            constant = place in {CONSTANT_TEXT, CONSTANT_INTEGER}
            literal: Any = part.value if isinstance(part, Literal) else None
            values.append(literal.as_py() if constant else repeated(literal, len(bound)))
        return to_domain(apply(call, values))

    return _mapped(known, bound_of)


def _mapped(known: Range, of_bound: Any) -> Range | None:  # noqa: ANN401 - a function
    try:
        lower, upper = of_bound(known.lower), of_bound(known.upper)
    except pa.ArrowException:
        return None
    return Range(lower, upper, known.may_be_null, known.may_be_value)
