"""Classic checkpoints: the state of a table in one Parquet file (PROTOCOL.md, "Checkpoints")."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from streamlake.log.replay import Replay
from streamlake.log.segment import corrupt_checkpoint
from streamlake.protocol import (
    LAST_CHECKPOINT,
    Action,
    AddFile,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    checkpoint_path,
    deleted_file_retention_ms,
)
from streamlake.storage import ObjectStore

logger = logging.getLogger(__name__)

_STRINGS = pa.map_(pa.string(), pa.string())
_VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
_COLUMNS: dict[str, pa.StructType] = {
    "txn": pa.struct(
        [("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())]
    ),
    "add": pa.struct(
        [
            ("path", pa.string()),
            ("partitionValues", _STRINGS),
            ("size", pa.int64()),
            ("modificationTime", pa.int64()),
            ("dataChange", pa.bool_()),
            ("tags", _STRINGS),
            ("deletionVector", _VECTOR),
            ("baseRowId", pa.int64()),
            ("defaultRowCommitVersion", pa.int64()),
            ("clusteringProvider", pa.string()),
            ("stats", pa.string()),
        ]
    ),
    "remove": pa.struct(
        [
            ("path", pa.string()),
            ("deletionTimestamp", pa.int64()),
            ("dataChange", pa.bool_()),
            ("extendedFileMetadata", pa.bool_()),
            ("partitionValues", _STRINGS),
            ("size", pa.int64()),
            ("deletionVector", _VECTOR),
            ("baseRowId", pa.int64()),
            ("defaultRowCommitVersion", pa.int64()),
        ]
    ),
    "metaData": pa.struct(
        [
            ("id", pa.string()),
            ("name", pa.string()),
            ("description", pa.string()),
            (
                "format",
                pa.struct([("provider", pa.string()), ("options", _STRINGS)]),
            ),
            ("schemaString", pa.string()),
            ("partitionColumns", pa.list_(pa.string())),
            ("configuration", _STRINGS),
            ("createdTime", pa.int64()),
        ]
    ),
    "protocol": pa.struct(
        [
            ("minReaderVersion", pa.int32()),
            ("minWriterVersion", pa.int32()),
            ("readerFeatures", pa.list_(pa.string())),
            ("writerFeatures", pa.list_(pa.string())),
        ]
    ),
    "domainMetadata": pa.struct(
        [("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())]
    ),
}
_SCHEMA = pa.schema([pa.field(name, kind) for name, kind in _COLUMNS.items()])
_KINDS: dict[str, type[Action]] = {
    "txn": SetTransaction,
    "add": AddFile,
    "remove": RemoveFile,
    "metaData": Metadata,
    "protocol": Protocol,
    "domainMetadata": DomainMetadata,
}

_ROWS_PER_GROUP = 100_000


CHECKPOINT_ACTIONS = tuple(_KINDS)
"""The kinds of actions that a checkpoint holds, by their names in the log."""


def read_checkpoint(
    store: ObjectStore,
    paths: tuple[str, ...],
    replay: Replay,
    *,
    actions: Sequence[str] = CHECKPOINT_ACTIONS,
) -> None:
    """Apply a checkpoint, of one or several parts, to an empty replay: one request a part.

    Only ``actions`` of it are decoded.

    Raises:
        CorruptTableError: A part is missing, torn or garbled.
    """
    for path in paths:
        data = store.get(path)
        try:
            columns = [
                name for name in actions if name in pq.read_schema(pa.BufferReader(data)).names
            ]
            table = pq.read_table(pa.BufferReader(data), columns=columns)
            replay.checkpoint_actions += table.num_rows
            for name in columns:
                replay.apply_actions(_actions(table.column(name), _KINDS[name]))
        except (pa.ArrowException, OSError, msgspec.ValidationError) as error:
            raise corrupt_checkpoint(store, path, str(error)) from error


def _actions(column: pa.ChunkedArray[pa.StructScalar], kind: type[Action]) -> Iterator[Action]:
    """The actions of one column; its rows of other kinds are null."""
    for chunk in column.chunks:
        rows: Any = chunk.drop_null()
        if not len(rows):
            continue
        names = [field.name for field in rows.type]
        values = [_python(rows.field(name)) for name in names]
        for row in zip(*values, strict=True):
            present = {
                name: value
                for name, value in zip(names, row, strict=True)
                if value is not None and not name.endswith("_parsed")
            }
            yield msgspec.convert(present, kind)


def _python(array: pa.Array[Any]) -> list[Any]:
    if pa.types.is_struct(array.type) and array.null_count == len(array):
        return [None] * len(array)
    return [_plain(value) for value in array.to_pylist(maps_as_pydicts="strict")]


def _plain(value: Any) -> Any:  # noqa: ANN401 -- the values of a Parquet row
    """Null members of a struct say "absent", as they do in JSON."""
    if isinstance(value, dict) and ("storageType" in value or "provider" in value):
        return {name: member for name, member in value.items() if member is not None}
    return value


def encode_checkpoint(replay: Replay, *, now_ms: int) -> tuple[pa.Buffer, int]:
    """A classic checkpoint's bytes and its number of actions.

    Expired tombstones are left out; those that stay carry no stats and tags. Adds and removes are
    written with ``dataChange=false``, as the protocol asks of checkpoints.
    """
    protocol, metadata = replay.checked()
    oldest_ms = now_ms - deleted_file_retention_ms(metadata.configuration)
    live = (t for t in replay.tombstones.values() if (t.deletion_timestamp or 0) > oldest_ms)
    rows: dict[str, list[dict[str, Any]]] = {
        "protocol": [_row(protocol)],
        "metaData": [_row(metadata)],
        "txn": [_row(marker) for marker in replay.markers.values()],
        "domainMetadata": [_row(d) for d in replay.domains.values() if not d.removed],
        "add": [_row(add) | {"dataChange": False} for add in replay.files.values()],
        "remove": [_row(tombstone) | {"dataChange": False} for tombstone in live],
    }
    sink = pa.BufferOutputStream()
    count = 0
    with pq.ParquetWriter(sink, _SCHEMA, compression="snappy", store_schema=False) as writer:
        for name, actions in rows.items():
            for start in range(0, len(actions), _ROWS_PER_GROUP):
                part = actions[start : start + _ROWS_PER_GROUP]
                writer.write_table(_one_column(name, part))
            count += len(actions)
    return sink.getvalue(), count


def _one_column(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    """Rows that set one action; every other column is null."""
    columns = [
        pa.array(rows, type=kind) if column == name else pa.nulls(len(rows), kind)
        for column, kind in _COLUMNS.items()
    ]
    return pa.Table.from_arrays(columns, schema=_SCHEMA)


def _row(action: Action) -> dict[str, Any]:
    row: dict[str, Any] = msgspec.to_builtins(action)
    return row


def write_checkpoint(store: ObjectStore, replay: Replay, *, now_ms: int) -> int:
    """Write a classic checkpoint of a verified state, then the hint to it; returns its bytes.

    Two requests. A crash between them leaves a checkpoint that a listing finds. Written
    unconditionally: whoever writes a checkpoint of a version writes the same state.
    """
    data, actions = encode_checkpoint(replay, now_ms=now_ms)
    store.put(checkpoint_path(replay.version), memoryview(data))
    hint = {
        "version": replay.version,
        "size": actions,
        "sizeInBytes": data.size,
        "numOfAddFiles": len(replay.files),
    }
    store.put(LAST_CHECKPOINT, msgspec.json.encode(hint))
    logger.debug("checkpoint %d: %d actions, %d bytes", replay.version, actions, data.size)
    return int(data.size)
