"""The files of a table that a condition may be true in: partition values first, then statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from streamlake.data.predicates.facts import FileFacts
from streamlake.data.predicates.kernels import Values, chunked, concatenated, is_any, pc, repeated
from streamlake.data.predicates.skipping import may_be_true
from streamlake.data.predicates.statistics import StatisticsColumn, ranges
from streamlake.data.predicates.tree import (
    Call,
    ColumnPath,
    Expression,
    columns_of,
    conjuncts,
)
from streamlake.data.table_columns import TableColumns
from streamlake.errors import StreamlakeError
from streamlake.log.files import FileList
from streamlake.protocol.partition import decode_partition_value
from streamlake.protocol.schema import field_metadata

_TYPE_CHANGES = "delta.typeChanges"


def select_files(files: FileList, condition: Expression, table: TableColumns) -> FileList:
    """The files that may hold a row for which ``condition`` is true, in their order.

    Statistics are read only of files whose partition is not ruled out, and only where the condition
    asks for columns that have them.

    Args:
        files: Of the table.
        condition: Over the table's logical names.
        table: Its columns, as they are now.
    """
    parts = conjuncts(condition)
    of_partitions = [part for part in parts if _partitioned(part, table)]
    of_rows = [part for part in parts if not _partitioned(part, table)]
    for some, names in ((of_partitions, ["partitionValues"]), (of_rows, _names(of_rows, table))):
        if some and len(files):
            masks = [_mask(block, some, table) for block in files.blocks(names)]
            files = files.filter(chunked(masks, pa.bool_()))
    return files


def _partitioned(part: Expression, table: TableColumns) -> bool:
    return all(path[0] in table.partition_columns for path in columns_of(part))


def _names(parts: Sequence[Expression], table: TableColumns) -> list[str]:
    mixed = any(path[0] in table.partition_columns for part in parts for path in columns_of(part))
    return ["stats", "partitionValues"] if mixed else ["stats"]


def _mask(block: pa.Table, parts: Sequence[Expression], table: TableColumns) -> Values:
    whole = parts[0] if len(parts) == 1 else Call("and", tuple(parts), pa.bool_())
    try:
        return may_be_true(whole, _facts(block, columns_of(whole), table))
    except pa.ArrowException:  # what can't be told of files keeps them in
        return repeated(value=True, count=block.num_rows)


def _facts(
    block: pa.Table, columns: Mapping[ColumnPath, pa.DataType], table: TableColumns
) -> FileFacts:
    inner = [path for path in columns if path[0] in table.partition_columns]
    leaves = [path for path in columns if path[0] not in table.partition_columns]
    batch, doubtful = _partition_values(block, inner, table) if inner else (None, None)
    if not leaves:
        return FileFacts(block.num_rows, batch, doubtful)
    wanted = [_statistics_column(path, columns[path], table) for path in leaves]
    found = ranges(block.column("stats"), wanted)
    return FileFacts(block.num_rows, batch, doubtful, dict(zip(leaves, found, strict=True)))


def _statistics_column(
    path: ColumnPath, kind: pa.DataType, table: TableColumns
) -> StatisticsColumn:
    fields: Any = table.schema
    widened = False
    for name in path:
        field = fields.field(name)
        widened = widened or _TYPE_CHANGES in field_metadata(field)
        fields = field.type
    return StatisticsColumn(table.mapping.physical_path(path), kind, widened)


def _partition_values(
    block: pa.Table, paths: Sequence[ColumnPath], table: TableColumns
) -> tuple[pa.RecordBatch, Values | None]:
    """The values of partition columns, and the files of which one is not known."""
    encoded = block.column("partitionValues").combine_chunks()
    found, doubtful = [], None
    for (name,) in paths:
        values, doubt = _decoded(
            encoded, table.mapping.physical_name(name), table.schema.field(name)
        )
        found.append(values)
        if doubt is not None:
            doubtful = doubt if doubtful is None else pc.or_(doubtful, doubt)
    return pa.RecordBatch.from_arrays(found, names=[path[0] for path in paths]), doubtful


def _decoded(encoded: Values, key: str, field: pa.Field[Any]) -> tuple[Values, Values | None]:
    """The values of one partition column; each distinct one is decoded once."""
    if isinstance(encoded, pa.ChunkedArray):
        encoded = concatenated(encoded.chunks)
    text: Any = pc.map_lookup(encoded, query_key=key, occurrence="first")
    missing: Values | None = None
    if text.null_count:
        absent = pc.is_null(pc.map_lookup(encoded, query_key=key, occurrence="all"))
        missing = absent if is_any(absent) else None
    codes = text.dictionary_encode()
    values, wrong = [], []
    for one in codes.dictionary.to_pylist():
        try:
            values.append(decode_partition_value(one, field.type))
            wrong.append(False)
        except StreamlakeError:
            values.append(None)
            wrong.append(True)
    found = pa.array(values, field.type).take(codes.indices)
    if any(wrong):
        doubt = pc.fill_null(pa.array(wrong).take(codes.indices), fill_value=False)
        missing = doubt if missing is None else pc.or_(missing, doubt)
    return found, missing
