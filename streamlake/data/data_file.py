"""One data file: opened, checked against the log, decoded, brought to the table's types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from streamlake.data.bounds import Column
from streamlake.data.cast import cast_column, fits
from streamlake.data.constraints import check_not_null, required_columns, tighten
from streamlake.data.limits import ReadLimits
from streamlake.data.projection import projected
from streamlake.data.source import open_source
from streamlake.errors import (
    ConstraintViolationError,
    CorruptTableError,
    LimitExceededError,
    UnsupportedFeatureError,
)
from streamlake.protocol.actions import AddFile
from streamlake.protocol.partition import decode_partition_value
from streamlake.protocol.paths import resolve_path
from streamlake.storage.store import ObjectStore

_SINGLE_THREADED_BYTES = 2**20
"""Below that size of a file threads cost more than they save."""


class DataFile:
    """A data file that is open for reading, and how its columns become the table's.

    Args and errors as ``reader.read_file``.
    """

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
        """The file, for messages."""
        if add.deletion_vector is not None:
            raise UnsupportedFeatureError(
                "A data file has a deletion vector, which can't be read yet.",
                where=self.where,
                found=f"{add.deletion_vector.cardinality} of its rows are deleted",
                remedy="Have the engine that deleted them purge the table (REORG, APPLY PURGE).",
            )
        self._schema = projected(schema, columns)
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
            """How many rows the file holds."""
            self._stored = self._stored_names(self._file.schema_arrow.names, partition_columns)
            self._constants = {
                field.name: _partition_value(add, field)
                for field in self._schema
                if field.name in partition_columns
            }
        self._check_statistics(partition_columns)

    def _check_statistics(self, partition_columns: Sequence[str]) -> None:
        """A footer has no checksum; the log knows enough to tell most of the damage there."""
        known = _known_statistics(self._add)
        if known.num_records not in (None, self.rows):
            raise self._corrupt(f"{self.rows} rows; the log says {known.num_records}")
        for name in self._schema.names:
            if name in partition_columns or name in self._stored:
                continue
            if _has_values(known.null_count.get(name), self.rows):
                raise self._corrupt(f"no column {name!r}; the log knows values of it")

    def _stored_names(self, names: list[str], partition_columns: Sequence[str]) -> dict[str, str]:
        """By the name of each column that the file holds, its name in the file."""
        exact, folded = set(names), {name.lower(): name for name in names}
        return {
            name: name if name in exact else folded[name.lower()]
            for name in self._schema.names
            if name not in partition_columns and (name in exact or name.lower() in folded)
        }

    def read(self) -> pa.Table:
        """All rows, decoded in one step."""
        with self._telling_corruption():
            table = self._file.read(columns=list(self._stored.values()), use_threads=self._threads)
        self._check_decoded(table.nbytes)
        return self._as_of_now(table)

    def batches(self, start_row: int) -> Iterator[pa.Table]:
        """The rows from ``start_row`` on, at most ``limits.batch_rows`` at a time, none empty."""
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


class _KnownStatistics(msgspec.Struct, rename="camel"):
    num_records: int | None = None
    null_count: dict[str, Any] = {}


_decode_statistics = msgspec.json.Decoder(_KnownStatistics).decode


def _has_values(null_count: object, rows: int) -> bool:
    """Whether the null count of a column, or one below it, leaves room for a value."""
    if isinstance(null_count, dict):
        return any(_has_values(inner, rows) for inner in null_count.values())
    return isinstance(null_count, int) and 0 <= null_count < rows


def _known_statistics(add: AddFile) -> _KnownStatistics:
    try:
        return _decode_statistics(add.stats or "{}")
    except msgspec.DecodeError:
        return _KnownStatistics()


def _partition_value(add: AddFile, field: pa.Field[Any]) -> Any:  # noqa: ANN401 - an Arrow scalar
    value = decode_partition_value(add.partition_values.get(field.name), field.type)
    return pa.scalar(value, field.type)
