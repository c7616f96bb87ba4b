"""Read a snapshot's rows."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from streamlake.data import joined, projected, read_file, table_columns
from streamlake.data.predicates import (
    columns_read,
    condition,
    matching_files,
    matching_rows,
)
from streamlake.errors import InvalidInputError
from streamlake.log import FileList, Snapshot
from streamlake.storage import ObjectStore


def list_files(snapshot: Snapshot, where: str | None = None) -> FileList:
    """The files of a snapshot in the log's order; with ``where`` those that may hold a match.

    Raises:
        InvalidInputError: ``where`` is no condition over the table's columns.
    """
    if where is None:
        return snapshot.files()
    table = table_columns(snapshot.protocol, snapshot.metadata)
    return matching_files(snapshot.files(), where, table)


def read_rows(
    store: ObjectStore,
    snapshot: Snapshot,
    *,
    columns: Sequence[str] | None = None,
    where: str | None = None,
) -> pa.Table:
    """The rows of a snapshot, file by file in the log's order.

    Args:
        store: Rooted at the table.
        snapshot: Of the table.
        columns: Which columns, in which order; all for None.
        where: Which rows, as an SQL condition; all for None. Files that can't hold any are not
            opened.

    Raises:
        InvalidInputError: A column that the table does not have; ``where`` is no condition over
            the table's columns, or can't be computed for a row.
        CorruptTableError: A data file is missing, torn or garbled.
    """
    table = table_columns(snapshot.protocol, snapshot.metadata, where=store.url)
    try:
        schema = projected(table.schema, columns)
    except InvalidInputError as error:
        error.where = store.url
        raise
    if where is None:
        tables = (read_file(store, add, table, columns=columns) for add in snapshot.files())
        return joined(tables, schema)
    wanted = condition(where, table.schema)
    needed = list(dict.fromkeys([*schema.names, *columns_read(wanted)]))
    found = (
        matching_rows(read_file(store, add, table, columns=needed), wanted).select(schema.names)
        for add in list_files(snapshot, where)
    )
    return joined(found, schema)
