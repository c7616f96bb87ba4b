"""An expression computed over rows, by Arrow, column by column.

What SQL computes row by row and this for all rows at once must not differ: where a value can be an
error (a division, a cast), it is computed only for the rows that AND, OR, CASE or COALESCE come to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from streamlake.data.predicates import compare
from streamlake.data.predicates.casts import cast_values, is_safe
from streamlake.data.predicates.functions import (
    CONSTANT_INTEGER,
    CONSTANT_TEXT,
    FUNCTIONS,
    Function,
)
from streamlake.data.predicates.kernels import (
    Values,
    chunked,
    count_true,
    is_any,
    nulls,
    pc,
    repeated,
)
from streamlake.data.predicates.tree import (
    Call,
    Case,
    Cast,
    Column,
    Expression,
    Literal,
    children,
)
from streamlake.errors import InvalidInputError

_TAKES_SCALARS = frozenset({"=", "<", "<=", "<=>", "+", "-", "*", "/"})


@dataclass(frozen=True, slots=True)
class Rows:
    """What an expression is computed over."""

    batch: pa.RecordBatch | None
    """The columns; None where the expression has none."""
    num_rows: int

    def where(self, mask: Values) -> Rows:
        """The rows for which the mask, which has no nulls, is true."""
        batch = None if self.batch is None else self.batch.filter(mask)
        return Rows(batch, count_true(mask))


ONE_ROW = Rows(None, 1)
"""For expressions without columns."""


def evaluate(expression: Expression, table: pa.Table) -> pa.ChunkedArray[Any]:
    """The expression's value for each row.

    Args:
        expression: Of ``parse``.
        table: With the columns that it reads, under the names and with the types of the schema that
            it was parsed for.

    Raises:
        InvalidInputError: A value can't be computed: a number that overflows, a division by zero,
            a text that is none of the type that it is cast to.
    """
    try:
        chunks = [compute(expression, Rows(batch, batch.num_rows)) for batch in table.to_batches()]
    except pa.ArrowException as error:
        raise InvalidInputError(
            "The expression can't be computed for every row.",
            found=str(error),
            remedy="Correct the data, or guard the part with CASE or AND.",
        ) from error
    return chunked(chunks, expression.type)


def compute(expression: Expression, rows: Rows) -> Values:
    """The expression's value for each row, as one array.

    Raises:
        pyarrow.ArrowException: A value can't be computed.
    """
    if isinstance(expression, Literal):
        return repeated(expression.value, rows.num_rows)
    if isinstance(expression, Column):
        return _column(expression, rows)
    if isinstance(expression, Cast):
        values = compute(expression.operand, rows)
        return cast_values(values, expression.type, lenient=expression.lenient)
    if isinstance(expression, Case):
        return _case(expression, rows)
    special = _SPECIAL.get(expression.function)
    if special is not None:
        return special(expression, rows)
    return apply(expression, _arguments(expression, rows))


def apply(call: Call, values: list[Any]) -> Values:
    """A function over the values of its arguments, the constant ones among them left out.

    Raises:
        pyarrow.ArrowException: A value can't be computed.
    """
    found: Values = FUNCTIONS[call.function].compute(*values)
    return found


def kinds_of(function: Function, count: int) -> tuple[str, ...]:
    """The kind of each of so many arguments."""
    return function.takes + function.takes[-1:] * (count - len(function.takes))


def _arguments(call: Call, rows: Rows) -> list[Any]:
    function = FUNCTIONS[call.function]
    kinds = kinds_of(function, len(call.arguments))
    scalars = call.function in _TAKES_SCALARS
    found: list[Any] = []
    for argument, kind in zip(call.arguments, kinds, strict=False):
        if isinstance(argument, Literal) and kind in {CONSTANT_TEXT, CONSTANT_INTEGER}:
            found.append(argument.value.as_py())
        elif isinstance(argument, Literal) and scalars and not _all_literal(call):
            found.append(argument.value)
        else:
            found.append(compute(argument, rows))
    return found


def _all_literal(call: Call) -> bool:
    return all(isinstance(argument, Literal) for argument in call.arguments)


def _column(column: Column, rows: Rows) -> Values:
    if rows.batch is None:
        raise pa.ArrowKeyError(column.path[0])
    values: Values = rows.batch.column(column.path[0])
    if column.path[1:]:
        values = pc.struct_field(values, list(column.path[1:]))
    return values


def _all(call: Call, rows: Rows) -> Values:
    found = compute(call.arguments[0], rows)
    for argument in call.arguments[1:]:
        undecided = pc.fill_null(found, fill_value=True)
        found = pc.and_kleene(found, _where(argument, rows, undecided))
    return found


def _any(call: Call, rows: Rows) -> Values:
    found = compute(call.arguments[0], rows)
    for argument in call.arguments[1:]:
        undecided = pc.invert(pc.fill_null(found, fill_value=False))
        found = pc.or_kleene(found, _where(argument, rows, undecided))
    return found


def _in(call: Call, rows: Rows) -> Values:
    operand, *choices = call.arguments
    values = compute(operand, rows)
    constants = [choice.value for choice in choices if isinstance(choice, Literal)]
    if len(constants) == len(choices) and not pa.types.is_floating(values.type):
        held = pa.array([constant.as_py() for constant in constants], values.type)
        return compare.among_constants(values, held)
    return compare.among(values, [compute(choice, rows) for choice in choices])


def _coalesce(call: Call, rows: Rows) -> Values:
    found = compute(call.arguments[0], rows)
    for argument in call.arguments[1:]:
        found = pc.coalesce(found, _where(argument, rows, pc.is_null(found)))
    return found


def _case(case: Case, rows: Rows) -> Values:
    found = nulls(rows.num_rows, case.type)
    left = repeated(value=True, count=rows.num_rows)
    for condition, value in case.branches:
        holds = pc.fill_null(_where(condition, rows, left), fill_value=False)
        hit = pc.and_(left, holds)
        found = pc.if_else(hit, _where(value, rows, hit), found)
        left = pc.and_(left, pc.invert(hit))
    return pc.if_else(left, _where(case.otherwise, rows, left), found)


def _where(expression: Expression, rows: Rows, mask: Values) -> Values:
    """The value for the rows of the mask; for others too where it can't be an error, or null."""
    if not _can_fail(expression) or not is_any(pc.invert(mask)):
        return compute(expression, rows)
    full = nulls(rows.num_rows, expression.type)
    some = rows.where(mask)
    return pc.replace_with_mask(full, mask, compute(expression, some)) if some.num_rows else full


def _can_fail(expression: Expression) -> bool:
    if isinstance(expression, Cast) and not is_safe(expression.operand.type, expression.type):
        return True
    function = FUNCTIONS.get(expression.function) if isinstance(expression, Call) else None
    if function is not None and function.fails:
        return True
    return any(_can_fail(child) for child in children(expression))


_SPECIAL = {"and": _all, "or": _any, "in": _in, "coalesce": _coalesce}
