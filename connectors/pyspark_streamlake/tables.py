"""Opening a table that may not be there yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

import streamlake as sl


def open_or_create(
    url: str,
    *,
    schema: Callable[[], pa.Schema],
    partition_by: Sequence[str] = (),
    storage_options: Mapping[str, str],
) -> sl.Table:
    """The table at ``url``; where there is none, a new one. Several may try at once.

    Args:
        url: The table's location.
        schema: Asked for the columns of a new table.
        partition_by: Partition columns of a new table.
        storage_options: What the table's store needs besides the URL.

    Raises:
        TableError: There is something that can't be opened.
        InvalidInputError: Columns that a table can't have.
    """
    try:
        return sl.Table.open(url, storage_options=storage_options)
    except sl.TableNotFoundError:
        pass
    try:
        return sl.Table.create(
            url, schema=schema(), partition_by=partition_by, storage_options=storage_options
        )
    except sl.TableExistsError:
        return sl.Table.open(url, storage_options=storage_options)
