"""Rows from NDJSON, CSV and Parquet, in the table's types and in pieces that fit into memory.

Values are read strictly: a number for a number, an ISO 8601 text for a time (with a zone for
``timestamp``, without one for ``timestamp_ntz``), text or ``base64:...`` for ``binary``. What does
not fit is an error that names the file and the line, never a null.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from streamlake.cli.carrier import csv_carrier, from_carrier
from streamlake.cli.json_reader import BLOCK_BYTES, line_blocks, parse_lines, runs
from streamlake.errors import ConstraintViolationError, InvalidInputError
from streamlake.protocol import field_metadata
from streamlake.protocol.schema.references import CURRENT_DEFAULT, GENERATION_EXPRESSION

PARQUET_ROWS = 1 << 16
STDIN = "-"


class InputFormat(StrEnum):
    """What an input's bytes are."""

    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"


_SUFFIXES = {
    ".jsonl": InputFormat.JSONL,
    ".ndjson": InputFormat.JSONL,
    ".json": InputFormat.JSONL,
    ".csv": InputFormat.CSV,
    ".parquet": InputFormat.PARQUET,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Some rows of an input, in order."""

    rows: pa.Table
    size_bytes: int
    """How much of the input they took, for progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """A file, or stdin, to read rows from."""

    name: str
    """A path, or "-"."""
    format: InputFormat
    stream: BinaryIO

    def chunks(self, schema: pa.Schema) -> Iterator[Chunk]:
        """The rows in order, text in the types of ``schema``; Parquet as it is.

        Raises:
            InvalidInputError: A record that can't be read, named by file and line; or a type of
                ``schema`` that the format can't carry.
            ConstraintViolationError: A missing value in a NOT NULL column, named likewise.
        """
        match self.format:
            case InputFormat.JSONL:
                return _json_chunks(self, schema)
            case InputFormat.CSV:
                return _csv_chunks(self, schema)
            case InputFormat.PARQUET:
                return _parquet_chunks(self)


@contextmanager
def open_input(name: str, given: InputFormat | None) -> Iterator[Input]:
    """Open a file, or stdin for "-", in the format given or the one that its suffix says.

    Raises:
        InvalidInputError: There is no such file, or nothing says its format.
    """
    if name == STDIN:
        yield Input(name=name, format=given or InputFormat.JSONL, stream=sys.stdin.buffer)
        return
    kind = given or _SUFFIXES.get(Path(name).suffix.lower())
    if kind is None:
        raise InvalidInputError(
            "The suffix does not say what the file holds.",
            where=name,
            found=f"known: {', '.join(_SUFFIXES)}",
            remedy="Name the file with one of these; `streamlake append` also takes --format.",
        )
    try:
        stream = Path(name).open("rb")  # noqa: SIM115 - closed below
    except OSError as error:
        raise InvalidInputError(
            "The file can't be opened.",
            where=name,
            found=os.strerror(error.errno) if error.errno else str(error),
            remedy="Check the path; - is stdin.",
        ) from error
    with stream:
        yield Input(name=name, format=kind, stream=stream)


def open_parquet(source: Input) -> pq.ParquetFile:
    """The input's Parquet file.

    Raises:
        InvalidInputError: The input is a pipe, or holds no Parquet.
    """
    if not source.stream.seekable():
        raise InvalidInputError(
            "Parquet can't be read from a pipe: its index stands at the end.",
            where=source.name,
            remedy="Give the file's path, or pipe NDJSON or CSV.",
        )
    try:
        return pq.ParquetFile(source.stream)
    except pa.ArrowException as error:
        raise unreadable(source.name, error) from error


def unreadable(where: str, reason: Exception) -> InvalidInputError:
    """The error of an input that is not what it should be."""
    return InvalidInputError(
        "The input can't be read.",
        where=where,
        found=str(reason),
        remedy="Correct it and append again; nothing of this commit was written.",
    )


def _json_chunks(source: Input, schema: pa.Schema) -> Iterator[Chunk]:
    line = 1
    computed = frozenset(field.name for field in schema if _is_computed(field))
    for block in line_blocks(source.stream, source.name):
        for lines, missing in runs(block, computed):
            given = pa.schema([field for field in schema if field.name not in missing])
            rows = parse_lines(lines, given, name=source.name, first_line=line)
            line += lines.count(b"\n")
            yield Chunk(rows=rows, size_bytes=len(lines))


def _is_computed(field: pa.Field[Any]) -> bool:
    """Whether the table has a value for the column where a record leaves it out."""
    metadata = field_metadata(field)
    return CURRENT_DEFAULT in metadata or GENERATION_EXPRESSION in metadata


def _csv_chunks(source: Input, schema: pa.Schema) -> Iterator[Chunk]:
    convert = pa_csv.ConvertOptions(
        column_types=csv_carrier(schema),
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        null_values=[""],
    )
    read = pa_csv.ReadOptions(use_threads=False, block_size=BLOCK_BYTES)
    row = 2  # the first is the header
    done_bytes = 0
    try:
        with pa_csv.open_csv(source.stream, read_options=read, convert_options=convert) as reader:
            _refuse_repeated(reader.schema.names, source.name)
            for batch in reader:
                rows = _typed(batch, schema, name=source.name, first_row=row)
                row += rows.num_rows
                position = source.stream.tell() if source.stream.seekable() else done_bytes
                yield Chunk(rows=rows, size_bytes=position - done_bytes)
                done_bytes = position
    except pa.ArrowException as error:
        raise unreadable(source.name, error) from error


def _typed(batch: pa.RecordBatch, schema: pa.Schema, *, name: str, first_row: int) -> pa.Table:
    """CSV columns in the table's types; one that the table lacks stays, to be refused by name."""
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    for field in schema:
        values = columns.get(field.name)
        if values is None:
            continue
        columns[field.name] = from_carrier(values, field.type)
        if not field.nullable and values.null_count:
            row = first_row + values.is_null().index(pa.scalar(value=True)).as_py()
            raise ConstraintViolationError(
                f"Column {field.name!r} is NOT NULL, and a row has no value in it.",
                where=f"{name}, row {row}",
                remedy="Give the value; nothing of this commit was written.",
            )
    return pa.table(columns)


def _parquet_chunks(source: Input) -> Iterator[Chunk]:
    file = open_parquet(source)
    total_bytes = os.fstat(source.stream.fileno()).st_size
    try:
        for batch in file.iter_batches(PARQUET_ROWS):
            share = batch.num_rows / max(1, file.metadata.num_rows)
            yield Chunk(rows=pa.Table.from_batches([batch]), size_bytes=round(total_bytes * share))
    except (pa.ArrowException, OSError) as error:
        raise unreadable(source.name, error) from error


def _refuse_repeated(names: list[str], where: str) -> None:
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InvalidInputError(
            "The header names a column twice.",
            where=where,
            found=", ".join(repeated),
            remedy="Give each column a name of its own.",
        )
