"""A schema from data: what the first block of an input shows.

Whole numbers become ``long``, others ``double``; text that is an ISO 8601 date or time throughout
becomes ``date``, ``timestamp`` (with a zone) or ``timestamp_ntz`` (without one); a column without a
single value is taken for text.
"""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any, BinaryIO

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from streamlake.cli.json_reader import line_blocks, read_json
from streamlake.cli.readers import Input, InputFormat, open_parquet, unreadable
from streamlake.errors import InvalidInputError

INFER_LINES = 10_000
"""How many lines of NDJSON are looked at."""
_DATE = r"^\d{4}-\d\d-\d\d$"
_TIME = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?"
_TEXT_KINDS = (
    (_DATE, pa.date32()),
    (_TIME + "$", pa.timestamp("us")),
    (_TIME + r"(Z|[+-]\d\d:?\d\d)$", pa.timestamp("us", tz="UTC")),
)


def infer_schema(source: Input) -> tuple[pa.Schema, Input]:
    """The columns that the input shows, and the input from its beginning again.

    Raises:
        InvalidInputError: There is no record, or it can't be read.
    """
    if source.format is InputFormat.PARQUET:
        schema = open_parquet(source).schema_arrow
        source.stream.seek(0)
        return _widened_schema(schema), source
    seen = _Recorder(source.stream)
    block = next(line_blocks(seen, source.name), b"")
    again = replace(source, stream=io.BufferedReader(_Replay(seen.data, source.stream)))
    try:
        schema = _of_json(block) if source.format is InputFormat.JSONL else _of_csv(block)
    except pa.ArrowException as error:
        raise unreadable(source.name, error) from error
    if not schema.names:
        raise InvalidInputError(
            "There is no record to infer the columns from.",
            where=source.name,
            remedy="Give the columns: streamlake create TABLE --schema '...'.",
        )
    return schema, again


def _of_json(block: bytes) -> pa.Schema:
    lines = block.splitlines(keepends=True)[:INFER_LINES]
    block = b"".join(lines)
    if not block.strip():
        return pa.schema([])
    _refuse_deep_nesting(lines)
    seen = read_json(block).schema
    times = [field.with_type(_untimed(field.type)) for field in seen]
    rows = read_json(block, pa.schema(times))
    return _widened_schema(pa.schema([_timed(field, rows) for field in rows.schema]))


def _refuse_deep_nesting(lines: list[bytes]) -> None:
    """Arrow's reader overflows the stack on it where no schema tells it what to expect."""
    try:
        for line in lines:
            msgspec.json.decode(line.strip() or b"null")
    except RecursionError as error:
        raise pa.ArrowInvalid("a record is nested too deeply") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise pa.ArrowInvalid(f"no JSON: {error}") from error


def _of_csv(block: bytes) -> pa.Schema:
    if not block.strip():
        return pa.schema([])
    read = pa_csv.ReadOptions(use_threads=False, block_size=len(block) + 1)
    with pa_csv.open_csv(io.BytesIO(block), read_options=read) as reader:
        return _widened_schema(reader.schema)


def _timed(field: pa.Field[Any], rows: pa.Table) -> pa.Field[Any]:
    if not pa.types.is_string(field.type):
        return field
    return field.with_type(_text_kind(rows.column(field.name)))


def _text_kind(values: pa.ChunkedArray[Any]) -> pa.DataType:
    """What text stands for, if all of it stands for the same."""
    if values.null_count == len(values):
        return pa.string()
    for pattern, kind in _TEXT_KINDS:
        if pc.all(pc.match_substring_regex(values, pattern)).as_py():
            return kind
    return pa.string()


def _untimed(kind: pa.DataType) -> pa.DataType:
    """Times as text: Arrow's guess has dropped their zone."""
    if pa.types.is_timestamp(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(_untimed(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_untimed(field.type)) for field in kind])
    return kind


def _widened_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_type(_widened(field.type)) for field in schema])


def _widened(kind: pa.DataType) -> pa.DataType:
    """A type as a table can have it and as later rows will fit."""
    if pa.types.is_null(kind) or pa.types.is_time(kind):
        return pa.string()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", tz="UTC" if kind.tz else None)
    if pa.types.is_list(kind):
        return pa.list_(_widened(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_widened(field.type)) for field in kind])
    return kind


class _Recorder:
    """A stream that remembers what was read of it."""

    def __init__(self, stream: BinaryIO) -> None:
        self._read = getattr(stream, "read1", stream.read)
        self.data = b""

    def read(self, size: int = -1, /) -> bytes:
        data: bytes = self._read(size)
        self.data += data
        return data


class _Replay(io.RawIOBase):
    """The bytes that were read already, then the rest of their stream."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head = memoryview(head)
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if not self._head:
            self._head = memoryview(self._rest.read(len(buffer)))
        count = min(len(buffer), len(self._head))
        buffer[:count] = self._head[:count]
        self._head = self._head[count:]
        return count
