"""NDJSON to Arrow, block by block, with the line of whatever can't be read."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Protocol

import msgspec
import pyarrow as pa
import pyarrow.json as pa_json

from streamlake.cli.carrier import from_carrier, json_carrier
from streamlake.errors import InvalidInputError

BLOCK_BYTES = 4 << 20
"""How much is read and parsed at once."""
MAX_LINE_BYTES = 64 << 20
"""How long one record may be."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Readable(Protocol):
    """A binary stream, as far as it is read here."""

    def read(self, size: int = -1, /) -> bytes:
        """At most ``size`` bytes; none at the end."""


def line_blocks(stream: Readable, name: str) -> Iterator[bytes]:
    """The stream's bytes in blocks of whole lines, each as soon as it is there.

    Raises:
        InvalidInputError: A line is longer than ``MAX_LINE_BYTES``.
    """
    # read1 hands on what a pipe holds, without waiting for more
    read = getattr(stream, "read1", stream.read)
    rest = read(BLOCK_BYTES).removeprefix(_BYTE_ORDER_MARK)
    while rest:
        end = rest.rfind(b"\n") + 1
        if end:
            yield rest[:end]
            rest = rest[end:]
        if len(rest) > MAX_LINE_BYTES:
            raise InvalidInputError(
                f"A line is longer than {MAX_LINE_BYTES} bytes.",
                where=name,
                remedy="Write one record a line (NDJSON), not one array of records.",
            )
        more = read(BLOCK_BYTES)
        if not more:
            break
        rest += more
    if rest:
        yield rest


_keys = msgspec.json.Decoder(dict[str, msgspec.Raw])


def runs(block: bytes, optional: frozenset[str]) -> Iterator[tuple[bytes, frozenset[str]]]:
    """Lines of ``block`` in a row that leave out the same of ``optional``, and what they leave out.

    A key that is there with null is not left out. Lines are looked at one by one, so this is only
    for tables for whose columns it makes a difference; without such columns the block is one run.
    """
    if not optional:
        yield block, optional
        return
    lines: list[bytes] = []
    missing: frozenset[str] = frozenset()
    for line in block.splitlines(keepends=True):
        lacks = missing
        if line.strip():
            with suppress(msgspec.DecodeError):  # told where the line is parsed
                lacks = optional - _keys.decode(line).keys()
        if lacks != missing and lines:
            yield b"".join(lines), missing
            lines = []
        missing = lacks
        lines.append(line)
    if lines:
        yield b"".join(lines), missing


def parse_lines(block: bytes, schema: pa.Schema, *, name: str, first_line: int) -> pa.Table:
    """The records of ``block``, in the types of ``schema``.

    Args:
        block: Whole lines.
        schema: The table's.
        name: The file, for messages.
        first_line: The number of the block's first line.

    Raises:
        InvalidInputError: A record can't be read into the schema; names file and line.
    """
    try:
        return _parse(block, schema)
    except pa.ArrowException as error:
        lines = block.splitlines(keepends=True)
        index, reason = _first_bad_line(lines, schema, str(error))
        raise InvalidInputError(
            "A record can't be read.",
            where=f"{name}, line {first_line + index}",
            found=_explain(lines[index], schema) or _reworded(reason),
            remedy="Correct the line and append again; nothing of this commit was written.",
        ) from error


def read_json(block: bytes, schema: pa.Schema | None = None) -> pa.Table:
    """``block`` through Arrow's reader, as one piece; with a schema nothing else is let in."""
    read = pa_json.ReadOptions(use_threads=False, block_size=len(block) + 1)
    parse = pa_json.ParseOptions(
        explicit_schema=schema,
        unexpected_field_behavior="infer" if schema is None else "error",
    )
    return pa_json.read_json(io.BytesIO(block), read_options=read, parse_options=parse)


def _parse(block: bytes, schema: pa.Schema) -> pa.Table:
    if not block.strip():
        return schema.empty_table()
    rows = read_json(block, json_carrier(schema))
    rows.validate(full=True)  # the parser does not look at UTF-8
    columns = [
        from_carrier(rows.column(field.name).combine_chunks(), field.type) for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _first_bad_line(lines: list[bytes], schema: pa.Schema, reason: str) -> tuple[int, str]:
    """Index of the first line that can't be read, and why.

    By halving: the shortest prefix that fails ends with it.
    """
    good, bad = 0, len(lines)
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            _parse(b"".join(lines[good:middle]), schema)
            good = middle
        except pa.ArrowException as error:
            bad, reason = middle, str(error)
    return good, reason


def _reworded(reason: str) -> str:
    """Arrow's reason without its row number, which counts from the block's beginning."""
    mixed = re.search(r"Column\(/(.*)\) changed from (\w+) to (\w+)", reason)
    if mixed:
        return f"column {mixed[1]!r} takes a {mixed[2]}, and this is a {mixed[3]}"
    return re.sub(r" in row \d+$", "", reason)


def _explain(line: bytes, schema: pa.Schema) -> str:
    """What Arrow does not name: fields that the table lacks, values that it needs."""
    try:
        record = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return f"no JSON: {error}"
    if not isinstance(record, dict):
        return f"not an object but {line[:40].decode(errors='replace').strip()!r}"
    unknown = [repr(name) for name in record if name not in schema.names]
    if unknown:
        return f"the table has no column {', '.join(unknown)}"
    missing = [repr(f.name) for f in schema if not f.nullable and record.get(f.name) is None]
    return f"no value for {', '.join(missing)}, which is NOT NULL" if missing else ""
