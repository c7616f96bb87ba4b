"""Statistics as JSON and as typed columns (PROTOCOL.md, "Checkpoints" and "Per-file Statistics").

The log holds statistics as JSON text. A checkpoint may hold them typed, in ``add.stats_parsed``,
besides or instead. Either form is made of the other here, by column. What does not fit the table's
types has no typed form: a bound that is not known skips nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from streamlake.log.arrays import nulls

Values: TypeAlias = Any
"""An array or a chunked array of Arrow's."""

_ZONED = r"(Z|[+-]\d\d(:?\d\d)?)$"
_ESCAPES = (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"))
_TEXT_TYPES = (pa.types.is_date, pa.types.is_timestamp)
"""Types that JSON has as strings."""


def parsed_stats(stats: Values, kind: pa.StructType) -> pa.StructArray:
    """Statistics in JSON as structs of ``kind``; null where there are none.

    Args:
        stats: Texts, or null.
        kind: With ``numRecords`` and its like, and ``minValues``, ``maxValues``, ``nullCount`` as
            structs that mirror the table's columns by their physical names.
    """
    told = stats.combine_chunks() if isinstance(stats, pa.ChunkedArray) else stats
    if told.null_count == len(told):
        empty: pa.StructArray = nulls(len(told), kind)
        return empty
    found = _parsed_at_once(told, kind)
    rows = _parsed_one_by_one(told, kind) if found is None else found
    masked: pa.StructArray = pc.if_else(told.is_valid(), rows, pa.scalar(None, kind))
    return masked


def _parsed_at_once(stats: Values, kind: pa.StructType) -> Values | None:
    """The structs by Arrow's JSON reader; None where a value of one does not fit."""
    read = pa.schema(list(_as_read(kind)))
    lines = pc.replace_substring_regex(pc.fill_null(stats, "{}"), r"[\r\n]", " ")
    blank = pc.match_substring_regex(lines, r"^\s*$")
    lines = pc.if_else(blank, "{}", lines)
    data: Any = pc.binary_join_element_wise(lines, "", "\n").buffers()[2]
    source: Any = pa.BufferReader(data)
    try:
        table = pj.read_json(
            source,
            read_options=pj.ReadOptions(use_threads=False, block_size=data.size + 1),
            parse_options=pj.ParseOptions(explicit_schema=read, unexpected_field_behavior="ignore"),
        )
        if table.num_rows != len(stats):
            return None
        rows = table.to_struct_array().combine_chunks()
        return _converted(rows, kind)
    except pa.ArrowException:
        return None


def _as_read(kind: pa.StructType) -> Iterator[pa.Field[Any]]:
    """The fields as JSON has them: dates and times as text."""
    for field in kind:
        if isinstance(field.type, pa.StructType):
            yield pa.field(field.name, pa.struct(list(_as_read(field.type))))
        elif any(is_text(field.type) for is_text in _TEXT_TYPES):
            yield pa.field(field.name, pa.string())
        else:
            yield field


def _converted(rows: Values, kind: Any) -> Values:  # noqa: ANN401 -- a type of Arrow's
    if isinstance(kind, pa.StructType):
        members = [_converted(rows.field(field.name), field.type) for field in kind]
        mask = rows.is_null() if rows.null_count else None
        return pa.StructArray.from_arrays(members, fields=list(kind), mask=mask)
    if pa.types.is_decimal(kind):  # the reader of JSON does not look at the precision
        return rows.cast(pa.decimal128(38, kind.scale)).cast(kind)
    if rows.type.equals(kind):
        return rows
    if pa.types.is_timestamp(kind):
        zoned = pc.match_substring_regex(rows, _ZONED)
        if kind.tz is not None:
            rows = pc.if_else(zoned, rows, pc.binary_join_element_wise(rows, "Z", ""))
        elif pc.any(zoned).as_py():
            rows = pc.replace_substring_regex(rows, r"Z$", "")
    return rows.cast(kind)


def _parsed_one_by_one(stats: Values, kind: pa.StructType) -> Values:
    return pa.array([_row(text, kind) for text in stats.to_pylist()], type=kind)


def _row(text: str | None, kind: pa.StructType) -> dict[str, Any]:
    try:
        found = _decoder.decode(text or "{}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        found = None
    return _members(found, kind) if isinstance(found, dict) else {}


def _members(found: Mapping[str, Any], kind: pa.StructType) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for field in kind:
        value = found.get(field.name)
        if not isinstance(field.type, pa.StructType):
            members[field.name] = _value(value, field.type)
        elif isinstance(value, dict):
            members[field.name] = _members(value, field.type)
    return members


def _value(value: Any, kind: Any) -> Any:  # noqa: ANN401 -- from JSON to Arrow
    """A value of JSON as one of ``kind``; None where it is none."""
    for fits, convert in _CONVERSIONS:
        if fits(kind):
            try:
                converted = convert(value, kind)
                return None if converted is None else pa.scalar(converted, kind).as_py()
            except (ValueError, TypeError, OverflowError, InvalidOperation, pa.ArrowException):
                return None
    return None


def _number(value: Any, _: Any) -> Any:  # noqa: ANN401
    is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
    return value if is_number else None


def _datetime(value: Any, kind: Any) -> datetime | None:  # noqa: ANN401
    if not isinstance(value, str):
        return None
    moment = datetime.fromisoformat(value)
    if kind.tz is None:
        return moment.replace(tzinfo=None) if moment.utcoffset() in {None, _NO_OFFSET} else None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


_CONVERSIONS: Sequence[tuple[Callable[[Any], bool], Callable[[Any, Any], Any]]] = (
    (pa.types.is_boolean, lambda value, _: value if isinstance(value, bool) else None),
    (pa.types.is_integer, lambda value, _: value if isinstance(_number(value, _), int) else None),
    (pa.types.is_floating, lambda value, _: None if _number(value, _) is None else float(value)),
    (pa.types.is_decimal, lambda value, _: None if _number(value, _) is None else Decimal(value)),
    (pa.types.is_string, lambda value, _: value if isinstance(value, str) else None),
    (pa.types.is_date, lambda value, _: date.fromisoformat(value)),
    (pa.types.is_timestamp, _datetime),
)
_NO_OFFSET = timedelta(0)
_decoder = msgspec.json.Decoder(float_hook=Decimal)


# -------------------------------------------------------------------------------------------------


def stats_json(parsed: Values) -> Values:
    """Typed statistics as JSON; null where there are none.

    Bounds that JSON has no value for (not finite, bytes) are left out.
    """
    return _object(parsed)


def _object(rows: Values) -> Values:
    """Structs as JSON objects of the members that are not null; null for those without any."""
    members = [
        pc.binary_join_element_wise(f"{_encode(field.name).decode()}:", text, "")
        for field, column in zip(rows.type, rows.flatten(), strict=True)
        if (text := _json(column)) is not None
    ]
    if not members:
        return nulls(len(rows), pa.string())
    # The empty text keeps a row whose members are all null: Arrow would leave it out.
    joined = pc.binary_join_element_wise("", *members, ",", null_handling="skip")
    some = pc.and_(rows.is_valid(), pc.match_substring(joined, ","))
    listed = pc.utf8_slice_codeunits(joined, 1)
    whole = pc.binary_join_element_wise("{", listed, "}", "")
    return pc.if_else(some, whole, pa.scalar(None, pa.string()))


def _json(column: Values) -> Values | None:  # noqa: PLR0911 -- one for each kind of JSON
    """A column as JSON values; None for a type that statistics don't have."""
    kind = column.type
    if pa.types.is_struct(kind):
        return _object(column)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _quoted(column.cast(pa.string()))
    if pa.types.is_floating(kind):
        finite = pc.if_else(pc.is_finite(column), column, pa.scalar(None, kind))
        return finite.cast(pa.string())
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_boolean(kind):
        return column.cast(pa.string())
    if pa.types.is_date(kind):
        return _quoted(column.cast(pa.string()))
    if pa.types.is_timestamp(kind):
        # INT96 has no zone in Parquet and is read as nanoseconds: an instant.
        zone = "" if kind.tz is None and kind.unit != "ns" else "Z"
        plain = column.cast(pa.timestamp("us", kind.tz), safe=False)
        return _quoted(pc.strftime(plain, format=f"%Y-%m-%dT%H:%M:%S{zone}"))
    return None


def _quoted(text: Values) -> Values:
    for plain, escaped in _ESCAPES:
        text = pc.replace_substring(text, plain, escaped)
    if pc.any(pc.match_substring_regex(text, r"[\x00-\x1f]")).as_py():
        text = pa.array(
            [None if value is None else _controls(value) for value in text.to_pylist()],
            pa.string(),
        )
    return pc.binary_join_element_wise('"', text, '"', "")


def _controls(text: str) -> str:
    return "".join(c if c >= " " else f"\\u{ord(c):04x}" for c in text)


_encode = msgspec.json.Encoder().encode
