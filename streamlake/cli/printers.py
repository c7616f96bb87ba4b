"""Rows on stdout: JSON lines, CSV, or a drawn table."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import BinaryIO, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from streamlake.cli import terminal
from streamlake.cli.json_text import BinaryText, Values, json_lines, plain_text, slices, text_of


class OutputFormat(StrEnum):
    """How rows are printed."""

    JSONL = "jsonl"
    CSV = "csv"
    TABLE = "table"


class Printer(Protocol):
    """Prints rows; each call is out of this process when it returns."""

    def print(self, rows: pa.Table) -> None:
        """Print ``rows`` in order."""


class JsonPrinter:
    """One JSON object a line."""

    def __init__(self, out: BinaryIO, binary: BinaryText) -> None:
        self._out = out
        self._binary = binary

    def print(self, rows: pa.Table) -> None:
        """Print ``rows`` in order."""
        for lines in json_lines(rows, binary=self._binary):
            self._out.write(lines)
        self._out.flush()


class CsvPrinter:
    """A header once, then a line a row; nested values as JSON, a null as nothing."""

    def __init__(self, out: BinaryIO, binary: BinaryText) -> None:
        self._out = out
        self._binary = binary
        self._with_header = True

    def print(self, rows: pa.Table) -> None:
        """Print ``rows`` in order."""
        for piece in slices(rows):
            columns = [self._text(column) for column in piece.columns]
            text = pa.Table.from_arrays(columns, names=piece.schema.names)
            options = pa_csv.WriteOptions(include_header=self._with_header)
            pa_csv.write_csv(text, self._out, options)
            self._with_header = False
        self._out.flush()

    def _text(self, column: Values) -> Values:
        kind = column.type
        if _is_nested(kind):
            text = text_of(column, self._binary)
            return _nulls_as(column, text)
        if pa.types.is_timestamp(kind) or pa.types.is_binary(kind):
            column = plain_text(column, self._binary)
        return column


class TablePrinter:
    """A drawn table for each batch, for people."""

    def __init__(self, binary: BinaryText) -> None:
        self._binary = binary

    def print(self, rows: pa.Table) -> None:
        """Print ``rows`` in order."""
        for piece in slices(rows):
            columns = [self._cells(column) for column in piece.columns]
            terminal.say_table(piece.schema.names, list(zip(*columns, strict=True)))
        sys.stdout.flush()

    def _cells(self, column: Values) -> list[str]:
        kind = column.type
        if _is_nested(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
            text = _nulls_as(column, text_of(column, self._binary))
        else:
            text = plain_text(column, self._binary)
        return ["" if cell is None else cell for cell in text.to_pylist()]


def printer(kind: OutputFormat, binary: BinaryText) -> Printer:
    """The printer of a format, onto stdout."""
    match kind:
        case OutputFormat.JSONL:
            return JsonPrinter(sys.stdout.buffer, binary)
        case OutputFormat.CSV:
            return CsvPrinter(sys.stdout.buffer, binary)
        case OutputFormat.TABLE:
            return TablePrinter(binary)


def _is_nested(kind: pa.DataType) -> bool:
    """Whether values are printed as JSON; a variant is a struct below."""
    return pa.types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType)


def _nulls_as(column: Values, text: Values) -> Values:
    """Text with the nulls of the column that it was made of."""
    kept: Values = pc.if_else(column.is_valid(), text, pa.scalar(None, pa.string()))
    return kept
