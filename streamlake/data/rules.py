"""What a table demands of each row besides types: constraints, invariants, generated columns.

Computed from the table's own SQL (PROTOCOL.md, "CHECK Constraints", "Column Invariants", "Generated
Columns"), and the lengths of Spark's char and varchar, which are strings to Delta. Tables without
any never come here, so that they never load the parser of SQL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from streamlake.data.conform import Fill, Tabular, arrow_form, conform, conform_parts
from streamlake.data.predicates import (
    Expression,
    cast_to,
    columns_read,
    condition,
    evaluate,
    expression,
    same_as_column,
)
from streamlake.errors import (
    ConstraintViolationError,
    InvalidInputError,
    SchemaMismatchError,
    UnsupportedFeatureError,
)
from streamlake.protocol.properties import constraint_name, is_constraint
from streamlake.protocol.schema import field_metadata, schema_from_json
from streamlake.protocol.schema.codec import dotted
from streamlake.protocol.schema.references import GENERATION_EXPRESSION, INVARIANTS
from streamlake.protocol.schema.walk import struct_fields

CHAR_OR_VARCHAR = "__CHAR_VARCHAR_TYPE_STRING"
"""Key of a column's metadata: the type that Spark made it with."""
_CHAR_OR_VARCHAR = re.compile(r"(?:var)?char\(([0-9]{1,9})\)")
_SHOWN_CHARACTERS = 200
"""How much of an offending row is shown."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A condition that must be true for each row; null is not enough."""

    name: str
    """What it is and what it is called."""
    sql: str
    """As the table has it."""
    condition: Expression

    def check(self, rows: pa.Table) -> None:
        """Refuse rows that break it.

        Raises:
            ConstraintViolationError: Naming the rule and the first row that breaks it.
        """
        try:
            holds: Any = evaluate(self.condition, rows)
        except InvalidInputError as error:
            raise ConstraintViolationError(
                f"The {self.name} can't be computed for every row.",
                found=f"{self.sql}: {error.found}",
                remedy="Correct or drop those rows; nothing of this data was written.",
            ) from error
        broken: Any = pc.invert(pc.coalesce(holds, pa.scalar(value=False)))
        count = int(pc.sum(broken).as_py() or 0)
        if count:
            first = pc.index(broken, pa.scalar(value=True)).as_py()
            row = rows.select(columns_read(self.condition)).slice(first, 1).to_pylist()[0]
            raise ConstraintViolationError(
                f"The data breaks the {self.name}.",
                found=f"{self.sql} is not true for {count} of {rows.num_rows} rows, "
                f"the first with {_shown(row)}",
                remedy="Correct or drop those rows; nothing of this data was written.",
            )


@dataclass(frozen=True, slots=True)
class TableRules:
    """All rules of a table."""

    schema: pa.Schema
    rules: tuple[Rule, ...]
    generated: Mapping[str, Expression]
    """By column what it is computed from where the data does not bring it."""

    def conform_parts(self, data: Tabular, *, fill: Fill) -> Iterator[pa.Table]:
        """The data brought to the table's schema, generated columns computed, all rules kept.

        Args:
            data: As ``conform.conform_parts``.
            fill: As ``conform.conform_parts``.

        Raises:
            StreamlakeError: As ``conform.conform_parts``.
            ConstraintViolationError: A row breaks a rule.
        """
        form = arrow_form(data)
        absent = [name for name in self.generated if name not in form.schema.names]
        whole = self._completed(form, absent, fill=fill)
        for part in whole if absent else conform_parts(form, self.schema, fill=fill):
            self.check(part)
            yield part

    def check(self, rows: pa.Table) -> None:
        """Refuse rows of exactly the table's schema that break a rule.

        Raises:
            ConstraintViolationError: Naming the rule and the first row that breaks it.
        """
        for rule in self.rules:
            rule.check(rows)

    def _completed(self, data: Tabular, absent: list[str], *, fill: Fill) -> Iterator[pa.Table]:
        brought = pa.schema([field for field in self.schema if field.name not in absent])
        for name in absent:
            needed = [column for column in columns_read(self.generated[name]) if column in absent]
            if needed:
                raise SchemaMismatchError(
                    f"Column {name!r} is generated from column {needed[0]!r}, which is absent.",
                    found=f"columns {', '.join(brought.names)}",
                    remedy=f"Give column {needed[0]!r}.",
                )
        for part in conform_parts(data, brought, fill=fill):
            computed = {name: self._computed(name, part) for name in absent}
            columns = [
                computed[name] if name in computed else part.column(name)
                for name in self.schema.names
            ]
            whole = pa.Table.from_arrays(columns, names=self.schema.names)
            yield conform(whole, self.schema)

    def _computed(self, name: str, rows: pa.Table) -> pa.ChunkedArray[Any]:
        try:
            return evaluate(self.generated[name], rows)
        except InvalidInputError as error:
            raise ConstraintViolationError(
                f"The generated column {name!r} can't be computed for every row.",
                found=error.found,
                remedy="Correct those rows, or give the column; nothing was written.",
            ) from error


def has_rules(schema_json: str, configuration: Mapping[str, str]) -> bool:
    """Whether a table may have rules, told without reading any."""
    return (
        GENERATION_EXPRESSION in schema_json
        or INVARIANTS in schema_json
        or CHAR_OR_VARCHAR in schema_json
        or any(map(is_constraint, configuration))
    )


def table_rules(schema_json: str, configuration: Mapping[str, str]) -> TableRules:
    """The rules of a table; those of the same text are read once.

    Args:
        schema_json: ``metaData.schemaString``.
        configuration: The table's properties.

    Raises:
        UnsupportedFeatureError: A rule has a part that can't be computed here; both are named.
    """
    constraints = tuple(sorted(item for item in configuration.items() if is_constraint(item[0])))
    return _rules(schema_json, constraints)


def check_rule(name: str, sql: str, schema: pa.Schema) -> Rule:
    """A CHECK constraint that a table of that schema may be given.

    Raises:
        InvalidInputError: It is no condition over the table's columns, or has a part that is not
            supported.
    """
    return Rule(f"CHECK constraint {name!r}", sql, condition(sql, schema))


@lru_cache(maxsize=64)
def _rules(schema_json: str, constraints: tuple[tuple[str, str], ...]) -> TableRules:
    schema = schema_from_json(schema_json)
    found: list[Rule] = []
    for key, sql in constraints:
        name = constraint_name(key)
        with _Naming(f"CHECK constraint {name!r}", sql):
            found.append(check_rule(name, sql, schema))
    for path, sql in _invariants(schema):
        name = f"invariant of column {dotted(path)!r}"
        with _Naming(name, sql):
            found.append(Rule(name, sql, condition(sql, schema)))
    for column, kind, sql in _lengths(schema):
        found.append(Rule(f"type {kind} of column {column!r}", sql, condition(sql, schema)))
    generated: dict[str, Expression] = {}
    for field in schema:
        source = field_metadata(field).get(GENERATION_EXPRESSION)
        if source is None:
            continue
        name = f"generated column {field.name!r}"
        with _Naming(name, str(source)):
            value = expression(str(source), schema)
            generated[field.name] = cast_to(value, field.type)
            found.append(Rule(name, f"{field.name} <=> {source}", same_as_column(field, value)))
    return TableRules(schema, tuple(found), generated)


def _invariants(schema: pa.Schema) -> Iterator[tuple[tuple[str, ...], str]]:
    plain = set(_plain_paths(list(schema), ()))
    for path, field in struct_fields(schema):
        found = field_metadata(field)
        if INVARIANTS in found and path not in plain:
            raise _out_of_reach("invariant", path)
        if GENERATION_EXPRESSION in found and len(path) > 1:
            raise _out_of_reach("generation expression", path)
        if INVARIANTS in found:
            yield path, _invariant(found[INVARIANTS], path)


def _lengths(schema: pa.Schema) -> Iterator[tuple[str, str, str]]:
    """The columns that Spark made as char or varchar, with their types and what these demand.

    Delta knows strings alone; the type is in the metadata of the whole column.
    """
    for field in schema:
        kind = field_metadata(field).get(CHAR_OR_VARCHAR)
        if kind is None:
            continue
        match = _CHAR_OR_VARCHAR.fullmatch(str(kind))
        if match is None:
            raise UnsupportedFeatureError(
                f"The lengths of strings in column {field.name!r} can't be kept, so the table "
                "can't be written.",
                found=str(kind),
                remedy="Write to the table with the engine that made it.",
            )
        name = "`" + field.name.replace("`", "``") + "`"
        yield field.name, str(kind), f"{name} IS NULL OR length({name}) <= {match[1]}"


def _plain_paths(fields: list[pa.Field[Any]], above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The columns, and the fields that one comes to through structs alone."""
    for field in fields:
        yield (*above, field.name)
        if isinstance(field.type, pa.StructType):
            yield from _plain_paths(list(field.type), (*above, field.name))


def _out_of_reach(rule: str, path: tuple[str, ...]) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"The {rule} of field {dotted(path)!r} can't be kept, so the table can't be written.",
        found="a rule of a field inside of another type",
        remedy="Write to the table with the engine that made it.",
    )


class _Persisted(msgspec.Struct):
    expression: str


class _Invariant(msgspec.Struct):
    expression: _Persisted


def _invariant(text: object, path: tuple[str, ...]) -> str:
    try:
        return msgspec.json.decode(str(text), type=_Invariant).expression.expression
    except msgspec.DecodeError as error:
        raise UnsupportedFeatureError(
            f"The invariant of column {dotted(path)!r} can't be read, so it can't be kept.",
            found=f"{str(text)[:_SHOWN_CHARACTERS]!r} ({error})",
            remedy="Write to the table with the engine that made it.",
        ) from error


class _Naming:
    """Turns what is wrong with a rule's SQL into a refusal that names the rule."""

    def __init__(self, name: str, sql: str) -> None:
        self._name = name
        self._sql = sql

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, InvalidInputError):
            raise UnsupportedFeatureError(
                f"The {self._name} can't be computed here, so the table can't be written.",
                found=f"{self._sql}: {error.what}",
                remedy="Write to the table with the engine that made it, or drop the constraint "
                "there.",
            ) from error


def _shown(row: Mapping[str, object]) -> str:
    text = ", ".join(f"{name} = {value!r}" for name, value in row.items()) or "no columns"
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "..."
