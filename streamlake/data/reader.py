"""Data files read back, with the types that the table has now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from streamlake.data.bounds import Column
from streamlake.data.cast import cast_column, fits
from streamlake.data.constraints import check_not_null, required_columns, tighten
from streamlake.data.limits import DEFAULT_READ_LIMITS, ReadLimits
from streamlake.data.source import open_source
from streamlake.errors import (
    ConstraintViolationError,
    CorruptTableError,
    InvalidInputError,
    LimitExceededError,
    UnsupportedFeatureError,
)
from streamlake.protocol.actions import AddFile
from streamlake.protocol.partition import decode_partition_value
from streamlake.protocol.paths import resolve_path
from streamlake.storage.store import ObjectStore

_SINGLE_THREADED_BYTES = 2**20
"""Below that size of a file threads cost more than they save."""


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
    file = _DataFile(
        store,
        add,
        schema=schema,
        partition_columns=partition_columns,
        columns=columns,
        limits=limits,
    )
    if file.rows <= limits.batch_rows:
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
    file = _DataFile(
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


class _DataFile:
    """A data file that is open for reading."""

    def __init__(
        self,
        store: ObjectStore,
        add: AddFile,
        *,
        schema: pa.Schema,
        partition_columns: Sequence[str],
        columns: Sequence[str] | None,
        limits: ReadLimits,
    ) -> None:
        path = resolve_path(add.path, root_url=store.url)
        self.where = f"{store.url.rstrip('/')}/{path}"
        if add.deletion_vector is not None:
            raise UnsupportedFeatureError(
                "A data file has a deletion vector, which can't be read yet.",
                where=self.where,
                found=f"{add.deletion_vector.cardinality} of its rows are deleted",
                remedy="Have the engine that deleted them purge the table (REORG, APPLY PURGE).",
            )
        self._schema = _projected(schema, columns)
        self._add = add
        self._limits = limits
        self._threads = add.size >= _SINGLE_THREADED_BYTES
        source = open_source(store, path, add.size, limits)
        with self._telling_corruption():
            self._file = pq.ParquetFile(
                source,
                pre_buffer=True,
                coerce_int96_timestamp_unit="us",
                thrift_string_size_limit=limits.footer_bytes,
                thrift_container_size_limit=limits.footer_elements,
                page_checksum_verification=True,
            )
            self.rows = self._file.metadata.num_rows
            self._stored = self._stored_names(self._file.schema_arrow.names, partition_columns)
            self._constants = {
                field.name: _partition_value(add, field)
                for field in self._schema
                if field.name in partition_columns
            }

    def _stored_names(self, names: list[str], partition_columns: Sequence[str]) -> dict[str, str]:
        """By the name of each column that the file holds, its name in the file."""
        exact, folded = set(names), {name.lower(): name for name in names}
        return {
            name: name if name in exact else folded[name.lower()]
            for name in self._schema.names
            if name not in partition_columns and (name in exact or name.lower() in folded)
        }

    def read(self) -> pa.Table:
        with self._telling_corruption():
            table = self._file.read(columns=list(self._stored.values()), use_threads=self._threads)
        self._check_decoded(table.nbytes)
        return self._as_of_now(table)

    def batches(self, start_row: int) -> Iterator[pa.Table]:
        decoded_bytes = 0
        for table in self._decoded(start_row):
            decoded_bytes += table.nbytes
            self._check_decoded(decoded_bytes)
            yield self._as_of_now(table)

    def _decoded(self, start_row: int) -> Iterator[pa.Table]:
        skip = start_row
        for group in range(self._file.num_row_groups):
            rows = self._file.metadata.row_group(group).num_rows
            if skip >= rows:
                skip -= rows
                continue
            with self._telling_corruption():
                batches = self._file.iter_batches(
                    batch_size=self._limits.batch_rows,
                    row_groups=[group],
                    columns=list(self._stored.values()),
                    use_threads=self._threads,
                )
            while True:
                with self._telling_corruption():
                    batch = next(batches, None)
                if batch is None:
                    break
                if skip < batch.num_rows:
                    yield pa.Table.from_batches([batch.slice(skip)])
                skip = max(0, skip - batch.num_rows)

    def _as_of_now(self, table: pa.Table) -> pa.Table:
        columns = [self._column(table, field) for field in self._schema]
        try:
            check_not_null(columns, self._schema)
        except ConstraintViolationError as error:
            raise self._corrupt(error.found) from error
        for i, inside in required_columns(self._schema):
            if inside:
                columns[i] = tighten(columns[i], self._schema.field(i))
        if not columns:
            return table.select([])
        return pa.Table.from_arrays(columns, schema=self._schema)

    def _column(self, table: pa.Table, field: pa.Field[Any]) -> Column:
        if field.name in self._constants:
            return pa.chunked_array([pa.repeat(self._constants[field.name], table.num_rows)])
        if field.name not in self._stored:
            return pa.chunked_array([pa.nulls(table.num_rows, field.type)])
        column = table.column(self._stored[field.name])
        if not fits(column.type, field.type, stored=True):
            raise self._corrupt(f"column {field.name!r} is {column.type}, not {field.type}")
        with self._telling_corruption():
            return cast_column(column, field.type)

    def _check_decoded(self, size_bytes: int) -> None:
        if size_bytes > self._limits.decoded_bytes:
            raise LimitExceededError(
                "A data file is larger than the limit when it is decoded.",
                where=self.where,
                found=f"over {size_bytes} bytes from a file of {self._add.size}; "
                f"ReadLimits.decoded_bytes is {self._limits.decoded_bytes}",
                remedy="Read it in parts, or raise the limit if you trust the file's writer.",
            )

    @contextmanager
    def _telling_corruption(self) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise self._corrupt(str(error)) from error

    def _corrupt(self, found: str) -> CorruptTableError:
        return CorruptTableError(
            "A data file is garbled or contradicts the table's schema.",
            where=self.where,
            found=found,
            remedy="Restore the file from a copy, or delete its rows from the table.",
        )


def _partition_value(add: AddFile, field: pa.Field[Any]) -> Any:  # noqa: ANN401 - an Arrow scalar
    value = decode_partition_value(add.partition_values.get(field.name), field.type)
    return pa.scalar(value, field.type)


def _projected(schema: pa.Schema, columns: Sequence[str] | None) -> pa.Schema:
    if columns is None:
        return schema
    unknown = [name for name in columns if name not in schema.names]
    if unknown:
        raise InvalidInputError(
            f"The table has no column {unknown[0]!r}.",
            found=f"columns {', '.join(schema.names)}",
            remedy="Ask for columns that the table has.",
        )
    return pa.schema([schema.field(name) for name in columns])
