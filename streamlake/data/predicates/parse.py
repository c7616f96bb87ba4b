"""SQL text, in Spark's dialect, to an expression tree.

The one module that imports sqlglot, which takes longer than all of streamlake: whoever needs it
loads it through ``predicates.parse``, at the first expression. Every part of what the parser gives
is either known here or refused by name; so are subqueries, aggregates and whatever answers
differently from call to call (``current_date``, ``rand``).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from typing import Any

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from streamlake.data.predicates import build
from streamlake.data.predicates.coercion import (
    MAX_DECIMAL_DIGITS,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    decimal_literal,
    integer_literal,
)
from streamlake.data.predicates.tree import Column, Expression, Literal
from streamlake.errors import InvalidInputError, StreamlakeError
from streamlake.protocol.schema.codec import dotted

MAX_SQL_CHARACTERS = 100_000
"""How long an expression may be."""
MAX_SQL_DEPTH = 100
"""How deep its parts may lie inside of one another; a chain of AND or OR counts once."""


_Base: Any = Spark.Parser


_PARSER_ERRORS = (SqlglotError, ArithmeticError, ValueError, LookupError, AttributeError, TypeError)
"""What comes out of the parser: on odd input also what it did not mean to raise."""
_MISSING = re.compile(r"Required keyword: '\w+' missing for <class '[\w.]+'>")
"""How the parser says that something ends too early, in the names of its own classes."""


class _Dialect(Spark):
    """Spark's SQL with functions as they are written: what they mean is for ``build`` to say."""

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES = ["\\", "'", '"']  # noqa: RUF012 - a doubled quote is one, since Spark 4

    class Parser(_Base):  # type: ignore[misc]
        FUNCTIONS: dict[str, Any] = {}  # noqa: RUF012 - as the parser declares it
        FUNCTION_PARSERS = {  # noqa: RUF012 - as the parser declares it
            name: parser
            for name, parser in _Base.FUNCTION_PARSERS.items()
            if name in {"CAST", "TRY_CAST"}
        }


@lru_cache(maxsize=256)
def parse(sql: str, schema: pa.Schema) -> Expression:
    """The expression that ``sql`` is over columns of ``schema``.

    Names are found whatever their case; ``a.b`` is the field b of the struct a.

    Raises:
        InvalidInputError: It is no expression, has a part that is not supported, names a column
            that is not there, or puts types together that do not go together. ``where`` is the SQL.
    """
    try:
        return _Reader(schema).expression(_parsed(sql), 0)
    except InvalidInputError as error:
        error.where = f"expression {sql[:200]!r}"
        raise


def _parsed(sql: str) -> exp.Expr:
    if len(sql) > MAX_SQL_CHARACTERS:
        raise _too_large(f"{len(sql)} characters; MAX_SQL_CHARACTERS is {MAX_SQL_CHARACTERS}")
    try:
        tokens = _Dialect().tokenize(sql)
        found = sqlglot.parse_one(sql, dialect=_Dialect)
    except _PARSER_ERRORS as error:
        raise InvalidInputError(
            "The expression is no SQL expression.",
            found=_MISSING.sub("a part is missing", str(error).split("\n", maxsplit=1)[0])[:200],
            remedy="Correct it; Spark's dialect is expected.",
        ) from error
    except RecursionError:
        raise _too_large(f"parts nested deeper than {MAX_SQL_DEPTH}") from None
    for token, following in pairwise(tokens):
        # The parser forgets the length, which means something.
        if token.text.lower() in {"char", "varchar"} and following.text == "(":
            raise _unsupported(f"{token.text.lower()}(n)")
    return found


class _Reader:
    """Turns sqlglot's tree into ours."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def expression(self, node: exp.Expr, depth: int) -> Expression:
        if depth > MAX_SQL_DEPTH:
            raise _too_large(f"parts nested deeper than {MAX_SQL_DEPTH}")
        read = _READERS.get(type(node))
        if read is None:
            raise _unsupported(_named(node))
        return read(self, node, depth + 1)

    def part(self, node: exp.Expr, depth: int, name: str = "this") -> Expression:
        return self.expression(node.args[name], depth)

    def parts(self, node: exp.Expr, depth: int, name: str = "expressions") -> list[Expression]:
        return [self.expression(part, depth) for part in node.args.get(name) or ()]

    def column(self, node: exp.Column | exp.Dot) -> Expression:
        names = [part.name for part in node.parts if isinstance(part, exp.Identifier)]
        if len(names) != len(node.parts):
            raise _unsupported(_named(node))
        kind: Any = self._schema
        path: list[str] = []
        for name in names:
            field = _found(name, kind)
            if field is None:
                raise InvalidInputError(
                    f"The table has no column {dotted(tuple(names))!r}.",
                    found=f"{', '.join(f.name for f in kind) if path else ', '.join(kind.names)}"
                    if isinstance(kind, pa.Schema | pa.StructType)
                    else f"{dotted(tuple(path))!r} of the type {kind}",
                    remedy="Use the columns that the table has; of strings the quotes are single.",
                )
            path.append(field.name)
            kind = field.type
        return Column(tuple(path), kind)


def _found(name: str, kind: Any) -> pa.Field[Any] | None:  # noqa: ANN401 - a schema or a type
    if not isinstance(kind, pa.Schema | pa.StructType):
        return None
    folded = [field for field in kind if field.name.lower() == name.lower()]
    exact = [field for field in folded if field.name == name]
    return next(iter(exact or folded), None)


# -------------------------------------------------------------------------------------------------
# One function for each kind of part

_Read = Callable[[_Reader, Any, int], Expression]


def _checked(read: _Read, *known: str) -> _Read:
    """The same, refusing parts of the node that it would leave out."""

    def checked(reader: _Reader, node: exp.Expr, depth: int) -> Expression:
        for name, value in node.args.items():
            if value and name not in known:
                raise _unsupported(f"{name!r} of {_named(node)}")
        return read(reader, node, depth)

    return checked


def _binary(name: str, *, swapped: bool = False, negated: bool = False) -> _Read:
    def read(reader: _Reader, node: exp.Expr, depth: int) -> Expression:
        sides = [reader.part(node, depth), reader.part(node, depth, "expression")]
        found = build.call(name, *(reversed(sides) if swapped else sides))
        return build.call("not", found) if negated else found

    return _checked(read, "this", "expression", "typed", "safe")


def _chain(name: str) -> _Read:
    def read(reader: _Reader, node: exp.Connector, depth: int) -> Expression:
        # A long chain leans to the left: its parts are taken in one go, not by recursion.
        return build.call(name, *(reader.expression(part, depth) for part in node.flatten()))

    return _checked(read, "this", "expression")


def _unary(name: str) -> _Read:
    return _checked(lambda reader, node, depth: build.call(name, reader.part(node, depth)), "this")


def _column(reader: _Reader, node: exp.Column | exp.Dot, _: int) -> Expression:
    return reader.column(node)


def _number(_: _Reader, node: exp.Literal, __: int) -> Expression:
    text = node.name
    if node.is_string:
        return Literal(pa.scalar(text, pa.string()))
    if "e" in text.lower():
        return build.cast(Literal(pa.scalar(text, pa.string())), pa.float64())
    return Literal(integer_literal(text) if text.isdecimal() else decimal_literal(text))


def _like(name: str) -> _Read:
    def read(reader: _Reader, node: exp.Expr, depth: int, escape: str = "\\") -> Expression:
        if isinstance(node, exp.Escape):
            mark = node.expression
            inner = node.this
            if type(inner) not in {exp.Like, exp.ILike} or len(mark.name) != 1:
                raise _unsupported(_named(node))
            return _READERS_OF_LIKE[type(inner)](reader, inner, depth, mark.name)
        for part, value in node.args.items():
            if value and part not in {"this", "expression", "negate"}:
                raise _unsupported(f"{part!r} of {_named(node)}")
        found = build.call(
            name,
            reader.part(node, depth),
            reader.part(node, depth, "expression"),
            Literal(pa.scalar(escape)),
        )
        return build.call("not", found) if node.args.get("negate") else found

    return read


def _in(reader: _Reader, node: exp.In, depth: int) -> Expression:
    choices = reader.parts(node, depth)
    if not choices:
        raise _unsupported("IN without values")
    return build.choice(reader.part(node, depth), choices)


def _between(reader: _Reader, node: exp.Between, depth: int) -> Expression:
    value = reader.part(node, depth)
    low, high = reader.part(node, depth, "low"), reader.part(node, depth, "high")
    return build.call("and", build.call("<=", low, value), build.call("<=", value, high))


def _is(reader: _Reader, node: exp.Is, depth: int) -> Expression:
    value = reader.part(node, depth)
    if isinstance(node.expression, exp.Null):
        return build.call("is null", value)
    if isinstance(node.expression, exp.Boolean):
        return build.call("is true" if node.expression.this else "is false", value)
    raise _unsupported(_named(node))


def _case(reader: _Reader, node: exp.Case, depth: int) -> Expression:
    operand = reader.part(node, depth) if node.args.get("this") else None
    branches = []
    for branch in node.args["ifs"]:
        condition = reader.part(branch, depth)
        if operand is not None:
            condition = build.call("=", operand, condition)
        branches.append((condition, reader.part(branch, depth, "true")))
    otherwise = reader.part(node, depth, "default") if node.args.get("default") else build.null()
    return build.case(branches, otherwise)


def _if(reader: _Reader, node: exp.If, depth: int) -> Expression:
    otherwise = reader.part(node, depth, "false") if node.args.get("false") else build.null()
    return build.case([(reader.part(node, depth), reader.part(node, depth, "true"))], otherwise)


def _cast(reader: _Reader, node: exp.Cast, depth: int) -> Expression:
    kind = _type(node.to)
    lenient = bool(node.args.get("safe"))
    return build.cast(reader.part(node, depth), kind, lenient=lenient)


def _type(node: exp.DataType) -> pa.DataType:
    kind = _TYPES.get(node.this)
    numbers = [int(part.name) for part in node.expressions if part.name.isdecimal()]
    if node.this == exp.DataType.Type.DECIMAL and len(numbers) == len(node.expressions):
        precision, scale = (*numbers, 10, 0)[:2] if not numbers else (*numbers, 0)[:2]
        if 0 < precision <= MAX_DECIMAL_DIGITS and 0 <= scale <= precision:
            return pa.decimal128(precision, scale)
    if kind is None or node.expressions:
        raise _unsupported(f"the type {node.sql()}")
    return kind


def _anonymous(reader: _Reader, node: exp.Anonymous, depth: int) -> Expression:
    return build.call(node.name, *reader.parts(node, depth))


def _concat(reader: _Reader, node: exp.Concat, depth: int) -> Expression:
    return build.call("concat", *reader.parts(node, depth))


def _hex(_: _Reader, node: exp.HexString, __: int) -> Expression:
    try:
        return Literal(pa.scalar(bytes.fromhex(node.name), pa.binary()))
    except ValueError:
        raise _unsupported(f"the bytes {node.name[:40]!r}") from None


def _constant(value: object, kind: pa.DataType) -> _Read:
    return lambda *_: Literal(pa.scalar(value, kind))


_READERS_OF_LIKE: dict[type[exp.Expr], Callable[..., Expression]] = {
    exp.Like: _like("like"),
    exp.ILike: _like("ilike"),
}
_READERS: dict[type[exp.Expr], _Read] = {
    **_READERS_OF_LIKE,
    exp.Escape: _like("like"),
    exp.Column: _checked(_column, "this", "table", "db", "catalog"),
    exp.Dot: _checked(_column, "this", "expression"),
    exp.Paren: _checked(lambda reader, node, depth: reader.part(node, depth), "this"),
    exp.Literal: _number,
    exp.RawString: lambda _, node, __: Literal(pa.scalar(node.name, pa.string())),
    exp.HexString: _hex,
    exp.Boolean: lambda _, node, __: Literal(pa.scalar(bool(node.this))),
    exp.Null: _constant(None, pa.null()),
    exp.And: _chain("and"),
    exp.Or: _chain("or"),
    exp.Not: _unary("not"),
    exp.Neg: _unary("negative"),
    exp.EQ: _binary("="),
    exp.NEQ: _binary("=", negated=True),
    exp.LT: _binary("<"),
    exp.LTE: _binary("<="),
    exp.GT: _binary("<", swapped=True),
    exp.GTE: _binary("<=", swapped=True),
    exp.NullSafeEQ: _binary("<=>"),
    exp.NullSafeNEQ: _binary("<=>", negated=True),
    exp.Add: _binary("+"),
    exp.Sub: _binary("-"),
    exp.Mul: _binary("*"),
    exp.Div: _binary("/"),
    exp.IntDiv: _binary("div"),
    exp.Mod: _binary("%"),
    exp.DPipe: _binary("concat"),
    exp.RegexpLike: _binary("rlike"),
    exp.In: _checked(_in, "this", "expressions"),
    exp.Between: _checked(_between, "this", "low", "high"),
    exp.Is: _checked(_is, "this", "expression"),
    exp.Case: _checked(_case, "this", "ifs", "default"),
    exp.If: _checked(_if, "this", "true", "false"),
    exp.Cast: _checked(_cast, "this", "to", "safe"),
    exp.TryCast: _checked(_cast, "this", "to", "safe"),
    exp.Anonymous: _checked(_anonymous, "this", "expressions"),
    exp.Concat: _checked(_concat, "expressions", "safe"),
}
_TYPES: dict[Any, pa.DataType] = {
    exp.DataType.Type.TEXT: pa.string(),
    exp.DataType.Type.BOOLEAN: pa.bool_(),
    exp.DataType.Type.TINYINT: pa.int8(),
    exp.DataType.Type.SMALLINT: pa.int16(),
    exp.DataType.Type.INT: pa.int32(),
    exp.DataType.Type.BIGINT: pa.int64(),
    exp.DataType.Type.FLOAT: pa.float32(),
    exp.DataType.Type.DOUBLE: pa.float64(),
    exp.DataType.Type.BINARY: pa.binary(),
    exp.DataType.Type.DATE: pa.date32(),
    exp.DataType.Type.TIMESTAMP: TIMESTAMP,
    exp.DataType.Type.TIMESTAMPTZ: TIMESTAMP,
    exp.DataType.Type.TIMESTAMPLTZ: TIMESTAMP,
    exp.DataType.Type.TIMESTAMPNTZ: TIMESTAMP_NTZ,
}


def _named(node: exp.Expr) -> str:
    """What a part is called and how it was written."""
    return f"{type(node).__name__} ({node.sql(dialect='spark')[:80]})"


def _unsupported(part: str) -> StreamlakeError:
    return InvalidInputError(
        f"The expression has {part}, which is not supported.",
        found=part,
        remedy="Write it without; the guide on expressions lists what there is.",
    )


def _too_large(found: str) -> StreamlakeError:
    return InvalidInputError(
        "The expression is too large.", found=found, remedy="Split it into several."
    )
