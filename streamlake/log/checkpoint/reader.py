"""What a checkpoint holds, read by column and only where it is asked for.

A small file is fetched whole; of a large one the footer, and then the columns that a question
needs. Rows are decoded in blocks, so that a wide column is never in memory whole unless it is asked
for whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from streamlake.errors import (
    CorruptTableError,
    LimitExceededError,
    LogTruncatedError,
    ObjectNotFoundError,
    StorageError,
)
from streamlake.log.arrays import nulls
from streamlake.log.checkpoint.columns import KEY_MEMBERS, SMALL_ACTIONS
from streamlake.log.checkpoint.stats import stats_json
from streamlake.log.files import (
    FILE_TYPES,
    REQUIRED_COLUMNS,
    TOMBSTONE_TYPES,
    Column,
    FileColumns,
    vectors_of,
)
from streamlake.log.limits import DEFAULT_LIMITS, Limits
from streamlake.protocol import Action
from streamlake.storage import ObjectStore, RangedFile

WHOLE_FILE_BYTES = 8 * 2**20
"""Checkpoint files up to this size are fetched in one request."""
BLOCK_ROWS = 65_536
"""How many rows are decoded at a time."""
_FAILURES = (pa.ArrowException, StorageError, OSError, ValueError, LookupError, TypeError)
"""What comes of reading a garbled file, by Arrow and by what Arrow is wrapped in."""
BLOCK_BYTES = 64 * 2**20
"""About how many bytes are decoded at a time, where rows are wide."""
STATS_PARSED = "stats_parsed"
_KEPT = frozenset({"path", "size", "modificationTime", "partitionValues", "deletionVector"})
"""Columns that stay in memory once they are read: narrow, and asked for again and again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The state of a table at one version; its files and tombstones are not read yet."""

    adds: tuple[FileColumns, ...]
    removes: tuple[FileColumns, ...]
    actions: tuple[Action, ...]
    """The small actions that were asked for."""
    num_actions: int
    """How many actions of any kind there are, where counting needs no reading."""


def corrupt_checkpoint(where: str, reason: str) -> CorruptTableError:
    """The error for a checkpoint that can't be used."""
    return CorruptTableError(
        "The checkpoint can't be read.",
        where=where,
        found=reason,
        remedy="Remove or restore it; an earlier checkpoint is used where the log allows.",
    )


class ParquetPart:
    """One Parquet file of a checkpoint: a classic one, a part, a V2 one or a sidecar.

    Raises:
        CorruptTableError: It is missing, torn or garbled; so does each reading of it.
        LimitExceededError: It holds more than the limits allow; so does each reading of it.
        LogTruncatedError: At a reading: it was removed since it was opened.
    """

    def __init__(
        self,
        store: ObjectStore,
        path: str,
        *,
        size_bytes: int | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        """Open it: two requests.

        Args:
            store: The table's.
            path: Relative to the table's root.
            size_bytes: What it must have, where another file says so.
            limits: Bounds on what it may hold.
        """
        self.limits = limits
        """Bounds on what it may hold."""
        self._store = store
        self._path = path
        self._where = f"{store.url}/{path}"
        self._is_open = False
        with self._told():
            self._file = self._open(size_bytes)
            self._schema = self._file.schema_arrow
        self._is_open = True
        self.check("checkpoint_actions", self.num_rows, "actions")

    @property
    def num_rows(self) -> int:
        """How many actions it holds."""
        return int(self._file.metadata.num_rows)

    def small_actions(self, name: str) -> list[Action]:
        """The actions of one kind."""
        groups = self._groups(name)
        if not groups:
            return []
        with self._told():
            column = self._file.read_row_groups(groups, columns=[name])[name]
            self.check("checkpoint_block_bytes", column.nbytes, f"bytes of {name} actions")
            return [msgspec.convert(row, SMALL_ACTIONS[name]) for row in _rows(column)]

    def blocks(
        self, action: str, names: Sequence[str], types: Mapping[str, pa.DataType]
    ) -> Iterator[pa.Table]:
        """Columns of the ``add`` or ``remove`` actions, block by block; absent ones are null.

        Statistics that are there only typed are given as JSON.
        """
        groups = self._groups(action)
        if not groups:
            return
        kind = self._schema.field(action).type
        for group in groups:
            read = self._columns(action, [n for n in names if kind.get_field_index(n) >= 0])
            if "stats" in names and f"{action}.stats" not in read and _has_typed(kind):
                read.append(f"{action}.{STATS_PARSED}")
            rows = min(BLOCK_ROWS, self._rows_of_block(group))
            with self._told():
                batches = self._file.iter_batches(rows, row_groups=[group], columns=read)
            while True:
                with self._told():
                    batch = next(batches, None)
                    self.check("checkpoint_block_bytes", batch.nbytes if batch else 0, "bytes")
                    block = None if batch is None else self._block(batch, names, types)
                if block is None:
                    break
                if block.num_rows:
                    yield block
        self._check_unchanged()

    def _block(
        self, batch: pa.RecordBatch, names: Sequence[str], types: Mapping[str, pa.DataType]
    ) -> pa.Table:
        rows: Any = batch.column(0)
        if rows.null_count:
            rows = rows.filter(rows.is_valid())
        found = {field.name: i for i, field in enumerate(rows.type)}
        columns = [
            _cast(rows.field(found[name]), types[name])
            if name in found
            else stats_json(rows.field(found[STATS_PARSED]))
            if name == "stats" and STATS_PARSED in found
            else nulls(len(rows), types[name])
            for name in names
        ]
        missing = [n for n, c in zip(names, columns, strict=True) if c.null_count and _needed(n)]
        if missing and types is FILE_TYPES:
            raise corrupt_checkpoint(self._where, f"files without {', '.join(missing)}")
        return pa.Table.from_arrays(columns, names=list(names))

    def _columns(self, action: str, names: Sequence[str]) -> list[str]:
        """The leaves to read for columns; the key's where the file has none of them."""
        return [f"{action}.{name}" for name in names or [KEY_MEMBERS[action]]]

    def _rows_of_block(self, group: int) -> int:
        """How many rows of a row group come to about BLOCK_BYTES."""
        found = self._file.metadata.row_group(group)
        return max(1, BLOCK_BYTES * max(1, found.num_rows) // max(1, found.total_byte_size))

    def _groups(self, action: str) -> list[int]:
        """Row groups that may hold an action; of a file that is not held, by their statistics.

        Only one column's are asked: where a footer is garbled, Parquet's library may end the
        process over them, and reading is cheap where the file is here already.
        """
        if self._schema.get_field_index(action) < 0:
            return []
        metadata = self._file.metadata
        groups = list(range(metadata.num_row_groups))
        key = f"{action}.{KEY_MEMBERS[action]}"
        paths = [metadata.schema.column(leaf).path for leaf in range(len(metadata.schema))]
        if self._is_held or key not in paths:
            return groups
        leaf = paths.index(key)
        return [group for group in groups if not _is_null(metadata.row_group(group).column(leaf))]

    def file_columns(self) -> tuple[ActionColumns, ActionColumns]:
        """Its files and its tombstones."""
        return (
            ActionColumns((self,), "add", FILE_TYPES),
            ActionColumns((self,), "remove", TOMBSTONE_TYPES),
        )

    def _open(self, size_bytes: int | None) -> pq.ParquetFile:
        found = self._store.stat(self._path)
        if size_bytes not in {None, found.size_bytes}:
            raise corrupt_checkpoint(
                self._where, f"{found.size_bytes} bytes, where the checkpoint says {size_bytes}"
            )
        self._stamp = (found.size_bytes, found.modified_ms)
        self._is_held = found.size_bytes <= WHOLE_FILE_BYTES
        source: Any = (
            pa.BufferReader(self._store.get(self._path))
            if self._is_held
            else pa.PythonFile(RangedFile(self._store, self._path, found.size_bytes), mode="r")
        )
        return pq.ParquetFile(
            source,
            pre_buffer=not self._is_held,
            page_checksum_verification=True,
            thrift_string_size_limit=self.limits.checkpoint_footer_bytes,
            thrift_container_size_limit=self.limits.checkpoint_footer_elements,
        )

    def check(self, name: str, value: int, unit: str) -> None:
        """Refuse what is past the limit of that name.

        Raises:
            LimitExceededError: It is.
        """
        limit = getattr(self.limits, name)
        if value > limit:
            raise LimitExceededError(
                "The checkpoint is past a limit.",
                where=self._where,
                found=f"{value} {unit} when it is decoded; Limits.{name} is {limit}",
                remedy=f"Raise Limits.{name} if the file is sound.",
            )

    def _check_unchanged(self) -> None:
        """Another writer may have put a checkpoint of the same version in this one's place."""
        if self._is_held:
            return
        with self._told():
            found = self._store.stat(self._path)
        if (found.size_bytes, found.modified_ms) != self._stamp:
            raise corrupt_checkpoint(
                self._where, "another file of that name, put there while it was read"
            )

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Any failure to read it, as the error that names the file."""
        try:
            yield
        except ObjectNotFoundError as error:
            if not self._is_open:
                raise corrupt_checkpoint(self._where, str(error)) from error
            raise LogTruncatedError(
                "A checkpoint was removed while it was read.",
                where=self._where,
                found="it is gone, and not all of its columns had been read",
                remedy="Log clean-up passed it: take a new snapshot, of a later version.",
            ) from error
        except _FAILURES as error:
            raise corrupt_checkpoint(self._where, str(error)) from error


class ActionColumns:
    """The ``add`` or the ``remove`` actions of the parts of a checkpoint, by column."""

    def __init__(
        self,
        parts: Iterable[ParquetPart],
        action: str,
        types: Mapping[str, pa.DataType],
        *,
        unique_in: str = "",
    ) -> None:
        """Nothing is read yet.

        Args:
            parts: Gone through anew at each reading.
            action: "add" or "remove".
            types: The columns.
            unique_in: The checkpoint, for errors, if it counts as corrupt when one file is in it
                twice: its parts may be of different writers.
        """
        self._parts = parts
        self._action = action
        self._types = types
        self._unique_in = unique_in
        self._held: dict[str, Column] = {}

    @property
    def num_rows(self) -> int:
        """How many actions there are; reads their paths."""
        return len(self.column("path"))

    def column(self, name: str) -> Column:
        """One column, whole; kept if it is narrow."""
        held = self._held.get(name)
        if held is not None:
            return held
        chunks: Any = list(self._chunks(name))
        kind: Any = self._types[name]
        column: Column = pa.chunked_array(chunks, type=kind)
        if name == "path" and self._unique_in and len(column.unique()) != len(column):
            self._check_unique(column)
        if name in _KEPT:
            self._held[name] = column
        return column

    def _chunks(self, name: str) -> Iterator[pa.Array[Any]]:
        size_bytes = 0
        for part in self._parts:
            for block in part.blocks(self._action, (name,), self._types):
                size_bytes += block.nbytes
                part.check("checkpoint_column_bytes", size_bytes, f"bytes of {name}")
                yield from block.column(0).chunks

    def _check_unique(self, paths: Column) -> None:
        """Refuse one logical file twice; a path may be there with several deletion vectors."""
        vectors = vectors_of(self.column("deletionVector"))
        ids = [None if vector is None else vector.unique_id for vector in vectors]
        if len(set(zip(paths.to_pylist(), ids, strict=True))) != len(paths):
            raise corrupt_checkpoint(self._unique_in, "parts that hold one file twice")

    def blocks(self, names: Iterable[str]) -> Iterator[pa.Table]:
        """Columns in blocks of bounded size; those that are kept are not read again."""
        wanted = tuple(names)
        kept = {name: self._held[name] for name in wanted if name in self._held}
        unread = [name for name in wanted if name not in kept] or ["path"]
        start = 0
        for part in self._parts:
            for block in part.blocks(self._action, unread, self._types):
                columns = [
                    kept[name].slice(start, block.num_rows) if name in kept else block.column(name)
                    for name in wanted
                ]
                start += block.num_rows
                yield pa.Table.from_arrays(columns, names=list(wanted))


def _has_typed(kind: Any) -> bool:  # noqa: ANN401 -- a StructType
    return bool(kind.get_field_index(STATS_PARSED) >= 0)


def _needed(name: str) -> bool:
    return name in REQUIRED_COLUMNS


def _is_null(chunk: pq.ColumnChunkMetaData) -> bool:
    found: Any = chunk.statistics if chunk.is_stats_set else None
    return bool(found) and found.has_null_count and found.null_count == chunk.num_values


def _cast(column: pa.Array[Any], kind: pa.DataType) -> pa.Array[Any]:
    return column if column.type.equals(kind) else column.cast(kind)


def _rows(column: pa.ChunkedArray[Any]) -> Iterator[dict[str, Any]]:
    """The structs of a column; null members say "absent", as they do in JSON."""
    rows: Any = column.drop_null().to_pylist(maps_as_pydicts="strict")
    for row in rows:
        yield {name: _present(value) for name, value in row.items() if value is not None}


def _present(value: Any) -> Any:  # noqa: ANN401 -- the values of a Parquet row
    if isinstance(value, dict) and "provider" in value:
        return {name: member for name, member in value.items() if member is not None}
    return value
