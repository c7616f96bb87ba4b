"""Data files read back, with the types that the table has now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from streamlake.data.data_file import DataFile
from streamlake.data.limits import DEFAULT_READ_LIMITS, ReadLimits
from streamlake.data.projection import joined
from streamlake.data.table_columns import TableColumns
from streamlake.errors import InvalidInputError
from streamlake.protocol.actions import AddFile
from streamlake.storage.store import ObjectStore


def read_file(
    store: ObjectStore,
    add: AddFile,
    table: TableColumns,
    *,
    columns: Sequence[str] | None = None,
    limits: ReadLimits = DEFAULT_READ_LIMITS,
) -> pa.Table:
    """All rows of a data file that are not deleted, in their order.

    Columns that the file is older than are null, types are widened to the table's, partition
    columns come from the log. A small file takes one request; of a large one only the columns that
    are asked for are fetched. A deletion vector in a file of its own takes one request more.

    Args:
        store: Rooted at the table.
        add: The file, as the log has it.
        table: Its columns at the version that is read.
        columns: Which columns, in which order; all for None.
        limits: What may be fetched and decoded.

    Returns:
        A table of the schema's fields named by ``columns``.

    Raises:
        CorruptTableError: The file is missing, torn, garbled, or contradicts the schema.
        LimitExceededError: The footer, or the decoded rows, are larger than a limit.
        UnsupportedFeatureError: The file is encrypted, holds a shredded variant, or times of the
            calendar before 1582.
        UnsafePathError: The path leaves the table.
        InvalidInputError: A column that the table does not have.
    """
    file = DataFile(
        store,
        add,
        table,
        columns=columns,
        limits=limits,
    )
    if file.fits_one_step:
        return file.read()
    return joined(file.batches(0), file.schema)


def iter_file(
    store: ObjectStore,
    add: AddFile,
    table: TableColumns,
    *,
    columns: Sequence[str] | None = None,
    start_row: int = 0,
    limits: ReadLimits = DEFAULT_READ_LIMITS,
) -> Iterator[pa.Table]:
    """The rows of a data file that are not deleted, from the ``start_row``-th of them on.

    Every table has a row or more and at most ``limits.batch_rows``; they follow one another without
    a gap, so the next starts at ``start_row`` plus the rows given so far. Row groups before
    ``start_row`` are not decoded. Memory: one row group's encoded columns and one batch.

    Args:
        store: As ``read_file``.
        add: As ``read_file``.
        table: As ``read_file``.
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
        table,
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
