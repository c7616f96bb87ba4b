"""What statistics tell of a column in each file, read in bulk (PROTOCOL.md, "Per-file Statistics").

Bounds are loose, never wrong, whoever wrote them:

- An upper bound of strings may have been cut, with or without a mark that makes up for it.
- Timestamps are cut to milliseconds, downwards or towards zero.
- Some writers leave NaN out of account, so floating numbers may be NaN besides.
- Decimals may have gone through a double; floats that were widened were written with few digits.
- With wide bounds (``tightBounds`` false) null counts other than none and all tell nothing.

Whatever can't be read is not known. Bounds come in a *domain*, the type that they are compared in:
int64 for integers, double for floating numbers and decimals, binary for strings, int8 for booleans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.json as pj

from streamlake.data.predicates.kernels import Values, concatenated, nulls, pc
from streamlake.data.predicates.tree import ColumnPath

_BLOCK_FILES = 32_768
"""How many files' statistics are parsed at a time."""
_BLOCK_BYTES = 4 * 2**20
_MAYBE_CUT_BYTES = 16
"""From that length on an upper bound of strings may be cut."""
_CUT_MARKS = r"\??[\x7f\x{fffd}\x{10ffff}]?$"
"""Marks that writers put where they cut, and what half of a surrogate pair became before it."""
_AFTER_ALL = b"\xff"
"""Comes after every string of UTF-8."""
_MILLISECOND_US = 1000
_DOUBLE_SLACK = 2.0**-50
_FLOAT_SLACK = 2.0**-22
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"

Tree: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class StatisticsColumn:
    """A leaf column to be looked up."""

    path: ColumnPath
    """Physical names."""
    type: pa.DataType
    was_widened: bool = False
    """Whether files may hold it, and its statistics, in a narrower type."""


@dataclass(frozen=True, slots=True)
class Range:
    """What is known of a column or expression in each of some files."""

    lower: Values
    """At most every value, in the domain; null where not known."""
    upper: Values
    """At least every value but NaN, in the domain; null where not known."""
    may_be_null: Values
    """Whether a row may have null."""
    may_be_value: Values
    """Whether a row may have a value."""


def domain(kind: pa.DataType) -> pa.DataType | None:
    """The type in which bounds of a type are compared; None for one without bounds."""
    if pa.types.is_integer(kind):
        return pa.int64()
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return pa.float64()
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return pa.binary()
    if pa.types.is_boolean(kind):
        return pa.int8()
    return kind if pa.types.is_date32(kind) or pa.types.is_timestamp(kind) else None


def to_domain(values: Values) -> Values:
    """Exact values in the domain of their type."""
    wanted = domain(values.type)
    if pa.types.is_decimal(values.type):
        values = values.cast(pa.string())
    return values if wanted is None else values.cast(wanted)


def ranges(stats: pa.ChunkedArray[Any], columns: Sequence[StatisticsColumn]) -> list[Range]:
    """What ``stats``, the JSON text of each file, tells of each column."""
    found: list[list[Range]] = [[] for _ in columns]
    for block in _blocks(stats):
        parsed = _parse(block, columns)
        for i, column in enumerate(columns):
            found[i].append(_range(parsed, column, len(block)))
    return [
        Range(
            *(
                concatenated([getattr(part, name) for part in parts])
                for name in ("lower", "upper", "may_be_null", "may_be_value")
            )
        )
        if parts
        else _nothing(column)
        for parts, column in zip(found, columns, strict=True)
    ]


def _blocks(stats: pa.ChunkedArray[Any]) -> Iterator[Values]:
    for chunk in stats.chunks:
        for start in range(0, len(chunk), _BLOCK_FILES):
            yield chunk.slice(start, _BLOCK_FILES)


def _nothing(column: StatisticsColumn) -> Range:
    kind = domain(column.type) or pa.null()
    flags: Any = pa.array([], pa.bool_())
    return Range(pa.array([], kind), pa.array([], kind), flags, flags)


# -------------------------------------------------------------------------------------------------
# JSON to columns


def _parse(stats: Values, columns: Sequence[StatisticsColumn]) -> Values:
    """A struct for each file with the members of its statistics that the columns need."""
    kind = _struct(_shape(columns))
    text = pc.coalesce(stats, "{}")
    for line_end in ("\n", "\r"):
        text = pc.replace_substring(text, line_end, " ")
    text = pc.if_else(pc.equal(text, ""), "{}", text)
    # In a wrapper no text can pass for no file, nor for two without the count telling.
    lines: Any = pc.binary_join_element_wise('{"s":', text, "}\n", "")
    longest: Any = pc.max(pc.binary_length(lines))
    source: Any = pa.BufferReader(lines.buffers()[2])
    try:
        table = pj.read_json(
            source,
            read_options=pj.ReadOptions(block_size=max(_BLOCK_BYTES, 2 * (longest.as_py() or 0))),
            parse_options=pj.ParseOptions(
                explicit_schema=pa.schema([("s", kind)]), unexpected_field_behavior="ignore"
            ),
        )
    except pa.ArrowException:
        return _parse_one_by_one(stats, columns, kind)
    if table.num_rows != len(stats):
        return _parse_one_by_one(stats, columns, kind)
    found = table.column("s").combine_chunks()
    return found if isinstance(found, pa.Array) else concatenated(found.chunks)


def _shape(columns: Sequence[StatisticsColumn]) -> Tree:
    tree: Tree = {"numRecords": pa.int64(), "tightBounds": pa.bool_()}
    for column in columns:
        _put(tree, ("nullCount", *column.path), pa.int64())
        written = _written(column.type)
        if written is not None:
            _put(tree, ("minValues", *column.path), written)
            _put(tree, ("maxValues", *column.path), written)
    return tree


def _put(tree: Tree, path: ColumnPath, value: object) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = value


def _struct(tree: Mapping[str, Any]) -> pa.DataType:
    return pa.struct(
        [
            pa.field(name, _struct(inner) if isinstance(inner, dict) else inner)
            for name, inner in tree.items()
        ]
    )


def _written(kind: pa.DataType) -> pa.DataType | None:
    """How JSON has bounds of a type: as numbers or as text."""
    if pa.types.is_binary(kind) or pa.types.is_boolean(kind):
        return None
    wanted = domain(kind)
    numbers = wanted is not None and wanted in {pa.int64(), pa.float64()}
    return wanted if numbers or wanted is None else pa.string()


def _parse_one_by_one(
    stats: Values, columns: Sequence[StatisticsColumn], kind: pa.DataType
) -> Values:
    """The same, file by file: what is garbled or of another type is left out."""
    shape = _shape(columns)
    rows = [_picked(_decoded(text), shape) for text in stats.to_pylist()]
    return pa.array(rows, kind)


def _decoded(text: str | None) -> object:
    try:
        return msgspec.json.decode(text or "{}")
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {}


def _picked(found: object, shape: Mapping[str, Any]) -> Tree:
    members = found if isinstance(found, dict) else {}
    return {
        name: _picked(members.get(name), inner)
        if isinstance(inner, dict)
        else _PICKERS[inner](members.get(name))
        for name, inner in shape.items()
    }


def _whole_number(value: object) -> int | None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and -(2**63) <= value < 2**63 else None  # type: ignore[operator,return-value]


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


_PICKERS: dict[pa.DataType, Callable[[object], object]] = {
    pa.int64(): _whole_number,
    pa.float64(): _number,
    pa.string(): lambda value: value if isinstance(value, str) else None,
    pa.bool_(): lambda value: value if isinstance(value, bool) else None,
}


# -------------------------------------------------------------------------------------------------
# Columns to ranges


def _range(parsed: Values, column: StatisticsColumn, rows: int) -> Range:
    records = pc.struct_field(parsed, ["numRecords"])
    null_count = pc.struct_field(parsed, ["nullCount", *column.path])
    may_be_null = pc.fill_null(pc.not_equal(null_count, 0), fill_value=True)
    may_be_value = pc.fill_null(pc.not_equal(null_count, records), fill_value=True)
    unknown = nulls(rows, domain(column.type) or pa.null())
    if _written(column.type) is None:
        return Range(unknown, unknown, may_be_null, may_be_value)
    lower = pc.struct_field(parsed, ["minValues", *column.path])
    upper = pc.struct_field(parsed, ["maxValues", *column.path])
    loosen = _loosened(column)
    try:
        return Range(*loosen(lower, upper), may_be_null, may_be_value)
    except pa.ArrowException:
        return Range(unknown, unknown, may_be_null, may_be_value)


def _loosened(column: StatisticsColumn) -> Callable[[Values, Values], tuple[Values, Values]]:
    kind = column.type
    if pa.types.is_integer(kind):
        return lambda lower, upper: (lower, upper)
    if pa.types.is_decimal(kind):
        return lambda lower, upper: _apart(lower, upper, _DOUBLE_SLACK)
    if pa.types.is_floating(kind):
        return lambda lower, upper: _floats(lower, upper, column)
    if pa.types.is_string(kind):
        return _strings
    if pa.types.is_date32(kind):
        return lambda lower, upper: (_dates(lower), _dates(upper))
    return lambda lower, upper: _timestamps(lower, upper, kind)


def _apart(lower: Values, upper: Values, slack: float) -> tuple[Values, Values]:
    return (
        pc.subtract(lower, pc.multiply(pc.abs(lower), slack)),
        pc.add(upper, pc.multiply(pc.abs(upper), slack)),
    )


def _floats(lower: Values, upper: Values, column: StatisticsColumn) -> tuple[Values, Values]:
    lower, upper = (pc.if_else(pc.is_nan(bound), None, bound) for bound in (lower, upper))
    if pa.types.is_float32(column.type):
        # The text has just enough digits to tell one float from another.
        return tuple(  # type: ignore[return-value]
            pc.cast(bound, pa.float32(), safe=False).cast(pa.float64()) for bound in (lower, upper)
        )
    return _apart(lower, upper, _FLOAT_SLACK) if column.was_widened else (lower, upper)


def _strings(lower: Values, upper: Values) -> tuple[Values, Values]:
    may_be_cut = pc.greater_equal(pc.binary_length(upper), _MAYBE_CUT_BYTES)
    stem = pc.replace_substring_regex(upper, _CUT_MARKS, "", max_replacements=1)
    above = pc.binary_join_element_wise(stem.cast(pa.binary()), _AFTER_ALL, b"")
    return (
        lower.cast(pa.binary()),
        pc.if_else(may_be_cut, above, upper.cast(pa.binary())),
    )


def _dates(text: Values) -> Values:
    return _only(text, _DATE).cast(pa.date32())


def _timestamps(lower: Values, upper: Values, kind: Any) -> tuple[Values, Values]:  # noqa: ANN401
    low, high = (_moments(text, kind).cast(pa.int64()) for text in (lower, upper))
    low = pc.if_else(pc.less(low, 0), pc.subtract(low, _MILLISECOND_US), low)
    return low.cast(kind), pc.add(high, _MILLISECOND_US).cast(kind)


def _moments(text: Values, kind: Any) -> Values:  # noqa: ANN401 - a timestamp type
    if kind.tz is not None:
        return _only(text, _TIME + r"(Z|[+-][0-9]{2}:[0-9]{2})$").cast(kind)
    # A date that became a timestamp_ntz has its statistics still as a date.
    days = _only(text, _DATE).cast(kind)
    return pc.coalesce(_only(text, _TIME + "$").cast(kind), days)


def _only(text: Values, form: str) -> Values:
    """The texts of a form; null for others."""
    return pc.if_else(pc.match_substring_regex(text, form), text, pa.scalar(None, pa.string()))
