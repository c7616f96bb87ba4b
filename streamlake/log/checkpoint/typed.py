"""The typed columns of ``add`` that a table may ask of its checkpoints.

PROTOCOL.md, "Checkpoints": ``stats_parsed`` and ``partitionValues_parsed``, both by the physical
names of columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streamlake.log.checkpoint.stats import parsed_stats
from streamlake.protocol import (
    Metadata,
    Protocol,
    column_mapping,
    data_skipping_num_indexed_cols,
    data_skipping_stats_columns,
    decode_partition_value,
    supports_writer_feature,
)

STATS_PARSED = "stats_parsed"
PARTITION_VALUES_PARSED = "partitionValues_parsed"

_BOUNDED = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_string,
    pa.types.is_date,
    pa.types.is_timestamp,
)
"""Types whose values have bounds in the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedColumns:
    """Which typed columns the ``add`` of a checkpoint has; None for one that it has not."""

    stats: pa.StructType | None
    partition_values: pa.StructType | None

    def fields(self) -> list[pa.Field[Any]]:
        """The fields that they add to ``add``."""
        kinds = {PARTITION_VALUES_PARSED: self.partition_values, STATS_PARSED: self.stats}
        return [pa.field(name, kind) for name, kind in kinds.items() if kind is not None]

    def columns(self, block: pa.Table) -> list[Any]:
        """Their values for files that have ``stats`` and ``partitionValues`` among their columns.

        Raises:
            CorruptTableError: A partition value that its column can't have.
        """
        columns: list[Any] = []
        if self.partition_values is not None:
            values: Any = block["partitionValues"].combine_chunks()
            columns.append(_partitions(values, self.partition_values))
        if self.stats is not None:
            columns.append(parsed_stats(block["stats"], self.stats))
        return columns


def typed_columns(protocol: Protocol, metadata: Metadata, *, wanted: bool) -> TypedColumns:
    """The typed columns of a table's checkpoints; none unless ``wanted``."""
    if not wanted:
        return TypedColumns(stats=None, partition_values=None)
    mapping = column_mapping(protocol, metadata)
    pairs = list(zip(mapping.logical, mapping.physical, strict=True))
    partitions = [
        pa.field(physical.name, physical.type)
        for column in metadata.partition_columns
        for logical, physical in pairs
        if logical.name == column
    ]
    data = [pair for pair in pairs if pair[0].name not in metadata.partition_columns]
    return TypedColumns(
        stats=_stats_type(data, protocol, metadata),
        partition_values=pa.struct(partitions) if partitions else None,
    )


def _stats_type(data: Sequence[Any], protocol: Protocol, metadata: Metadata) -> pa.StructType:
    named = data_skipping_stats_columns(metadata.configuration)
    most = data_skipping_num_indexed_cols(metadata.configuration)
    left = iter(range(most)) if named is None and most >= 0 else None
    bounds, nulls = _indexed(data, (), named, left)
    members: list[pa.Field[Any]] = [pa.field("numRecords", pa.int64())]
    if supports_writer_feature(protocol, "deletionVectors"):
        members.append(pa.field("tightBounds", pa.bool_()))
    if bounds:
        members += [pa.field(name, pa.struct(bounds)) for name in ("minValues", "maxValues")]
    if nulls:
        members.append(pa.field("nullCount", pa.struct(nulls)))
    return pa.struct(members)


def _indexed(
    pairs: Sequence[Any],
    path: tuple[str, ...],
    named: Sequence[tuple[str, ...]] | None,
    left: Iterator[int] | None,
) -> tuple[list[pa.Field[Any]], list[pa.Field[Any]]]:
    """The fields of bounds and of null counts, of the columns that statistics are kept of.

    Args:
        pairs: Fields by logical and by physical names.
        path: Where they are, by logical names.
        named: Paths of the only columns that count, with all below them.
        left: Gives one item for each leaf column that still counts; None for no end.
    """
    bounds: list[pa.Field[Any]] = []
    nulls: list[pa.Field[Any]] = []
    for logical, physical in pairs:
        here = (*path, logical.name)
        if isinstance(physical.type, pa.StructType):
            inner = list(zip(logical.type, physical.type, strict=True))
            inner_bounds, inner_nulls = _indexed(inner, here, named, left)
            if inner_bounds:
                bounds.append(pa.field(physical.name, pa.struct(inner_bounds)))
            if inner_nulls:
                nulls.append(pa.field(physical.name, pa.struct(inner_nulls)))
        elif _counts(here, named) and (left is None or next(left, None) is not None):
            nulls.append(pa.field(physical.name, pa.int64()))
            if any(is_bounded(physical.type) for is_bounded in _BOUNDED):
                bounds.append(pa.field(physical.name, physical.type))
    return bounds, nulls


def _counts(path: tuple[str, ...], named: Sequence[tuple[str, ...]] | None) -> bool:
    return named is None or any(path[: len(name)] == name for name in named)


def _partitions(values: Any, kind: pa.StructType) -> pa.StructArray:  # noqa: ANN401 -- a MapArray
    """Partition values, typed: each distinct one is decoded once."""
    columns: list[Any] = []
    for field in kind:
        texts: Any = pc.map_lookup(values, pa.scalar(field.name), "first")
        found = texts.dictionary_encode()
        distinct = [
            decode_partition_value(text, field.type) for text in found.dictionary.to_pylist()
        ]
        columns.append(pa.array(distinct, field.type).take(found.indices))
    return pa.StructArray.from_arrays(columns, fields=list(kind))
