"""Data files read back, with the types that the table has now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from streamlake.data.data_file import DataFile
from streamlake.data.limits import DEFAULT_READ_LIMITS, ReadLimits
from streamlake.errors import (
    InvalidInputError,
)
from streamlake.protocol.actions import AddFile
from streamlake.storage.store import ObjectStore


def read_file(
    store: ObjectStore,
    add: AddFile,
    *,
    schema: pa.Schema,
    partition_columns: Sequence[str],
    columns: Sequence[str] | None = None,
    limits: ReadLimits = DEFAULT_READ_LIMITS,
) -> pa.Table:
    """All rows of a data file, in their order.

    Columns that the file is older than are null, types are widened to the table's, partition
    columns come from the log. A small file takes one request; of a large one only the columns that
    are asked for are fetched.

    Args:
        store: Rooted at the table.
        add: The file, as the log has it.
        schema: The table's.
        partition_columns: The table's.
        columns: Which columns, in which order; all for None.
        limits: What may be fetched and decoded.

    Returns:
        A table of the schema's fields named by ``columns``.

    Raises:
        CorruptTableError: The file is missing, torn, garbled, or contradicts the schema.
        LimitExceededError: The footer, or the decoded rows, are larger than a limit.
        UnsupportedFeatureError: The file has a deletion vector, or is encrypted.
        UnsafePathError: The path leaves the table.
        InvalidInputError: A column that the table does not have.
    """
    file = DataFile(
        store,
        add,
        schema=schema,
        partition_columns=partition_columns,
        columns=columns,
        limits=limits,
    )
    nothing_to_decode = columns is not None and not columns
    if file.rows <= limits.batch_rows or nothing_to_decode:
        return file.read()
    return pa.concat_tables(file.batches(0))


def iter_file(
    store: ObjectStore,
    add: AddFile,
    *,
    schema: pa.Schema,
    partition_columns: Sequence[str],
    columns: Sequence[str] | None = None,
    start_row: int = 0,
    limits: ReadLimits = DEFAULT_READ_LIMITS,
) -> Iterator[pa.Table]:
    """The rows of a data file from ``start_row`` on, a bounded number at a time.

    Every table has a row or more and at most ``limits.batch_rows``; they follow one another without
    a gap, so the next starts at ``start_row`` plus the rows given so far. Row groups before
    ``start_row`` are not decoded. Memory: one row group's encoded columns and one batch.

    Args:
        store: As ``read_file``.
        add: As ``read_file``.
        schema: As ``read_file``.
        partition_columns: As ``read_file``.
        columns: As ``read_file``.
        start_row: How many rows to leave out; 0 for none.
        limits: As ``read_file``.

    Raises:
        InvalidInputError: The file has fewer than ``start_row`` rows.
        StreamlakeError: As ``read_file``, when the rows come to it.
    """
    file = DataFile(
        store,
        add,
        schema=schema,
        partition_columns=partition_columns,
        columns=columns,
        limits=limits,
    )
    if not 0 <= start_row <= file.rows:
        raise InvalidInputError(
            f"There is no row {start_row} to start from.",
            where=file.where,
            found=f"a file of {file.rows} rows",
            remedy="The position belongs to another file, or the file was replaced.",
        )
    yield from file.batches(start_row)
