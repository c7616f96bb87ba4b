"""Columns that data leave out, filled with their defaults (PROTOCOL.md, "Default Columns")."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import pyarrow as pa

from streamlake.clock import Clock
from streamlake.data.predicates.build import cast as cast_expression
from streamlake.data.predicates.evaluate import ONE_ROW, compute
from streamlake.data.predicates.predicate import expression
from streamlake.errors import InvalidInputError
from streamlake.protocol.schema import field_metadata, schema_from_json
from streamlake.protocol.schema.references import CURRENT_DEFAULT

_NO_COLUMNS = pa.schema([])
_NOW = re.compile(
    r"\s*(?:(current_timestamp|now)|(current_date|curdate))\s*(?:\(\s*\))?\s*", re.IGNORECASE
)
_TIME = pa.timestamp("us", "UTC")


@dataclass(frozen=True, slots=True)
class Defaults:
    """The default expressions of a table's columns, and the time that they may ask for."""

    by_column: Mapping[str, str]
    """SQL by the name of each column that has one."""
    schema: pa.Schema
    clock: Clock

    def fill(self, rows: pa.Table) -> pa.Table:
        """``rows`` with every column that they leave out and that has a default.

        What they give stays, null too. Only defaults that are needed are computed.

        Raises:
            InvalidInputError: The default has a part that is not supported, or is not of the
                column's type.
        """
        for name, sql in self.by_column.items():
            if name not in rows.column_names:
                kind = self.schema.field(name).type
                value = default_value(name, sql, kind, now_ms=self.clock.now_ms)
                column: Any = cast("Any", pa.repeat)(value, rows.num_rows)  # stubs: no Scalar[Any]
                rows = rows.append_column(name, column)
        return rows


def defaults_of(schema_json: str, clock: Clock) -> Defaults:
    """The defaults of a table's columns."""
    return Defaults(_expressions(schema_json), schema_from_json(schema_json), clock)


@lru_cache(maxsize=256)
def _expressions(schema_json: str) -> Mapping[str, str]:
    found = {field.name: field_metadata(field) for field in schema_from_json(schema_json)}
    return {
        name: str(metadata[CURRENT_DEFAULT])
        for name, metadata in found.items()
        if CURRENT_DEFAULT in metadata
    }


def default_value(
    column: str, sql: str, kind: pa.DataType, *, now_ms: Callable[[], int]
) -> pa.Scalar[Any]:
    """What a default expression comes to, in the column's type.

    Args:
        column: The column's name, for errors.
        sql: An expression without columns; also the current timestamp or date.
        kind: The column's type.
        now_ms: The time.

    Raises:
        InvalidInputError: It has a part that is not supported, or is of another type.
    """
    now = _NOW.fullmatch(sql)
    try:
        if now is not None:
            time = pa.scalar(now_ms() * 1000, pa.int64()).cast(_TIME)
            value = time if now[1] else time.cast(pa.date32(), safe=False)
            return value.cast(kind, safe=False)
        values: Any = compute(cast_expression(expression(sql, _NO_COLUMNS), kind), ONE_ROW)
    except (InvalidInputError, pa.ArrowException) as error:
        raise InvalidInputError(
            f"The default of column {column!r} can't be computed.",
            found=f"{sql}: {_told(error)}",
            remedy="Give the column's values with the data, or change its default.",
        ) from error
    return cast("pa.Scalar[Any]", values[0])


def _told(error: Exception) -> str:
    if not isinstance(error, InvalidInputError):
        return str(error)
    return f"{error.what} ({error.found})" if error.found else error.what
