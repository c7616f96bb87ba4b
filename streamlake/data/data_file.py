"""One data file: opened, checked against the log, decoded, brought to the table's types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from streamlake.data.bounds import Column
from streamlake.data.constraints import check_not_null, required_columns, tighten
from streamlake.data.deletion_vectors import DeletedRows, read_deleted_rows
from streamlake.data.legacy_calendar import LegacyCalendar
from streamlake.data.limits import ReadLimits
from streamlake.data.projection import projected
from streamlake.data.source import open_source
from streamlake.data.stored import (
    Convert,
    Matcher,
    StoredMismatchError,
    converted,
)
from streamlake.data.table_columns import TableColumns
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

_FOOTER_LIMIT = "Exceeded size limit"
"""Of the message where the footer's decoder meets one of its limits."""
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
        table: TableColumns,
        *,
        columns: Sequence[str] | None,
        limits: ReadLimits,
    ) -> None:
        path = resolve_path(add.path, root_url=store.url)
        self.where = f"{store.url.rstrip('/')}/{path}"
        """The file, for messages."""
        self._table = table
        self._schema = projected(table.schema, columns)
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
            self._stored_rows = self._file.metadata.num_rows
            self._calendar = LegacyCalendar.of(self._file.metadata.metadata, where=self.where)
            self._stored = self._matched()
        self._constants = {
            field.name: self._partition_value(field)
            for field in self._schema
            if field.name in table.partition_columns
        }
        self._check_statistics()
        self._deleted = self._read_deleted(store)
        self.rows = self._stored_rows - (self._deleted.count if self._deleted else 0)
        """How many rows of the file are the table's."""

    @property
    def schema(self) -> pa.Schema:
        """Of the rows that it gives."""
        return self._schema

    @property
    def fits_one_step(self) -> bool:
        """Whether the file may be decoded at once: it is small, or nothing of it is asked for."""
        return self._stored_rows <= self._limits.batch_rows or not self._schema.names

    def _read_deleted(self, store: ObjectStore) -> DeletedRows | None:
        if self._add.deletion_vector is None:
            return None
        deleted = read_deleted_rows(store, self._add, limits=self._limits)
        if deleted.count and deleted.places.max() >= self._stored_rows:
            raise self._corrupt(
                f"{self._stored_rows} rows; its deletion vector names row {deleted.places.max()}"
            )
        return deleted if deleted.count else None

    def _check_statistics(self) -> None:
        """A footer has no checksum; the log knows enough to tell most of the damage there."""
        known = _known_statistics(self._add)
        if known.num_records not in (None, self._stored_rows):
            raise self._corrupt(f"{self._stored_rows} rows; the log says {known.num_records}")
        for field in self._schema:
            if field.name in self._constants or field.name in self._stored:
                continue
            name = self._table.physical(field).name
            if _has_values(known.null_count.get(name), self._stored_rows):
                raise self._corrupt(f"no column {name!r}; the log knows values of it")

    def _matched(self) -> dict[str, _StoredColumn]:
        """By the name of each column that the file holds, where it is and how it is read."""
        stored = list(self._file.schema_arrow)
        matcher = Matcher(by_id=self._table.mapping.mode == "id")
        found: dict[str, _StoredColumn] = {}
        try:
            siblings = matcher.siblings(stored)
            for field in self._schema:
                physical = self._table.physical(field)
                if field.name in self._table.partition_columns or pa.types.is_null(field.type):
                    continue
                at = siblings.find(physical, (field.name,))
                if at is not None:
                    kinds = stored[at].type, field.type, physical.type
                    plan = matcher.plan(*kinds, (field.name,))
                    found[field.name] = _StoredColumn(stored[at].name, plan)
        except StoredMismatchError as error:
            raise self._corrupt(str(error)) from error
        except UnsupportedFeatureError as error:
            error.where = self.where
            raise
        names = [field.name for field in stored]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise self._corrupt(f"several columns {twice!r}")
        return found

    def _partition_value(self, field: pa.Field[Any]) -> Any:  # noqa: ANN401 - an Arrow scalar
        values, name = self._add.partition_values, self._table.physical(field).name
        if name not in values:
            known = {
                self._table.physical(self._table.schema.field(column)).name
                for column in self._table.partition_columns
            }
            unknown = sorted(values.keys() - known)
            if unknown:
                raise self._corrupt(
                    f"no value of partition column {name!r} in the log, but of {unknown[0]!r}"
                )
        try:
            value = decode_partition_value(values.get(name), field.type)
        except CorruptTableError as error:
            error.where = self.where
            raise
        except InvalidInputError as error:
            raise self._corrupt(f"partition column {field.name!r} of the type {field.type}") from (
                error
            )
        return pa.scalar(value, field.type)

    def _stored_names(self) -> list[str]:
        return [column.name for column in self._stored.values()]

    def read(self) -> pa.Table:
        """All rows, decoded in one step."""
        with self._telling_corruption():
            table = self._file.read(columns=self._stored_names(), use_threads=self._threads)
        self._check_decoded(table.nbytes)
        return self._as_of_now(table, 0)

    def batches(self, start_row: int) -> Iterator[pa.Table]:
        """The rows from ``start_row`` on, at most ``limits.batch_rows`` at a time, none empty."""
        place = start_row
        if self._deleted is not None:
            place = self._deleted.place_of(start_row, self._stored_rows)
        decoded_bytes = 0
        for at, table in self._decoded(place):
            decoded_bytes += table.nbytes
            self._check_decoded(decoded_bytes)
            rows = self._as_of_now(table, at)
            if rows.num_rows:
                yield rows

    def _decoded(self, start: int) -> Iterator[tuple[int, pa.Table]]:
        """What is stored from the row at ``start`` on, each part with the place of its first."""
        skip, at = start, 0
        for group in range(self._file.num_row_groups):
            rows = self._file.metadata.row_group(group).num_rows
            if skip >= rows:
                skip -= rows
                at += rows
                continue
            for batch in self._batches_of(group):
                if skip < batch.num_rows:
                    yield at + skip, pa.Table.from_batches([batch.slice(skip)])
                skip = max(0, skip - batch.num_rows)
                at += batch.num_rows

    def _batches_of(self, group: int) -> Iterator[pa.RecordBatch]:
        with self._telling_corruption():
            batches = self._file.iter_batches(
                batch_size=self._limits.batch_rows,
                row_groups=[group],
                columns=self._stored_names(),
                use_threads=self._threads,
            )
        while True:
            with self._telling_corruption():
                batch = next(batches, None)
            if batch is None:
                return
            yield batch

    def _as_of_now(self, table: pa.Table, at: int) -> pa.Table:
        """Rows of the file as the table has them; the first one of them stands at ``at``."""
        if self._deleted is not None:
            table = self._deleted.left(table, at)
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
        found = self._stored.get(field.name)
        if found is None:
            return pa.chunked_array([pa.nulls(table.num_rows, field.type)])
        column = table.column(found.name)
        self._calendar.check(column, field.name)
        with self._telling_corruption():
            return converted(column, found.convert, field.type)

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
            if _FOOTER_LIMIT in str(error):
                raise self._past_footer_limit() from error
            raise self._corrupt(str(error)) from error

    def _past_footer_limit(self) -> LimitExceededError:
        return LimitExceededError(
            "The footer of a data file is past a limit.",
            where=self.where,
            found="a string or a list in it that is too long; ReadLimits.footer_bytes is "
            f"{self._limits.footer_bytes}, footer_elements {self._limits.footer_elements}",
            remedy="It is garbled, or its writer made a file of very many columns: raise the "
            "limits if you trust it.",
        )

    def _corrupt(self, found: str) -> CorruptTableError:
        return CorruptTableError(
            "A data file is garbled or contradicts the table's schema.",
            where=self.where,
            found=found,
            remedy="Restore the file from a copy, or delete its rows from the table.",
        )


@dataclass(frozen=True, slots=True)
class _StoredColumn:
    name: str
    """In the file."""
    convert: Convert | None
    """From the file's type to the table's; None where they are one."""


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
