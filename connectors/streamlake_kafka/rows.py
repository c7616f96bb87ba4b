"""Rows become messages: keys, values and headers, as bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import repeat
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

import streamlake as sl
from streamlake_kafka.schema import HEADERS

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
        """Keys, values and headers of the rows, in order; all are converted before the first.

        Raises:
            SchemaMismatchError: A column is not there, or its type can't be what it is named for.
            InvalidInputError: A header without a key, or a row that JSON can't hold.
        """
        keys = _bytes(table, self.key) if self.key is not None else repeat(None)
        values = _bytes(table, self.value) if self.value is not None else _json(table)
        headers: Iterable[Headers | None] = repeat(None)
        if self.headers is not None:
            headers = _headers(table, self.headers)
        return zip(keys, values, headers, strict=False)  # one of them ends, the others may not


def _column(table: pa.Table, name: str) -> pa.ChunkedArray[Any]:
    if table.column_names.count(name) != 1:
        many = "more than one" if name in table.column_names else "no"
        raise sl.SchemaMismatchError(
            f"There is {many} column {name!r} to make messages of.",
            found=", ".join(table.column_names),
            remedy="Name a column that is there, once.",
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


def _json(table: pa.Table) -> list[bytes]:
    """Each row as a JSON object: bytes in base64, times in ISO 8601, decimals as text."""
    try:
        return list(map(msgspec.json.encode, table.to_pylist()))
    except (TypeError, ValueError, OverflowError) as error:
        raise sl.InvalidInputError(
            "A row can't be sent as a JSON object.",
            found=str(error),
            remedy="Convert the column before, or name a column of bytes or text (value=...).",
        ) from error


def _headers(table: pa.Table, name: str) -> list[Headers | None]:
    """The headers of each row; None where it has none."""
    column = _column(table, name)
    found: pa.ChunkedArray[Any] | None = None
    if _has_pairs(column.type):
        with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
            found = column.cast(HEADERS)
    if found is None:
        raise sl.SchemaMismatchError(
            f"The column {name!r} can't be the headers of messages.",
            found=str(column.type),
            remedy=f"Make it a column of {HEADERS}, as kafka_schema() has it.",
        )
    if pc.struct_field(pc.list_flatten(found), "key").null_count:
        raise sl.InvalidInputError(
            f"A header in the column {name!r} has no key.",
            remedy="Give it one, or leave it out: Kafka knows no header without a key.",
        )
    return [
        None if pairs is None else [(pair["key"], pair["value"]) for pair in pairs]
        for pairs in found.to_pylist()
    ]


def _has_pairs(kind: pa.DataType) -> bool:
    """Whether a type holds lists of ``key`` and ``value``, be it a map, or nothing but nulls."""
    if pa.types.is_map(kind) or pa.types.is_null(kind):
        return True
    pair = getattr(kind, "value_type", None)
    return isinstance(pair, pa.StructType) and {"key", "value"} <= {field.name for field in pair}
