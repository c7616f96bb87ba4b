"""What the log tells of a data file without opening it (PROTOCOL.md, "Per-file Statistics")."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa

from streamlake.data.bounds import Bound, BoundsCodec, bounds_codec

ColumnPath: TypeAlias = tuple[str, ...]
"""A leaf column: the names of the structs that hold it, outermost first, then its own."""

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column that statistics are kept of."""

    path: ColumnPath
    positions: tuple[int, ...]
    """The index of the column, then of the field in each struct on the way."""
    codec: BoundsCodec | None
    """None for a type that has no bounds in the log."""


@dataclass(frozen=True, slots=True)
class ColumnRange:
    """The nulls of one leaf column and the range of its other values.

    ``lower`` and ``upper`` are None where all values are null, and where no bound is known.
    """

    rows: int
    nulls: int
    lower: Bound | None = None
    upper: Bound | None = None

    def union(self, other: ColumnRange) -> ColumnRange:
        """The range of both columns together."""
        rows, nulls = self.rows + other.rows, self.nulls + other.nulls
        if self.rows == self.nulls:
            return ColumnRange(rows, nulls, other.lower, other.upper)
        if other.rows == other.nulls:
            return ColumnRange(rows, nulls, self.lower, self.upper)
        lower = _of_both(min, self.lower, other.lower)
        return ColumnRange(rows, nulls, lower, _of_both(max, self.upper, other.upper))


def _of_both(pick: Callable[..., Bound], one: Bound | None, two: Bound | None) -> Bound | None:
    return None if one is None or two is None else pick(one, two)


@dataclass(frozen=True, slots=True)
class FileStatistics:
    """The statistics of the rows of one file, or of a part of one."""

    num_records: int
    leaves: tuple[Leaf, ...]
    ranges: tuple[ColumnRange, ...]
    """One for each of ``leaves``."""

    def union(self, other: FileStatistics) -> FileStatistics:
        """The statistics of both parts together; both of the same leaves."""
        ranges = tuple(a.union(b) for a, b in zip(self.ranges, other.ranges, strict=True))
        return FileStatistics(self.num_records + other.num_records, self.leaves, ranges)

    def to_json(self) -> str:
        """The value of ``add.stats``."""
        lowers: dict[str, Any] = {}
        uppers: dict[str, Any] = {}
        nulls: dict[str, Any] = {}
        for leaf, found in zip(self.leaves, self.ranges, strict=True):
            _set(nulls, leaf.path, found.nulls)
            if leaf.codec is not None and found.lower is not None:
                _set(lowers, leaf.path, leaf.codec.write_lower(found.lower))
            if leaf.codec is not None and found.upper is not None:
                _set(uppers, leaf.path, leaf.codec.write_upper(found.upper))
        stats: dict[str, Any] = {"numRecords": self.num_records}
        if lowers:
            stats["minValues"] = lowers
        if uppers:
            stats["maxValues"] = uppers
        if nulls:
            stats["nullCount"] = nulls
        return _encode(stats).decode()


def _set(tree: dict[str, Any], path: ColumnPath, value: object) -> None:
    if value is None:
        return
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = value


@lru_cache(maxsize=256)
def statistics_leaves(
    schema: pa.Schema,
    *,
    num_indexed: int = 32,
    columns: tuple[ColumnPath, ...] | None = None,
    always: tuple[ColumnPath, ...] = (),
) -> tuple[Leaf, ...]:
    """The leaf columns of ``schema`` that statistics are kept of.

    Args:
        schema: Of the data files, so without partition columns. The fields of a struct are leaves;
            an array or a map is one leaf.
        num_indexed: How many leaves from the left (``delta.dataSkippingNumIndexedCols``); -1 for
            all of them.
        columns: The leaves, and structs in place of all leaves below them
            (``delta.dataSkippingStatsColumns``); where given, ``num_indexed`` counts no more.
        always: Leaves that have statistics whatever the others say.
    """
    leaves = tuple(leaf for i, field in enumerate(schema) for leaf in _leaves(field, (), (i,)))
    if columns is None and num_indexed < 0:
        return leaves
    indexed = leaves[:num_indexed] if columns is None else ()
    named = (*(columns or ()), *always)
    return tuple(
        leaf
        for leaf in leaves
        if leaf in indexed or any(leaf.path[: len(path)] == path for path in named)
    )


def _leaves(
    field: pa.Field[Any], parents: ColumnPath, positions: tuple[int, ...]
) -> Iterator[Leaf]:
    path = (*parents, field.name)
    if isinstance(field.type, pa.StructType):
        for i, child in enumerate(field.type):
            yield from _leaves(child, path, (*positions, i))
    else:
        yield Leaf(path, positions, bounds_codec(field.type))


def file_statistics(table: pa.Table, leaves: tuple[Leaf, ...]) -> FileStatistics:
    """The statistics of ``table``, of whose schema ``leaves`` were made."""
    return FileStatistics(
        table.num_rows, leaves, tuple(_column_range(table, leaf) for leaf in leaves)
    )


def _column_range(table: pa.Table, leaf: Leaf) -> ColumnRange:
    column = table.column(leaf.positions[0])
    for position in leaf.positions[1:]:
        column = column.flatten()[position]
    rows, nulls = len(column), column.null_count
    if leaf.codec is None or nulls == rows:
        return ColumnRange(rows, nulls)
    return ColumnRange(rows, nulls, *leaf.codec.find(column))


def collect_statistics(
    table: pa.Table, *, num_indexed: int = 32, columns: tuple[ColumnPath, ...] | None = None
) -> str:
    """The value of ``add.stats`` of a file that holds exactly ``table``.

    Args:
        table: The rows, without partition columns.
        num_indexed: See ``statistics_leaves``.
        columns: See ``statistics_leaves``.
    """
    leaves = statistics_leaves(table.schema, num_indexed=num_indexed, columns=columns)
    return file_statistics(table, leaves).to_json()
