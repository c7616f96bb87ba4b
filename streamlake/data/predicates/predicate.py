"""Conditions as users give them: SQL, checked against a table, asked of files and of rows."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from streamlake.arguments import check_text
from streamlake.data.predicates.build import boolean, call, cast
from streamlake.data.predicates.evaluate import evaluate
from streamlake.data.predicates.selection import select_files
from streamlake.data.predicates.tree import Column, Expression, columns_of
from streamlake.data.table_columns import TableColumns, table_columns
from streamlake.errors import InvalidInputError, StreamlakeError
from streamlake.log.files import FileList
from streamlake.protocol import AddFile, Metadata, Protocol, field_metadata

if TYPE_CHECKING:
    from streamlake.log import ReadPredicate

COLLATIONS = "__COLLATIONS"
"""Key of a column's metadata where Spark was told to compare its strings by a collation."""
_ANY_MAPPING = Protocol(3, 7, ("columnMapping",), ("columnMapping",))
"""Has names looked up as the table's properties say, for whoever has no protocol at hand."""


def expression(sql: str, schema: pa.Schema) -> Expression:
    """An SQL expression over a table's columns.

    The parser is loaded here, at the first expression: that takes longer than to import streamlake.

    Raises:
        InvalidInputError: It is none, or has a part that is not supported, which is named.
    """
    check_text("An expression", sql, remedy="Write SQL, as in \"price < 10 AND item = 'nut'\".")
    parser: Any = importlib.import_module("streamlake.data.predicates.parse")
    found: Expression = parser.parse(sql, schema)
    for path in columns_of(found):
        if COLLATIONS in field_metadata(schema.field(path[0])):
            raise InvalidInputError(
                f"Column {path[0]!r} has a collation, by which strings can't be compared here.",
                where=f"expression {sql[:200]!r}",
                found="strings are compared byte by byte",
                remedy="Leave the column out of the expression, or ask an engine that knows the "
                "collation.",
            )
    return found


def condition(sql: str, schema: pa.Schema) -> Expression:
    """An SQL expression that is true, false or null for each row.

    Raises:
        InvalidInputError: As ``expression``, or it is no condition.
    """
    found = expression(sql, schema)
    try:
        return boolean(found, "A condition")
    except InvalidInputError as error:
        error.where = f"expression {sql[:200]!r}"
        raise


def cast_to(found: Expression, kind: pa.DataType) -> Expression:
    """The value of an expression in the type of the column that it is for.

    Raises:
        InvalidInputError: There is no such cast.
    """
    return cast(found, kind)


def same_as_column(field: pa.Field[Any], found: Expression) -> Expression:
    """Whether a column has the value of an expression; null is the same as null.

    Raises:
        InvalidInputError: Their types can't be compared.
    """
    return call("<=>", Column((field.name,), field.type), found)


def matching_files(files: FileList, sql: str, table: TableColumns) -> FileList:
    """The files that may hold a row for which the condition is true, in their order.

    Raises:
        InvalidInputError: As ``condition``.
    """
    return select_files(files, condition(sql, table.schema), table)


def matching_rows(rows: pa.Table, found: Expression) -> pa.Table:
    """The rows for which a condition is true.

    Args:
        rows: With the columns that it reads.
        found: The condition.

    Raises:
        InvalidInputError: It can't be computed for a row.
    """
    return rows.filter(evaluate(found, rows))


def columns_read(found: Expression) -> list[str]:
    """The columns of the table that an expression reads."""
    return list(dict.fromkeys(path[0] for path in columns_of(found)))


@dataclass(frozen=True, slots=True)
class SqlPredicate:
    """Which rows a transaction read, as SQL; see ``ReadPredicate``. Made by ``read_predicate``."""

    sql: str
    """The condition."""

    def may_match(self, files: Sequence[AddFile], metadata: Metadata) -> bool:
        """Whether a row of any of ``files`` may satisfy it; True when in doubt.

        In doubt is also a table that the condition does not fit any more.
        """
        if not files:
            return False
        listed = files if isinstance(files, FileList) else FileList.from_actions(files)
        try:
            table = table_columns(_ANY_MAPPING, metadata)
            return bool(len(matching_files(listed, self.sql, table)))
        except StreamlakeError:
            return True


def read_predicate(sql: str, metadata: Metadata) -> ReadPredicate:
    """The predicate of a transaction that read the rows for which ``sql`` is true.

    Raises:
        InvalidInputError: ``sql`` is no condition over the table's columns, or has a part that is
            not supported, which is named.
    """
    condition(sql, table_columns(_ANY_MAPPING, metadata).schema)
    return SqlPredicate(sql)
