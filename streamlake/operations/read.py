"""Read a snapshot's rows."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from streamlake.data import joined, projected, read_file, table_columns
from streamlake.log import Snapshot
from streamlake.storage import ObjectStore


def read_rows(
    store: ObjectStore, snapshot: Snapshot, *, columns: Sequence[str] | None = None
) -> pa.Table:
    """All rows of a snapshot, file by file in the log's order; only ``columns`` where given.

    Raises:
        InvalidInputError: A column that the table does not have.
        CorruptTableError: A data file is missing, torn or garbled.
    """
    table = table_columns(snapshot.protocol, snapshot.metadata, where=store.url)
    schema = projected(table.schema, columns)
    tables = (
        read_file(
            store,
            add,
            table,
            columns=columns,
        )
        for add in snapshot.files()
    )
    return joined(tables, schema)
