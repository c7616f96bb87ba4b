"""What is known of files, and of the values that expressions have in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from streamlake.data.predicates.casts import cast_values, is_widening
from streamlake.data.predicates.coercion import is_time
from streamlake.data.predicates.evaluate import Rows, apply, compute, kinds_of
from streamlake.data.predicates.functions import (
    CONSTANT_INTEGER,
    CONSTANT_TEXT,
    FUNCTIONS,
)
from streamlake.data.predicates.kernels import Values, nulls, pc, repeated
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


def range_of(expression: Expression, facts: FileFacts) -> Range | None:
    """What is known of an expression's values; None for nothing."""
    if facts.is_exact(expression):
        return _exact_range(expression, facts)
    if isinstance(expression, Column):
        return facts.ranges.get(expression.path)
    if isinstance(expression, Cast):
        known = range_of(expression.operand, facts)
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
    known = range_of(operand, facts)
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
