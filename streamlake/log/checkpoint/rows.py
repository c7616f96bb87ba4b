"""What a checkpoint of a state holds, as rows in blocks of bounded size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from streamlake.errors import InvalidInputError
from streamlake.log.arrays import mask_of
from streamlake.log.checkpoint.columns import ACTION_TYPES
from streamlake.log.checkpoint.typed import typed_columns
from streamlake.log.files import FILE_TYPES
from streamlake.log.replay import Replay
from streamlake.protocol import (
    Action,
    SetTransaction,
    deleted_file_retention_ms,
    set_transaction_retention_ms,
)
from streamlake.protocol.properties import (
    DEFAULT_DELETED_FILE_RETENTION_MS,
    DEFAULT_PARQUET_CODEC,
    parquet_codec,
    parquet_pages,
    writes_stats_as_json,
    writes_stats_as_struct,
)

BLOCK_ROWS = 65_536
"""The most rows of one block, and of one row group."""
BLOCK_BYTES = 64 * 2**20
"""A block ends where it has come to that many bytes."""

_T = TypeVar("_T")


class CheckpointRows:
    """The rows of a checkpoint; files and tombstones are gone through once, and not held.

    Adds and removes say ``dataChange=false``, as the protocol asks of checkpoints. Statistics have
    the forms that the table's properties ask for. Left out are expired tombstones, ``stats`` and
    ``tags`` of those that stay, removed domains, and markers that the table lets expire.
    """

    def __init__(self, replay: Replay, *, now_ms: int, block_rows: int = BLOCK_ROWS) -> None:
        self._replay = replay
        self._now_ms = now_ms
        self._block_rows = block_rows
        self.protocol, self.metadata = replay.checked()
        self._configuration = self.metadata.configuration
        self._typed = typed_columns(
            self.protocol, self.metadata, wanted=self._set(writes_stats_as_struct, default=False)
        )
        self._add_fields = [
            pa.field(name, kind)
            for name, kind in FILE_TYPES.items()
            if name != "stats" or self._set(writes_stats_as_json, default=True)
        ]
        self.add_type = pa.struct([*self._add_fields, *self._typed.fields()])
        """The type of ``add``."""
        self.codec = self._set(parquet_codec, default=DEFAULT_PARQUET_CODEC)
        """How the table's Parquet files are compressed."""
        self.pages: Literal["1.0", "2.0"] = self._set(parquet_pages, default="1.0")
        """The format of their data pages."""
        self.markers = tuple(self._live_markers())
        """The markers that are kept."""
        self.domains = tuple(d for d in replay.domains.values() if not d.removed)
        """The domains that are kept."""
        self.num_files = 0
        """How many files have been gone through."""
        self.size_bytes = 0
        """What they take together."""

    @property
    def version(self) -> int:
        """The version that the checkpoint is of."""
        return self._replay.version

    def small(self) -> Iterator[tuple[str, Any]]:
        """All but files and tombstones: arrays of structs by the names of actions."""
        found: dict[str, tuple[Action, ...]] = {
            "protocol": (self.protocol,),
            "metaData": (self.metadata,),
            "txn": self.markers,
            "domainMetadata": self.domains,
        }
        for name, actions in found.items():
            if actions:
                yield name, structs_of(actions, ACTION_TYPES[name])

    def files(self) -> Iterator[tuple[str, Any]]:
        """Files, then tombstones, in blocks: arrays of structs by the names of actions."""
        for block in _regrouped(self._replay.files().blocks(FILE_TYPES), self._block_rows):
            self.num_files += block.num_rows
            self.size_bytes += int(pc.sum(block["size"]).as_py() or 0)
            yield "add", self._adds(block)
        tombstones = self._live(self._replay.tombstone_blocks())
        for block in _regrouped(tombstones, self._block_rows):
            yield "remove", _structs(_without_change(block), ACTION_TYPES["remove"])

    def _adds(self, block: pa.Table) -> Any:  # noqa: ANN401 -- a StructArray
        typed = self._typed.columns(block)
        columns = [*_without_change(block.select([f.name for f in self._add_fields])), *typed]
        return _structs(columns, self.add_type)

    def _live(self, blocks: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """The tombstones that have not expired."""
        retention_ms = self._set(
            deleted_file_retention_ms, default=DEFAULT_DELETED_FILE_RETENTION_MS
        )
        oldest = pa.scalar(self._now_ms - retention_ms, pa.int64())
        for block in blocks:
            removed_ms: Any = block["deletionTimestamp"]
            yield block.filter(pc.greater(removed_ms, oldest))

    def _live_markers(self) -> Iterator[SetTransaction]:
        """Markers, but those that ``delta.setTransactionRetentionDuration`` lets expire.

        A marker that does not tell its time is kept. Time is what the newest marker says, where
        the clock is ahead of it: a clock that jumps must not make a table forget its writers.
        """
        markers = self._replay.markers.values()
        retention_ms = self._set(set_transaction_retention_ms, default=None)
        newest_ms = max((marker.last_updated or 0 for marker in markers), default=0)
        for marker in markers:
            idle_ms = min(self._now_ms, newest_ms) - (marker.last_updated or newest_ms)
            if retention_ms is None or idle_ms < retention_ms:
                yield marker

    def _set(self, getter: Callable[[Mapping[str, str]], _T], *, default: _T) -> _T:
        """A property of the table; what another engine set and can't be read does not count."""
        try:
            return getter(self._configuration)
        except InvalidInputError:
            return default


def structs_of(actions: Iterable[Action], kind: pa.StructType) -> Any:  # noqa: ANN401
    """Actions as an array of structs."""
    return pa.array(msgspec.to_builtins(list(actions)), type=kind)


def _structs(columns: list[Any], kind: pa.StructType) -> Any:  # noqa: ANN401
    flat = [c.combine_chunks() if isinstance(c, pa.ChunkedArray) else c for c in columns]
    return pa.StructArray.from_arrays(flat, fields=list(kind))


def _without_change(block: pa.Table) -> list[Any]:
    """The columns of a block, with ``dataChange=false``."""
    never = mask_of(bytes(block.num_rows))
    return [never if name == "dataChange" else block[name] for name in block.column_names]


def _regrouped(blocks: Iterable[pa.Table], most: int) -> Iterator[pa.Table]:
    """The same rows in blocks that are full, however small they come."""
    waiting: list[pa.Table] = []
    rows = size_bytes = 0
    for whole in blocks:
        for start in range(0, whole.num_rows, most):
            block = whole.slice(start, most)
            if waiting and (
                rows + block.num_rows > most or size_bytes + block.nbytes > BLOCK_BYTES
            ):
                yield pa.concat_tables(waiting)
                waiting, rows, size_bytes = [], 0, 0
            waiting.append(block)
            rows, size_bytes = rows + block.num_rows, size_bytes + block.nbytes
    if waiting:
        yield pa.concat_tables(waiting)
