"""Rows together with the ids that they keep when they move (PROTOCOL.md, "Row Tracking").

The ids of rows that were moved before are in two hidden columns of their file, whose names are in
the table's properties; those of other rows follow from the file and their place in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streamlake.data.deletion_vectors import read_deleted_rows
from streamlake.data.limits import DEFAULT_READ_LIMITS
from streamlake.data.reader import read_file
from streamlake.data.stager import Stager
from streamlake.data.table_columns import TableColumns
from streamlake.errors import CorruptTableError, UnsupportedFeatureError
from streamlake.protocol import AddFile, schema_to_json, with_field_metadata
from streamlake.protocol.mapping import PHYSICAL_NAME
from streamlake.protocol.properties import MATERIALIZED_ROW_COMMIT_VERSION, MATERIALIZED_ROW_ID
from streamlake.storage import ObjectStore


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptIds:
    """The hidden columns of a table whose rows keep their ids."""

    table: TableColumns
    """Without them."""
    row_id: str
    commit_version: str

    @classmethod
    def of(cls, table: TableColumns, configuration: Mapping[str, str], *, where: str) -> KeptIds:
        """The hidden columns by the table's properties.

        Raises:
            CorruptTableError: The properties name none.
            UnsupportedFeatureError: Columns are found by ids, which these have none of.
        """
        names = [
            configuration.get(MATERIALIZED_ROW_ID),
            configuration.get(MATERIALIZED_ROW_COMMIT_VERSION),
        ]
        if None in names:
            raise CorruptTableError(
                "The table keeps row ids (rowTracking) and does not say in which columns.",
                where=where,
                found=f"no {MATERIALIZED_ROW_ID} or {MATERIALIZED_ROW_COMMIT_VERSION}",
                remedy="A faulty writer enabled it; have the properties repaired.",
            )
        if table.mapping.mode == "id":
            raise UnsupportedFeatureError(
                "The table keeps row ids (rowTracking) and finds columns by field ids: its files "
                "can't be rewritten.",
                where=where,
                found="delta.columnMapping.mode=id",
                remedy="Optimize the table with the engine that made it.",
            )
        return cls(table=table, row_id=str(names[0]), commit_version=str(names[1]))

    @property
    def columns(self) -> TableColumns:
        """The table's columns and the hidden ones after them."""
        hidden = [pa.field(name, pa.int64()) for name in (self.row_id, self.commit_version)]
        mapping = self.table.mapping
        return TableColumns(
            replace(
                mapping,
                logical=pa.schema([*mapping.logical, *hidden]),
                physical=pa.schema([*mapping.physical, *hidden]),
            ),
            self.table.partition_columns,
        )

    def read(self, store: ObjectStore, add: AddFile) -> pa.Table:
        """All rows of a file, with their ids and commit versions in the hidden columns.

        Raises:
            CorruptTableError: The file's rows have no ids; or as ``read_file``.
        """
        first, version, vector = (
            add.base_row_id,
            add.default_row_commit_version,
            add.deletion_vector,
        )
        if first is None or version is None:
            raise CorruptTableError(
                "The table keeps row ids (rowTracking), and the rows of a file have none.",
                where=f"{store.url}/{add.path}",
                found="no baseRowId or defaultRowCommitVersion",
                remedy="A faulty writer added it; have the table's row tracking repaired.",
            )
        rows = read_file(store, add, self.columns)
        ones: Any = pa.repeat(1, rows.num_rows + (0 if vector is None else vector.cardinality))
        ids: Any = pa.table(
            {"id": pc.cumulative_sum(ones.cast(pa.int64()), start=pa.scalar(first - 1))}
        )
        if vector is not None:
            ids = read_deleted_rows(store, add, limits=DEFAULT_READ_LIMITS).left(ids, 0)
        fresh = {self.row_id: ids["id"], self.commit_version: pa.scalar(version, pa.int64())}
        for name, value in fresh.items():
            place = rows.schema.get_field_index(name)
            known: Any = pc.coalesce(rows.column(name), value)
            rows = rows.set_column(place, rows.schema.field(place), known)
        return rows

    def stager(self, stager: Stager) -> Stager:
        """A stager of rows as ``read`` gives them."""
        fields = [
            with_field_metadata(field, {PHYSICAL_NAME: field.name})
            if self.table.mapping.is_mapped and field.name in self.hidden
            else field
            for field in self.columns.schema
        ]
        return replace(
            stager, schema_json=schema_to_json(pa.schema(fields)), without_statistics=self.hidden
        )

    @property
    def hidden(self) -> tuple[str, str]:
        """The names of the hidden columns."""
        return self.row_id, self.commit_version
