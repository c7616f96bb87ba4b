"""Rows split by the values of the partition columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias, cast

import pyarrow as pa
import pyarrow.compute as pc

from streamlake.data.bounds import Column
from streamlake.data.relabel import relabelled
from streamlake.data.table_columns import check_partitions
from streamlake.errors import ConstraintViolationError, InvalidInputError
from streamlake.protocol.mapping import ColumnMapping, MappingMode, schema_mapping
from streamlake.protocol.partition import encode_partition_value, partition_path

PartitionKey: TypeAlias = tuple[str | None, ...]
"""The encoded values of a partition, in the order of the partition columns."""

MAX_FOLDER_NAME_BYTES = 255
"""What file systems allow of one name. A partition whose folder would pass it has none."""


@dataclass(frozen=True, slots=True)
class FileLayout:
    """How the rows of a table are split into data files (PROTOCOL.md, "Data Files").

    Files, and what the log says of them, have the physical names of columns.
    """

    mapping: ColumnMapping
    partition_columns: tuple[str, ...]
    """By their logical names."""
    file: pa.Schema
    """The columns that data files hold; of metadata only Parquet's field ids."""
    stored: tuple[int, ...]
    """The index of each of ``file``'s columns in ``table``."""

    @property
    def table(self) -> pa.Schema:
        """All columns, as the table has them."""
        return self.mapping.logical

    def split(self, table: pa.Table) -> Iterator[tuple[PartitionKey, pa.Table]]:
        """The rows of each partition, as its files hold them, in their order.

        Args:
            table: Of exactly the table's schema.
        """
        columns = [table.column(i) for i in self.stored]
        if self.mapping.is_mapped:
            columns = [
                relabelled(column, field.type)
                for column, field in zip(columns, self.file, strict=True)
            ]
        rows = pa.Table.from_arrays(columns, schema=self.file)
        if not self.partition_columns:
            yield (), rows
        elif table.num_rows:
            columns = [table.column(name) for name in self.partition_columns]
            for first, members in _groups(columns):
                key = tuple(
                    _encoded(column[first], self.table.field(name))
                    for name, column in zip(self.partition_columns, columns, strict=True)
                )
                yield key, rows if members is None else rows.take(members)

    def partition_values(self, key: PartitionKey) -> dict[str, str | None]:
        """The value of ``add.partitionValues``."""
        names = [self.mapping.physical_name(column) for column in self.partition_columns]
        return dict(zip(names, key, strict=True))

    def folder(self, key: PartitionKey) -> str:
        """The folder of a partition's files under the table's root: "" or "a=1/b=2/"."""
        if not key:
            return ""
        values = dict(zip(self.partition_columns, key, strict=True))
        path = partition_path(self.partition_columns, values)
        longest = max(len(name.encode()) for name in path.split("/"))
        return path if longest <= MAX_FOLDER_NAME_BYTES else ""


@lru_cache(maxsize=256)
def file_layout(
    schema_json: str, partition_columns: tuple[str, ...], mode: MappingMode = "none"
) -> FileLayout:
    """The layout of a table.

    Columns of no type but null are in no file (PROTOCOL.md, "Void Type").

    Args:
        schema_json: ``metaData.schemaString``.
        partition_columns: ``metaData.partitionColumns``.
        mode: How columns are mapped.

    Raises:
        InvalidInputError: No column is left for the files.
        CorruptTableError: It is partitioned by a column that it does not have.
    """
    mapping = schema_mapping(schema_json, mode)
    schema = mapping.logical
    check_partitions(schema, partition_columns)
    stored = tuple(
        i
        for i, field in enumerate(schema)
        if field.name not in partition_columns and not pa.types.is_null(field.type)
    )
    if not stored:
        raise InvalidInputError(
            "The table has no column but those that it is partitioned by.",
            found=f"columns {', '.join(schema.names)}",
            remedy="Give it a column that data files can hold.",
        )
    fields = [mapping.physical.field(i) for i in stored]
    return FileLayout(mapping, partition_columns, pa.schema(fields), stored)


def _encoded(value: pa.Scalar[Any], field: pa.Field[Any]) -> str | None:
    try:
        text = encode_partition_value(value.as_py(), field.type)
    except (ValueError, OverflowError) as error:
        raise InvalidInputError(
            f"A value of partition column {field.name!r} can't be written.",
            found=str(error),
            remedy="Keep partition values within the years 1 to 9999.",
        ) from error
    if text is None and not field.nullable:
        # Only empty strings and bytes come here: the log can't tell them from null.
        raise ConstraintViolationError(
            f"Partition column {field.name!r} is NOT NULL, where an empty value counts as null.",
            found=repr(value.as_py()),
            remedy="Fill or drop those rows; nothing of this data was written.",
        )
    return text


def _groups(columns: list[Column]) -> Iterator[tuple[int, pa.Array[Any] | None]]:
    """Of each distinct combination of values its first row and all of its rows, ascending.

    None in place of the rows where there is but one combination.
    """
    codes = _codes(columns[0])
    for column in columns[1:]:
        more = _codes(column)
        # Made dense again after each step, so that the product can't pass int64.
        pairs = pc.add(pc.multiply(codes, len(columns[0])), more)
        codes = _codes(pa.chunked_array([pairs]))
    order = pc.sort_indices(codes)  # stable
    runs = cast("Any", pc.call_function("run_end_encode", [codes.take(order)]))
    ends: list[int] = runs.run_ends.to_pylist()
    if len(ends) == 1:
        yield 0, None
        return
    start = 0
    for end in ends:
        members = order[start:end]
        yield members[0].as_py(), members
        start = end


def _codes(column: Column) -> pa.Array[Any]:
    """The number of each row's value among the column's distinct ones; null is one of them."""
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    return encoded.indices.cast(pa.int64())
