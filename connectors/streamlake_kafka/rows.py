"""Rows become messages: keys, values and headers, as bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa

import streamlake as sl

Headers: TypeAlias = list[tuple[str, str | bytes | None]]
Row: TypeAlias = tuple[bytes | None, bytes | None, Headers | None]
"""Key, value and headers of a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFormat:
    """Which columns become what of a message."""

    key: str | None = None
    """The column of keys; None: messages without keys."""
    value: str | None = None
    """The column of values; None: each whole row as a JSON object."""
    headers: str | None = None
    """A column of headers as ``kafka_schema`` has it; None: no headers."""

    def rows(self, table: pa.Table) -> Iterator[Row]:
        """Keys, values and headers of the rows, in order.

        Raises:
            SchemaMismatchError: A column is not there, or is neither bytes nor castable to text.
        """
        keys = _bytes(table, self.key) if self.key is not None else repeat(None)
        values = _bytes(table, self.value) if self.value is not None else _json(table)
        headers = _headers(table, self.headers) if self.headers is not None else repeat(None)
        return zip(keys, values, headers, strict=False)  # one of them ends, the others may not


def _column(table: pa.Table, name: str) -> pa.ChunkedArray[Any]:
    if name not in table.column_names:
        raise sl.SchemaMismatchError(
            f"There is no column {name!r} to make messages of.",
            found=", ".join(table.column_names),
            remedy="Name a column that is there.",
        )
    return table[name]


def _bytes(table: pa.Table, name: str) -> Sequence[bytes | None]:
    """A column as bytes: bytes as they are, text as UTF-8, numbers and times as text."""
    column = _column(table, name)
    try:
        if not _is_binary(column.type):
            column = column.cast(pa.large_string())
        found: list[bytes | None] = column.cast(pa.large_binary()).to_pylist()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise sl.SchemaMismatchError(
            f"The column {name!r} can't be the key or the value of a message.",
            found=str(column.type),
            remedy="Choose a column of bytes or text, or send whole rows as JSON (value=None).",
        ) from error
    return found


def _is_binary(kind: pa.DataType) -> bool:
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind)


def _json(table: pa.Table) -> Iterator[bytes]:
    """Each row as a JSON object: bytes in base64, times in ISO 8601, decimals as text."""
    return map(msgspec.json.encode, table.to_pylist())


def _headers(table: pa.Table, name: str) -> Iterator[Headers | None]:
    for pairs in _column(table, name).to_pylist():
        yield None if pairs is None else [(pair["key"], pair["value"]) for pair in pairs]
