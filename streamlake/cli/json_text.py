"""Arrow columns to JSON text, column by column: no Python object per row.

A row becomes one line. Numbers and decimals are JSON numbers; NaN and the infinities, which JSON
lacks, are the strings "NaN", "Infinity" and "-Infinity"; timestamps and dates are ISO 8601 strings
(``Z`` where the type is UTC); a map is an object, a variant one of its two binaries; ``binary`` is
text or base64, see ``BinaryText``.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from enum import StrEnum
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute

Values: TypeAlias = "pa.Array[Any]"
"""One column of a record batch."""
Untyped: TypeAlias = Any
"""The same where the stubs can't follow its type."""
SLICE_ROWS = 1 << 16
SLICE_BYTES = 32 << 20
BASE64_PREFIX = "base64:"
_pc: Any = pyarrow.compute
"""Untyped: the stubs can't tell that arrays give arrays."""
_CONTROLS = [chr(code) for code in range(0x20)]


class BinaryText(StrEnum):
    """How a ``binary`` value is printed."""

    AUTO = "auto"
    """UTF-8 text where it is that, else ``base64:...``; text that begins so itself is encoded too,
    so that each printed value means one thing."""
    BASE64 = "base64"
    """Base64, without a prefix."""


def json_lines(data: pa.Table, *, binary: BinaryText = BinaryText.AUTO) -> Iterator[memoryview]:
    """The rows of ``data`` in order, as UTF-8 JSON lines, many lines a piece."""
    for piece in slices(data):
        columns = [
            _member(name, position, text_of(piece.column(position), binary))
            for position, name in enumerate(piece.schema.names)
        ]
        parts = [part for column in columns for part in column]
        yield _bytes_of(_join("{", *parts, "}\n", rows=piece.num_rows))


def slices(data: pa.Table) -> Iterator[pa.RecordBatch]:
    """``data`` in pieces that stay far below the 2 GiB of one Arrow string array."""
    if data.num_rows == 0:
        return
    rows = max(1, min(SLICE_ROWS, SLICE_BYTES * data.num_rows // max(1, data.nbytes)))
    yield from data.combine_chunks().to_batches(max_chunksize=rows)


def text_of(values: Values, binary: BinaryText) -> Untyped:
    """The JSON text of each value; ``null`` for a null. Never null itself."""
    if isinstance(values, pa.ExtensionArray):
        return text_of(values.storage, binary)
    kind = values.type
    if pa.types.is_struct(kind):
        text = _struct_text(values, binary)
    elif pa.types.is_map(kind):
        text = _map_text(values, binary)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        text = _list_text(values, binary)
    elif pa.types.is_floating(kind):
        text = _float_text(values)
    elif pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        text = values.cast(pa.string())
    elif pa.types.is_null(kind):
        text = pa.nulls(len(values), pa.string())
    else:
        text = _quoted(plain_text(values, binary))
    return _pc.fill_null(text, "null")


def plain_text(values: Values, binary: BinaryText) -> Untyped:
    """Strings, times and bytes as text without quotes; nulls stay null."""
    kind = values.type
    if pa.types.is_timestamp(kind):
        # 2026-01-02 03:04:05.000006Z in Arrow's spelling
        return _pc.replace_substring(values.cast(pa.string()), " ", "T", max_replacements=1)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return _binary_text(values, binary)
    return values.cast(pa.string())


def _member(name: str, position: int, text: Values) -> list[str | Values]:
    comma = "" if position == 0 else ","
    return [f"{comma}{msgspec.json.encode(name).decode()}:", text]


def _join(first: str, *rest: str | Values, rows: int) -> Untyped:
    """Each row's parts, one after another; text among the parts is the same for every row."""
    return _pc.binary_join_element_wise(pa.repeat(first, rows), *rest, "")


def _bytes_of(lines: Values) -> memoryview:
    _validity, offset_buffer, text = lines.buffers()
    if offset_buffer is None or text is None:
        return memoryview(b"")
    offsets = memoryview(offset_buffer).cast("i")
    return memoryview(text)[offsets[lines.offset] : offsets[lines.offset + len(lines)]]


def _quoted(text: Values) -> Untyped:
    if _pc.any(_pc.match_substring_regex(text, r'["\\\x00-\x1f]')).as_py():
        text = _pc.replace_substring(text, "\\", "\\\\")
        text = _pc.replace_substring(text, '"', '\\"')
        if _pc.any(_pc.match_substring_regex(text, r"[\x00-\x1f]")).as_py():
            for control in _CONTROLS:
                text = _pc.replace_substring(text, control, f"\\u{ord(control):04x}")
    return _join('"', text, '"', rows=len(text))


def _float_text(values: Values) -> Untyped:
    text = values.cast(pa.string())
    if _pc.all(_pc.is_finite(values)).as_py() is not False:
        return text
    text = _pc.if_else(_pc.is_nan(values), '"NaN"', text)
    infinite = _pc.if_else(_pc.greater(values, 0.0), '"Infinity"', '"-Infinity"')
    return _pc.if_else(_pc.is_inf(values), infinite, text)


def _struct_text(values: Untyped, binary: BinaryText) -> Untyped:
    parts = [
        part
        for position, (field, child) in enumerate(zip(values.type, values.flatten(), strict=True))
        for part in _member(field.name, position, text_of(child, binary))
    ]
    return _masked(_join("{", *parts, "}", rows=len(values)), values)


def _list_text(values: Untyped, binary: BinaryText) -> Untyped:
    elements = text_of(values.flatten(), binary)
    joined = _pc.binary_join(pa.ListArray.from_arrays(_starts(values), elements), ",")
    return _masked(_join("[", joined, "]", rows=len(values)), values)


def _map_text(values: Untyped, binary: BinaryText) -> Untyped:
    entries = pa.ListArray.from_arrays(
        values.offsets,
        pa.StructArray.from_arrays([values.keys, values.items], names=["key", "value"]),
    )
    pairs = _pc.list_flatten(_pc.if_else(values.is_valid(), entries, None))
    keys, items = pairs.flatten()
    key_text = keys if pa.types.is_string(keys.type) else text_of(keys, binary)
    members = _pc.binary_join_element_wise(_quoted(key_text), text_of(items, binary), ":")
    joined = _pc.binary_join(pa.ListArray.from_arrays(_starts(entries), members), ",")
    return _masked(_join("{", joined, "}", rows=len(values)), values)


def _starts(lists: Untyped) -> Untyped:
    """Offsets of the flattened elements: a null list holds none, whatever lies behind it."""
    lengths = _pc.fill_null(_pc.list_value_length(lists), 0).cast(pa.int32())
    ends = _pc.cumulative_sum(lengths)
    return pa.concat_arrays([pa.array([0], pa.int32()), ends])


def _masked(text: Values, values: Values) -> Untyped:
    if values.null_count == 0:
        return text
    return _pc.if_else(values.is_valid(), text, pa.scalar(None, pa.string()))


def _binary_text(values: Values, binary: BinaryText) -> Untyped:
    if binary is BinaryText.AUTO:
        try:
            text = values.cast(pa.string())
        except pa.ArrowInvalid:  # some value is no UTF-8
            return pa.array([_text_or_base64(value) for value in values.to_pylist()], pa.string())
        if not _pc.any(_pc.starts_with(text, BASE64_PREFIX)).as_py():
            return text
        return pa.array([_text_or_base64(value) for value in values.to_pylist()], pa.string())
    encoded = [None if value is None else base64.b64encode(value) for value in values.to_pylist()]
    return pa.array(encoded, pa.binary()).cast(pa.string())


def _text_or_base64(value: bytes | None) -> str | None:
    if value is None:
        return None
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = BASE64_PREFIX
    return (
        BASE64_PREFIX + base64.b64encode(value).decode() if text.startswith(BASE64_PREFIX) else text
    )
