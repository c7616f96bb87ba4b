"""What of a table a reader of its data files must know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from streamlake.errors import CorruptTableError, InvalidInputError
from streamlake.protocol import ColumnMapping, Metadata, Protocol, column_mapping


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The columns of a table: what they are called outside and in files, and where they are."""

    mapping: ColumnMapping
    partition_columns: tuple[str, ...] = ()
    """Logical names. Their values are in the log; what data files hold of them does not count."""

    @property
    def schema(self) -> pa.Schema:
        """The table's, by its logical names."""
        return self.mapping.logical

    def physical(self, field: pa.Field[Any]) -> pa.Field[Any]:
        """A column of the schema as data files have it."""
        return self.mapping.physical.field(self.schema.get_field_index(field.name))


def table_columns(protocol: Protocol, metadata: Metadata, *, where: str = "") -> TableColumns:
    """The columns of a table at one version.

    Raises:
        CorruptTableError: It is partitioned by a column that it does not have; or as
            ``column_mapping``.
        TableError: As ``column_mapping``.
    """
    mapping = column_mapping(protocol, metadata, where=where)
    check_partitions(mapping.logical, metadata.partition_columns, where=where)
    return TableColumns(mapping, metadata.partition_columns)


def check_partitions(
    schema: pa.Schema, partition_columns: Sequence[str], *, where: str = ""
) -> None:
    """Refuse partition columns that the schema does not have.

    Raises:
        CorruptTableError: Naming them.
    """
    unknown = set(partition_columns).difference(schema.names)
    if unknown:
        raise CorruptTableError(
            "The table is partitioned by a column that it does not have.",
            where=where,
            found=f"{', '.join(sorted(unknown))}; columns {', '.join(schema.names)}",
            remedy="A faulty writer made the metaData action; have it repaired.",
        )


def check_left_for_files(schema: pa.Schema, partition_columns: Sequence[str]) -> None:
    """Refuse a table to be whose data files would have no column.

    Raises:
        InvalidInputError: All others but partition columns are of no type but null.
    """
    if all(f.name in partition_columns or pa.types.is_null(f.type) for f in schema):
        raise InvalidInputError(
            "Every column is a partition column, so data files would have none.",
            found=f"columns {', '.join(schema.names)}; partitioned by "
            f"{', '.join(partition_columns)}",
            remedy="Keep a column with values that the table is not partitioned by.",
        )


def plain_columns(schema: pa.Schema, partition_columns: Sequence[str] = ()) -> TableColumns:
    """The columns of a table without column mapping."""
    mapping = ColumnMapping(mode="none", logical=schema, physical=schema)
    return TableColumns(mapping, tuple(partition_columns))
