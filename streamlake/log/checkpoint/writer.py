"""Writing checkpoints: V1 in one Parquet file, V2 as sidecars and a manifest.

Nothing is ever seen half: a checkpoint counts once its last file is there, and that one is put
whole. A crash before leaves sidecars that nothing refers to; log clean-up takes them. Multi-part
checkpoints are never written.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from streamlake.clock import Clock
from streamlake.errors import InvalidInputError, StorageError
from streamlake.log.checkpoint.checksum import VersionChecksum, write_checksum
from streamlake.log.checkpoint.columns import ACTION_TYPES, MANIFEST_TYPES
from streamlake.log.checkpoint.hint import write_hint
from streamlake.log.checkpoint.rows import BLOCK_ROWS, CheckpointRows, structs_of
from streamlake.log.limits import DEFAULT_LIMITS
from streamlake.log.replay import Replay
from streamlake.log.times import in_commit_time_ms
from streamlake.protocol import (
    SIDECAR_DIR,
    Action,
    CheckpointMetadata,
    Sidecar,
    checkpoint_path,
    in_commit_timestamps,
    supports_reader_feature,
    v2_checkpoint_path,
)
from streamlake.protocol.properties import checkpoint_policy
from streamlake.storage import ObjectStore

logger = logging.getLogger(__name__)

BLOCKS_PER_SIDECAR = 4
"""A sidecar is so some ten megabytes large."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    """What was written of a checkpoint."""

    num_actions: int
    size_bytes: int


def write_checkpoint(
    store: ObjectStore,
    replay: Replay,
    *,
    clock: Clock,
    block_rows: int = BLOCK_ROWS,
    blocks_per_sidecar: int = BLOCKS_PER_SIDECAR,
) -> int:
    """Write a checkpoint of a verified state, its checksum and the hint to it; returns its bytes.

    V2, in sidecars, where the table's checkpoint policy says so, else V1 in one file. Three
    requests, for V2 one more and one for each sidecar. Written unconditionally: whoever writes a
    checkpoint of a version writes the same state.

    Args:
        store: The table's.
        replay: The state.
        clock: Tells what has expired, and names sidecars.
        block_rows: The most rows of a row group.
        blocks_per_sidecar: The most row groups of a sidecar; one sidecar is in memory at a time.

    Raises:
        CorruptTableError: The state can't be read, or has no typed form that is asked for.
        StorageError: A put failed. What a reader finds is whole in any case.
    """
    rows = CheckpointRows(replay, now_ms=clock.now_ms(), block_rows=block_rows)
    if _is_v2(rows):
        written = _write_v2(store, rows, clock, blocks_per_sidecar)
    else:
        written = _write_v1(store, rows)
    write_hint(
        store,
        rows.version,
        num_actions=written.num_actions,
        num_bytes=written.size_bytes,
        num_adds=rows.num_files,
    )
    try:
        write_checksum(store, rows.version, lambda: _checksum(store, rows))
    except (StorageError, OSError) as error:  # it only ever confirms
        logger.warning("no checksum of %s at %d: %s", store.url, rows.version, error)
    logger.debug("checkpoint %d of %s: %s", rows.version, store.url, written)
    return written.size_bytes


def _is_v2(rows: CheckpointRows) -> bool:
    try:
        policy = checkpoint_policy(rows.metadata.configuration)
    except InvalidInputError:
        policy = "classic"
    return policy == "v2" and supports_reader_feature(rows.protocol, "v2Checkpoint")


def _write_v1(store: ObjectStore, rows: CheckpointRows) -> _Written:
    types = {**ACTION_TYPES, "add": rows.add_type}
    data, count = _encoded(rows, types, chain(rows.small(), rows.files()))
    store.put(checkpoint_path(rows.version), memoryview(data))
    return _Written(num_actions=count, size_bytes=data.size)


def _write_v2(
    store: ObjectStore, rows: CheckpointRows, clock: Clock, blocks_per_sidecar: int
) -> _Written:
    """Sidecars, then the manifest under two names.

    The classic name is for readers that know no V2: they find the protocol, and refuse the table
    for what it needs rather than for what they miss.
    """
    sidecars = list(_write_sidecars(store, rows, clock, blocks_per_sidecar))
    size_bytes = sum(sidecar.size_in_bytes for sidecar, _ in sidecars)
    file_actions = sum(count for _, count in sidecars)
    told = CheckpointMetadata(
        rows.version,
        {
            "sidecarNumActions": str(file_actions),
            "sidecarSizeInBytes": str(size_bytes),
            "numOfAddFiles": str(rows.num_files),
        },
    )
    types = {**ACTION_TYPES, "add": rows.add_type, **MANIFEST_TYPES}
    own: dict[str, list[Action]] = {
        "checkpointMetadata": [told],
        "sidecar": [sidecar for sidecar, _ in sidecars],
    }
    named = ((name, structs_of(found, types[name])) for name, found in own.items() if found)
    data, count = _encoded(rows, types, chain(named, rows.small()))
    store.put(checkpoint_path(rows.version), memoryview(data))
    store.put(v2_checkpoint_path(rows.version, clock.new_id()), memoryview(data))
    return _Written(num_actions=count + file_actions, size_bytes=data.size + size_bytes)


def _write_sidecars(
    store: ObjectStore, rows: CheckpointRows, clock: Clock, most_blocks: int
) -> Iterator[tuple[Sidecar, int]]:
    """Each sidecar written, and how many actions it holds; one is in memory at a time."""
    types = {"add": rows.add_type, "remove": ACTION_TYPES["remove"]}
    blocks = rows.files()
    for first in blocks:
        data, count = _encoded(rows, types, chain([first], islice(blocks, most_blocks - 1)))
        name = f"{clock.new_id()}.parquet"
        store.put(f"{SIDECAR_DIR}/{name}", memoryview(data))
        yield Sidecar(name, data.size, clock.now_ms()), count


def _encoded(
    form: CheckpointRows, types: Mapping[str, pa.StructType], blocks: Iterable[tuple[str, Any]]
) -> tuple[pa.Buffer, int]:
    """A Parquet file of rows that each set one column, and how many; one row group a block.

    Every page carries a checksum, so that a flipped bit shows when it is read.
    """
    schema = pa.schema([pa.field(name, kind) for name, kind in types.items()])
    sink = pa.BufferOutputStream()
    count = 0
    with pq.ParquetWriter(
        sink,
        schema,
        compression=form.codec,
        data_page_version=form.pages,
        store_schema=False,
        store_decimal_as_integer=True,
        write_page_checksum=True,
    ) as writer:
        for name, block in blocks:
            columns = [
                block if column == name else pa.nulls(len(block), kind)
                for column, kind in types.items()
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))
            count += len(block)
    return sink.getvalue(), count


def _checksum(store: ObjectStore, rows: CheckpointRows) -> VersionChecksum:
    in_commit_ms = None
    if in_commit_timestamps(rows.protocol, rows.metadata):
        in_commit_ms = in_commit_time_ms(store, rows.version, limits=DEFAULT_LIMITS)
    return VersionChecksum(
        table_size_bytes=rows.size_bytes,
        num_files=rows.num_files,
        num_metadata=1,
        num_protocol=1,
        metadata=rows.metadata,
        protocol=rows.protocol,
        in_commit_timestamp_opt=in_commit_ms,
        set_transactions=rows.markers,
        domain_metadata=rows.domains,
    )
