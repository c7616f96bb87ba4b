"""The tree of an SQL expression whose columns and types are known.

Every node has its Arrow type; whatever SQL converts by itself stands in the tree as a ``Cast``. So
what walks a tree (evaluation, data skipping) decides nothing about types any more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

ColumnPath: TypeAlias = tuple[str, ...]
"""The names of a column and of the struct fields below it, as the table spells them."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant."""

    value: pa.Scalar[Any]

    @property
    def type(self) -> pa.DataType:
        """Of the constant; null for a bare NULL."""
        kind: pa.DataType = self.value.type
        return kind


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the table, or a field inside of structs."""

    path: ColumnPath
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Cast:
    """The operand in another type."""

    operand: Expression
    type: pa.DataType
    lenient: bool = False
    """Whether what can't be converted is null (TRY_CAST) and no error."""


@dataclass(frozen=True, slots=True)
class Call:
    """An operator or function of ``functions.FUNCTIONS`` over its arguments."""

    function: str
    arguments: tuple[Expression, ...]
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Case:
    """The value of the first branch whose condition is true, else ``otherwise``."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression
    type: pa.DataType


Expression: TypeAlias = Literal | Column | Cast | Call | Case


def children(expression: Expression) -> tuple[Expression, ...]:
    """The expressions right below one."""
    if isinstance(expression, Call):
        return expression.arguments
    if isinstance(expression, Cast):
        return (expression.operand,)
    if isinstance(expression, Case):
        inner = [part for branch in expression.branches for part in branch]
        return (*inner, expression.otherwise)
    return ()


def columns_of(expression: Expression) -> dict[ColumnPath, pa.DataType]:
    """The columns that an expression reads, with their types."""
    found: dict[ColumnPath, pa.DataType] = {}
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Column):
            found[node.path] = node.type
        waiting.extend(children(node))
    return found


def conjuncts(expression: Expression) -> tuple[Expression, ...]:
    """The parts that must all be true for the whole to be."""
    if isinstance(expression, Call) and expression.function == "and":
        return tuple(part for child in expression.arguments for part in conjuncts(child))
    return (expression,)
