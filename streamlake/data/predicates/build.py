"""Expressions put together: types checked, operands brought to one type, constants computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa

from streamlake.data.predicates.casts import is_castable
from streamlake.data.predicates.coercion import (
    TIMESTAMP,
    as_decimal,
    common_type,
    decimal_literal,
    is_number,
    is_time,
    parsed_text,
)
from streamlake.data.predicates.evaluate import ONE_ROW, compute, kinds_of
from streamlake.data.predicates.functions import (
    ALIASES,
    BOOLEAN,
    COLLECTION,
    CONSTANT_INTEGER,
    CONSTANT_TEXT,
    DATE,
    FLOAT,
    FUNCTIONS,
    INTEGER,
    NUMBER,
    TEXT,
    TEXT_OR_BINARY,
    TIME,
)
from streamlake.data.predicates.kernels import nulls
from streamlake.data.predicates.tree import Call, Case, Cast, Expression, Literal, children
from streamlake.errors import InvalidInputError

_DECIMAL_OPERATORS = frozenset({"+", "-", "*"})


def call(name: str, *given: Expression) -> Expression:
    """A function or operator of that name, whatever its case, over its arguments.

    Raises:
        InvalidInputError: There is none here, or the arguments do not fit it.
    """
    name = ALIASES.get(name.lower(), name.lower())
    form = _FORMS.get((name, len(given))) or _FORMS.get((name, -1))
    if form is not None and given:
        return form(*given)
    if name in {"+", "-"} and _is_date_and_days(given):
        name = "date_add" if name == "+" else "date_sub"
    if name not in FUNCTIONS:
        raise _unsupported(f"the function {name}")
    return _fold(_call(name, given))


def _connective(name: str) -> Callable[..., Expression]:
    def build(*given: Expression) -> Expression:
        parts = tuple(boolean(part, name.upper()) for part in given)
        return _fold(Call(name, parts, pa.bool_()))

    return build


def _coalesce(*given: Expression) -> Expression:
    unified = unify(given, "COALESCE")
    return _fold(Call("coalesce", unified, unified[0].type))


def _cast_to(kind: pa.DataType) -> Callable[..., Expression]:
    return lambda operand: cast(operand, kind)


def null() -> Expression:
    """A bare NULL, which has no type yet."""
    return Literal(pa.scalar(None, pa.null()))


def choice(operand: Expression, choices: Sequence[Expression]) -> Expression:
    """``operand IN (choices)``."""
    unified = unify([operand, *choices], "IN")
    _dry_run("=", unified[:2])
    return _fold(Call("in", unified, pa.bool_()))


def case(branches: Sequence[tuple[Expression, Expression]], otherwise: Expression) -> Expression:
    """``CASE WHEN condition THEN value ... ELSE otherwise END``."""
    values = unify([*(value for _, value in branches), otherwise], "CASE")
    conditions = [boolean(condition, "CASE WHEN") for condition, _ in branches]
    pairs = tuple(zip(conditions, values[:-1], strict=True))
    return _fold(Case(pairs, values[-1], values[-1].type))


def cast(operand: Expression, kind: pa.DataType, *, lenient: bool = False) -> Expression:
    """The operand in another type; nothing where it has it."""
    if operand.type.equals(kind):
        return operand
    if not is_castable(operand.type, kind):
        raise _unsupported(f"a cast from {operand.type} to {kind}")
    if isinstance(operand, Literal) and pa.types.is_string(operand.type):
        return _parsed(operand, kind, lenient=lenient)
    return _fold(Cast(operand, kind, lenient))


def boolean(operand: Expression, place: str) -> Expression:
    """The operand, which must be true, false or null."""
    if pa.types.is_null(operand.type):
        return Literal(pa.scalar(None, pa.bool_()))
    if not pa.types.is_boolean(operand.type):
        raise InvalidInputError(
            f"{place} needs something that is true or false.",
            found=f"a value of the type {operand.type}",
            remedy="Write a condition, such as a comparison.",
        )
    return operand


def unify(operands: Sequence[Expression], place: str) -> tuple[Expression, ...]:
    """The operands in one type; string constants are read as what stands beside them."""
    others = [one.type for one in operands if not _is_text(one)]
    common = _common(others or [pa.string()], place)
    if pa.types.is_null(common):
        common = pa.string() if len(others) < len(operands) else pa.bool_()
    if not pa.types.is_string(common):
        operands = [_read_beside(one, common) if _is_text(one) else one for one in operands]
        common = _common([one.type for one in operands], place, at_least=common)
    return tuple(cast(one, common) for one in operands)


def _common(
    kinds: Sequence[pa.DataType], place: str, *, at_least: pa.DataType | None = None
) -> pa.DataType:
    def meet(one: pa.DataType, two: pa.DataType) -> pa.DataType:
        found = common_type(one, two)
        if found is None:
            raise InvalidInputError(
                f"{place} can't take {one} and {two} together.",
                found="types without a common one",
                remedy="Cast one of them.",
            )
        return found

    return reduce(meet, kinds, at_least or pa.null())


def _is_text(operand: Expression) -> bool:
    return isinstance(operand, Literal) and pa.types.is_string(operand.type)


def _read_beside(constant: Expression, kind: pa.DataType) -> Expression:
    if pa.types.is_integer(kind):
        kind = pa.int64()
    if pa.types.is_decimal(kind) and isinstance(constant, Literal):
        number = _parsed(constant, pa.float64())
        text = constant.value.as_py()
        return Literal(decimal_literal(text.strip())) if text is not None else number
    return cast(constant, kind)


def _parsed(constant: Literal, kind: pa.DataType, *, lenient: bool = False) -> Literal:
    text = constant.value.as_py()
    value = None if text is None else parsed_text(text, kind)
    if value is None and text is not None and not lenient:
        raise InvalidInputError(
            f"{text[:100]!r} in the expression is no {kind}.",
            found="a string where a value of that type is needed",
            remedy="Write a value of the type.",
        )
    return Literal(value if value is not None else pa.scalar(None, kind))


# -------------------------------------------------------------------------------------------------


def _count(least: int, most: int) -> str:
    if least < most:
        return f"{least} to {most} arguments"
    return "1 argument" if most == 1 else f"{most} arguments"


def _call(name: str, given: Sequence[Expression]) -> Call:
    function = FUNCTIONS[name]
    least, most = len(function.takes) - function.optional, len(function.takes)
    if len(given) < least or (len(given) > most and not function.repeats):
        raise InvalidInputError(
            f"{name} takes {_count(least, most)}.",
            found=str(len(given)),
            remedy="Correct the expression.",
        )
    kinds = kinds_of(function, len(given))
    arguments = tuple(_as(one, kind, name) for one, kind in zip(given, kinds, strict=False))
    if function.alike:
        arguments = unify(arguments, name)
    elif kinds[0] == NUMBER and len(arguments) > 1:
        arguments = _numbers(name, arguments)
    return Call(name, arguments, _dry_run(name, arguments))


def _dry_run(name: str, arguments: Sequence[Expression]) -> pa.DataType:
    """The type of the result, learnt from a row of nulls."""
    function = FUNCTIONS[name]
    kinds = kinds_of(function, len(arguments))
    values: list[Any] = [
        one.value.as_py()
        if isinstance(one, Literal) and kind in {CONSTANT_TEXT, CONSTANT_INTEGER}
        else nulls(1, one.type)
        for one, kind in zip(arguments, kinds, strict=False)
    ]
    try:
        kind: pa.DataType = function.compute(*values).type
    except pa.ArrowException as error:
        raise InvalidInputError(
            f"{name} can't be computed for these arguments.",
            found=str(error).split("\n", maxsplit=1)[0],
            remedy="Cast or correct the arguments.",
        ) from error
    return kind


def _numbers(name: str, arguments: tuple[Expression, ...]) -> tuple[Expression, ...]:
    """The operands of + - *: decimals keep their own digits, all else meets in one type."""
    common = _common([one.type for one in arguments], name)
    if not pa.types.is_decimal(common) or name not in _DECIMAL_OPERATORS:
        return tuple(cast(one, common) for one in arguments)
    return tuple(_as_decimal(one) for one in arguments)


def _as_decimal(operand: Expression) -> Expression:
    if (
        isinstance(operand, Literal)
        and pa.types.is_integer(operand.type)
        and operand.value.is_valid
    ):
        return Literal(decimal_literal(str(operand.value.as_py())))
    return cast(operand, as_decimal(operand.type))


def _is_date_and_days(given: Sequence[Expression]) -> bool:
    return (
        len(given) == 2  # noqa: PLR2004 - both operands
        and pa.types.is_date32(given[0].type)
        and pa.types.is_integer(given[1].type)
    )


def _as(operand: Expression, kind: str, name: str) -> Expression:
    """The operand as a kind of parameter wants it."""
    given: pa.DataType = operand.type
    if pa.types.is_null(given) and kind in _NULL_AS:
        return cast(operand, _NULL_AS[kind])
    wanted: pa.DataType | None = given
    if kind in _WANTED:
        wanted = _WANTED[kind](given)
        if pa.types.is_decimal(given) and name == "/":
            wanted = None
    elif kind in _KINDS:
        wanted = given if _KINDS[kind](given) else None
    elif kind in {CONSTANT_TEXT, CONSTANT_INTEGER}:
        wanted = given if _is_constant(operand, kind) else None
    if wanted is None:
        raise InvalidInputError(
            f"{name} needs {kind} here.",
            found=f"a value of the type {given}",
            remedy="Cast it, or correct the expression.",
        )
    return cast(operand, wanted)


def _is_constant(operand: Expression, kind: str) -> bool:
    if not isinstance(operand, Literal) or not operand.value.is_valid:
        return False
    text = kind == CONSTANT_TEXT
    return bool((pa.types.is_string if text else pa.types.is_integer)(operand.type))


_NULL_AS: dict[str, pa.DataType] = {
    TEXT: pa.string(),
    DATE: pa.date32(),
    TIME: TIMESTAMP,
    NUMBER: pa.int32(),
    INTEGER: pa.int32(),
    FLOAT: pa.float64(),
    BOOLEAN: pa.bool_(),
    TEXT_OR_BINARY: pa.string(),
}
_KINDS: dict[str, Callable[[pa.DataType], bool]] = {
    NUMBER: is_number,
    INTEGER: pa.types.is_integer,
    BOOLEAN: pa.types.is_boolean,
    COLLECTION: lambda kind: pa.types.is_list(kind) or pa.types.is_map(kind),
    TEXT_OR_BINARY: lambda kind: pa.types.is_string(kind) or pa.types.is_binary(kind),
}


def _as_text(given: pa.DataType) -> pa.DataType | None:
    # Of bytes some functions give bytes, and count them.
    printable = is_castable(given, pa.string()) and not pa.types.is_binary(given)
    return pa.string() if printable else None


def _as_date(given: pa.DataType) -> pa.DataType | None:
    return pa.date32() if is_time(given) or pa.types.is_string(given) else None


def _as_time(given: pa.DataType) -> pa.DataType | None:
    if pa.types.is_timestamp(given):
        return given
    return TIMESTAMP if is_time(given) or pa.types.is_string(given) else None


_WANTED: dict[str, Callable[[pa.DataType], pa.DataType | None]] = {
    TEXT: _as_text,
    DATE: _as_date,
    TIME: _as_time,
    FLOAT: lambda given: pa.float64() if is_number(given) else None,
}
"""What an argument becomes for a kind of parameter; None where it can't."""
_CASTS: dict[str, pa.DataType] = {
    "string": pa.string(),
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "to_date": pa.date32(),
    "timestamp": TIMESTAMP,
    "to_timestamp": TIMESTAMP,
}
_FORMS: dict[tuple[str, int], Callable[..., Expression]] = {
    ("and", -1): _connective("and"),
    ("or", -1): _connective("or"),
    ("coalesce", -1): _coalesce,
    ("if", 3): lambda test, yes, no: case([(test, yes)], no),
    ("nullif", 2): lambda one, two: case([(call("=", one, two), null())], one),
    ("isnotnull", 1): lambda operand: call("not", call("is null", operand)),
    ("date_trunc", 2): lambda unit, time: _fold(_call("date_trunc", (time, unit))),
    **{(name, 1): _cast_to(kind) for name, kind in _CASTS.items()},
}
"""What is built from other parts, by name and number of arguments; -1 for any."""


def _fold(expression: Expression) -> Expression:
    """The constant that an expression over constants is; itself where that is an error."""
    if not all(isinstance(child, Literal) for child in children(expression)):
        return expression
    try:
        return Literal(compute(expression, ONE_ROW)[0])
    except pa.ArrowException:
        return expression


def _unsupported(part: str) -> InvalidInputError:
    return InvalidInputError(
        f"The expression has {part}, which is not supported.",
        found=part,
        remedy="Write it without; the guide on expressions lists what there is.",
    )
