"""Writing classic checkpoints: the state of a table in one Parquet file."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from streamlake.log.arrays import mask_of
from streamlake.log.checkpoint.columns import ACTION_TYPES
from streamlake.log.files import FILE_TYPES
from streamlake.log.hint import write_hint
from streamlake.log.replay import Replay
from streamlake.protocol import checkpoint_path, deleted_file_retention_ms
from streamlake.storage import ObjectStore

logger = logging.getLogger(__name__)

_SCHEMA = pa.schema([pa.field(name, kind) for name, kind in ACTION_TYPES.items()])


def encode_checkpoint(replay: Replay, *, now_ms: int) -> tuple[pa.Buffer, int]:
    """A classic checkpoint's bytes and its number of actions; files are passed on in blocks.

    Expired tombstones are left out; those that stay carry no stats and tags. Adds and removes are
    written with ``dataChange=false``, as the protocol asks of checkpoints.
    """
    sink = pa.BufferOutputStream()
    count = 0
    with pq.ParquetWriter(sink, _SCHEMA, compression="snappy", store_schema=False) as writer:
        for name, rows in _columns(replay, now_ms):
            writer.write_table(_one_column(name, rows))
            count += len(rows)
    return sink.getvalue(), count


def _columns(replay: Replay, now_ms: int) -> Iterator[tuple[str, pa.StructArray]]:
    protocol, metadata = replay.checked()
    small: dict[str, list[Any]] = {
        "protocol": [protocol],
        "metaData": [metadata],
        "txn": list(replay.markers.values()),
        "domainMetadata": [d for d in replay.domains.values() if not d.removed],
    }
    for name, actions in small.items():
        if actions:
            yield name, _structs(msgspec.to_builtins(actions), ACTION_TYPES[name])
    for block in replay.files().blocks(FILE_TYPES):
        yield "add", _without_change(block)
    oldest_ms = now_ms - deleted_file_retention_ms(metadata.configuration)
    tombstones = replay.tombstones()
    removed_ms: Any = tombstones["deletionTimestamp"]
    live = tombstones.filter(pc.greater(removed_ms, pa.scalar(oldest_ms, pa.int64())))
    if live.num_rows:
        yield "remove", _without_change(live)


def _structs(rows: list[Any], kind: pa.StructType) -> pa.StructArray:
    structs: Any = pa.array(rows, type=kind)
    return structs  # type: ignore[no-any-return]


def _without_change(block: pa.Table) -> pa.StructArray:
    """The rows of a block as structs that say ``dataChange=false``."""
    position = block.column_names.index("dataChange")
    never = mask_of(bytes(block.num_rows))
    rows: Any = block.set_column(position, "dataChange", never).to_struct_array().combine_chunks()
    return rows  # type: ignore[no-any-return]


def _one_column(name: str, rows: pa.StructArray) -> pa.Table:
    """Rows that set one action; every other column is null."""
    columns = [
        rows if column == name else pa.nulls(len(rows), kind)
        for column, kind in ACTION_TYPES.items()
    ]
    return pa.Table.from_arrays(columns, schema=_SCHEMA)


def write_checkpoint(store: ObjectStore, replay: Replay, *, now_ms: int) -> int:
    """Write a classic checkpoint of a verified state, then the hint to it; returns its bytes.

    Two requests. A crash between them leaves a checkpoint that a listing finds. Written
    unconditionally: whoever writes a checkpoint of a version writes the same state.
    """
    data, actions = encode_checkpoint(replay, now_ms=now_ms)
    store.put(checkpoint_path(replay.version), memoryview(data))
    num_adds = len(replay.files())
    write_hint(store, replay.version, num_actions=actions, num_bytes=data.size, num_adds=num_adds)
    logger.debug("checkpoint %d: %d actions, %d bytes", replay.version, actions, data.size)
    return int(data.size)
