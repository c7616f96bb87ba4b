"""A table's columns as people write them: ``id long not null, tags array<string>``."""

from __future__ import annotations

import re
from typing import Any, NoReturn

import pyarrow as pa

from streamlake.errors import InvalidInputError

MAX_DEPTH = 32
"""How deep types may nest."""
MAX_DECIMAL_PRECISION = 38

TYPES: dict[str, pa.DataType] = {
    "string": pa.string(),
    "long": pa.int64(),
    "bigint": pa.int64(),
    "integer": pa.int32(),
    "int": pa.int32(),
    "short": pa.int16(),
    "smallint": pa.int16(),
    "byte": pa.int8(),
    "tinyint": pa.int8(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "bool": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
"""Type names that take no parameters."""

_TOKEN = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([\w.$-]+)|([<>(),:])|(\S))")


def parse_columns(text: str) -> pa.Schema:
    """The schema that ``text`` describes: ``name type [NOT NULL], ...``.

    Types are Spark SQL's: those in ``TYPES``, ``decimal(p, s)``, ``array<type>``,
    ``map<type, type>`` and ``struct<name: type [NOT NULL], ...>``. A name with other than letters,
    digits and ``_ . $ -`` stands in backquotes.

    Raises:
        InvalidInputError: The text is none of that; ``found`` shows where.
    """
    parser = _Parser(text)
    fields = parser.fields(separator=None)
    parser.expect_end()
    return pa.schema(fields)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._depth = 0

    def fields(self, *, separator: str | None) -> list[pa.Field[Any]]:
        found = [self._field(separator)]
        while self._take(","):
            found.append(self._field(separator))
        return found

    def expect_end(self) -> None:
        if self._peek()[1] != "":
            self._refuse("a comma or the end")

    def _field(self, separator: str | None) -> pa.Field[Any]:
        name = self._name()
        if separator is not None:
            self._take(separator)
        kind = self._type()
        required = self._take("not")
        if required and not self._take("null"):
            self._refuse("NULL after NOT")
        return pa.field(name, kind, nullable=not required)

    def _name(self) -> str:
        is_name, token = self._peek()
        if not is_name:
            self._refuse("a column's name")
        self._advance()
        return token

    def _type(self) -> pa.DataType:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._refuse(f"at most {MAX_DEPTH} levels of nesting")
        kind = self._type_at_depth()
        self._depth -= 1
        return kind

    def _type_at_depth(self) -> pa.DataType:
        word = self._peek()[1].lower()
        simple = TYPES.get(word)
        if simple is not None:
            self._advance()
            return simple
        nested = {"array": self._array, "map": self._map, "struct": self._struct}.get(word)
        if word == "decimal":
            self._advance()
            return self._decimal()
        if nested is None:
            self._refuse(
                "a type: " + ", ".join([*TYPES, "decimal(p, s)", "array<>", "map<>", "struct<>"])
            )
        self._advance()
        self._expect("<")
        kind = nested()
        self._expect(">")
        return kind

    def _array(self) -> pa.DataType:
        return pa.list_(pa.field("element", self._type()))

    def _map(self) -> pa.DataType:
        key = self._type()
        self._expect(",")
        return pa.map_(key, self._type())

    def _struct(self) -> pa.DataType:
        return pa.struct(self.fields(separator=":"))

    def _decimal(self) -> pa.DataType:
        if not self._take("("):
            return pa.decimal128(10, 0)
        precision = self._number()
        scale = self._number() if self._take(",") else 0
        self._expect(")")
        if not 1 <= precision <= MAX_DECIMAL_PRECISION or scale > precision:
            self._refuse(f"decimal(1 to {MAX_DECIMAL_PRECISION}, at most as many decimals)")
        return pa.decimal128(precision, scale)

    def _number(self) -> int:
        token = self._peek()[1]
        if not re.fullmatch("[0-9]{1,4}", token):
            self._refuse("a number")
        self._advance()
        return int(token)

    def _peek(self) -> tuple[bool, str]:
        """Whether the next token can be a name, and the token; ``(False, "")`` at the end."""
        match = _TOKEN.match(self._text, self._position)
        if match is None:
            return False, ""
        quoted, word, sign, other = match.groups()
        if quoted is not None:
            return True, quoted.replace("``", "`")
        return (True, word) if word is not None else (False, sign or other)

    def _advance(self) -> None:
        match = _TOKEN.match(self._text, self._position)
        self._position = len(self._text) if match is None else match.end()

    def _take(self, token: str) -> bool:
        if self._peek()[1].lower() != token:
            return False
        self._advance()
        return True

    def _expect(self, token: str) -> None:
        if not self._take(token):
            self._refuse(f"{token!r}")

    def _refuse(self, expected: str) -> NoReturn:
        rest = self._text[self._position : self._position + 40].strip()
        raise InvalidInputError(
            f"The columns can't be read: expected {expected}.",
            where=f"position {self._position} of {self._text!r}",
            found=repr(rest) if rest else "the end",
            remedy='Write columns as "id long not null, name string, tags array<string>".',
        )
