"""Rows on their way into data files: gathered, split by partition, encoded, put."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from streamlake.clock import Clock
from streamlake.data.limits import WriteLimits
from streamlake.data.parquet import PageVersion, ParquetEncoder
from streamlake.data.partitions import FileLayout, PartitionKey
from streamlake.data.statistics import FileStatistics, Leaf, file_statistics
from streamlake.errors import StorageError
from streamlake.protocol.actions import AddFile
from streamlake.protocol.paths import encode_path
from streamlake.protocol.properties import (
    ParquetCodec,
    parquet_codec,
    parquet_pages,
    random_prefix_length,
)
from streamlake.storage.store import ObjectStore

_ENDINGS: dict[ParquetCodec, str] = {
    "none": ".parquet",
    "snappy": ".snappy.parquet",
    "gzip": ".gz.parquet",
    "lz4": ".lz4.parquet",
    "zstd": ".zstd.parquet",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFormat:
    """How the table's properties want data files to be named and encoded."""

    codec: ParquetCodec
    pages: PageVersion
    random_prefix: int | None
    """The length of the random names of folders, in place of those by partition; None for the
    latter."""

    @classmethod
    def of(cls, configuration: Mapping[str, str], *, mapped: bool) -> FileFormat:
        """The format of a table with these properties, whose columns are mapped or not."""
        return cls(
            codec=parquet_codec(configuration),
            pages=parquet_pages(configuration),
            random_prefix=random_prefix_length(configuration, mapped=mapped),
        )


class Staging:
    """The data files of one commit in the making; used once and by one thread.

    Args:
        store: Rooted at the table.
        layout: How rows are split into files.
        leaves: What statistics are kept of.
        clock: For names and times of files.
        form: How files are named and encoded.
        data_change: What the AddFiles shall say.
        target_file_size_bytes: A file is finished when it has reached this size.
        limits: What may be held in memory.
    """

    def __init__(
        self,
        store: ObjectStore,
        layout: FileLayout,
        leaves: tuple[Leaf, ...],
        *,
        clock: Clock,
        form: FileFormat,
        data_change: bool,
        target_file_size_bytes: int,
        limits: WriteLimits,
    ) -> None:
        self._store = store
        self._layout = layout
        self._leaves = leaves
        self._clock = clock
        self._form = form
        self._data_change = data_change
        self._target_bytes = target_file_size_bytes
        self._limits = limits
        self._gathered: list[pa.Table] = []
        self._gathered_bytes = 0
        self._gathered_rows = 0
        self._open: dict[PartitionKey, _OpenFile] = {}
        self._paths: list[str] = []
        self._adds: list[AddFile] = []

    def take(self, rows: pa.Table) -> None:
        """Add rows of exactly the table's schema."""
        for part, size_bytes in _row_groups(rows, self._limits):
            self._gathered.append(part)
            self._gathered_bytes += size_bytes
            self._gathered_rows += part.num_rows
            if (
                self._gathered_bytes >= self._limits.row_group_bytes
                or self._gathered_rows >= self._limits.row_group_rows
            ):
                self._encode_gathered()

    def finish(self) -> tuple[AddFile, ...]:
        """Put what is left; everything taken is now durable in the files returned."""
        self._encode_gathered()
        for key in list(self._open):
            self._put(key)
        return tuple(self._adds)

    def abandon(self) -> None:
        """Remove the files written so far, as far as the store lets us; nobody knows of them."""
        for path in self._paths:
            with contextlib.suppress(StorageError):
                self._store.delete(path)

    def _encode_gathered(self) -> None:
        if not self._gathered_rows:
            return
        parts = self._gathered
        rows = parts[0] if len(parts) == 1 else pa.concat_tables(parts)
        self._gathered, self._gathered_bytes, self._gathered_rows = [], 0, 0
        for key, members in self._layout.split(rows):
            file = self._open.get(key)
            if file is None:
                file = self._open[key] = _OpenFile(members, self._leaves, self._form)
            file.write(members)
            if file.size_bytes >= self._target_bytes:
                self._put(key)
        self._bound_open_files()

    def _bound_open_files(self) -> None:
        total_bytes = sum(file.size_bytes for file in self._open.values())
        limits = self._limits
        while total_bytes > limits.open_files_bytes or len(self._open) > limits.open_files:
            largest = max(self._open, key=lambda key: self._open[key].size_bytes)
            total_bytes -= self._open[largest].size_bytes
            self._put(largest)

    def _put(self, key: PartitionKey) -> None:
        data, stats = self._open.pop(key).finish()
        unique = self._clock.new_id()
        length = self._form.random_prefix
        folder = self._layout.folder(key) if length is None else f"{unique[:length]}/"
        ending = _ENDINGS[self._form.codec]
        path = f"{folder}part-{len(self._adds):05d}-{unique}-c000{ending}"
        self._paths.append(path)
        self._store.put(path, memoryview(data))
        self._adds.append(
            AddFile(
                path=encode_path(path),
                partition_values=self._layout.partition_values(key),
                size=data.size,
                modification_time=self._clock.now_ms(),
                data_change=self._data_change,
                stats=stats,
            )
        )


class _OpenFile:
    """A data file that rows still join."""

    def __init__(self, first: pa.Table, leaves: tuple[Leaf, ...], form: FileFormat) -> None:
        self._encoder = ParquetEncoder(
            first.schema, rows=first.num_rows, compression=form.codec, pages=form.pages
        )
        self._leaves = leaves
        self._statistics: FileStatistics | None = None

    @property
    def size_bytes(self) -> int:
        return self._encoder.size_bytes

    def write(self, rows: pa.Table) -> None:
        self._encoder.write(rows)
        more = file_statistics(rows, self._leaves)
        self._statistics = more if self._statistics is None else self._statistics.union(more)

    def finish(self) -> tuple[pa.Buffer, str | None]:
        """The file's bytes and its statistics."""
        data = self._encoder.finish()
        return data, None if self._statistics is None else self._statistics.to_json()


def _row_groups(rows: pa.Table, limits: WriteLimits) -> Iterator[tuple[pa.Table, int]]:
    """Parts of about the size of a row group at most, each with its size in bytes."""
    size_bytes = rows.nbytes
    parts = max(
        -(-size_bytes // limits.row_group_bytes), -(-rows.num_rows // limits.row_group_rows)
    )
    if parts <= 1:
        yield rows, size_bytes
        return
    length = -(-rows.num_rows // parts)
    for start in range(0, rows.num_rows, length):
        yield rows.slice(start, length), size_bytes // parts
