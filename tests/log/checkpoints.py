"""Checkpoints as other engines write them, made from a classic one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from streamlake.log.checkpoint.opening import open_checkpoint
from streamlake.log.files import FileList, FilePart
from streamlake.protocol import (
    SIDECAR_DIR,
    Action,
    AddFile,
    CheckpointMetadata,
    Sidecar,
    checkpoint_path,
    encode_actions,
)
from streamlake.storage import ObjectStore

UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"
TAGS = pa.map_(pa.string(), pa.string())
ROWS = {
    "checkpointMetadata": pa.struct([("version", pa.int64()), ("tags", TAGS)]),
    "sidecar": pa.struct(
        [("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64())]
    ),
}


def classic_rows(store: ObjectStore, version: int) -> pa.Table:
    """The classic checkpoint of a version, which is then deleted."""
    path = checkpoint_path(version)
    rows = pq.read_table(pa.BufferReader(store.get(path)))
    store.delete(path)
    return rows


def parquet(rows: pa.Table) -> bytes:
    """Rows as a Parquet file."""
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, store_schema=False)
    return sink.getvalue().to_pybytes()


def every(rows: pa.Table, first: int, step: int) -> pa.Table:
    """Each ``step``-th row from ``first`` on."""
    return rows.take(pa.array(range(first, len(rows), step), pa.int64()))


def multi_part(store: ObjectStore, version: int, parts: int) -> list[str]:
    """Turn the classic checkpoint of a version into one of several parts; returns their paths."""
    rows = classic_rows(store, version)
    paths = []
    for part in range(parts):
        path = f"_delta_log/{version:020d}.checkpoint.{part + 1:010d}.{parts:010d}.parquet"
        store.put(path, parquet(every(rows, part, parts)))
        paths.append(path)
    return paths


def v2(
    store: ObjectStore,
    version: int,
    *,
    kind: str = "json",
    sidecars: int = 2,
    told: Sequence[CheckpointMetadata] | None = None,
    extra: Sequence[Sidecar] = (),
    keeps_files: bool = False,
) -> str:
    """Turn the classic checkpoint of a version into a V2 one; returns its path.

    Args:
        store: The table's.
        version: Of the classic checkpoint.
        kind: "json", "parquet" or "classic", a V2 checkpoint under a classic name.
        sidecars: How many; with 0 files and tombstones are inside.
        told: Its checkpointMetadata; the right one by default.
        extra: Sidecars that are named besides.
        keeps_files: Whether files are inside as well.
    """
    rows = classic_rows(store, version)
    is_file = pc.or_(rows["add"].is_valid(), rows["remove"].is_valid())
    files = rows.filter(is_file).select(["add", "remove"])
    named = [_sidecar(store, version, files, n, sidecars) for n in range(sidecars)]
    inside = (
        rows if keeps_files or not sidecars else rows.filter(pa.array([not f for f in is_file]))
    )
    meta = [CheckpointMetadata(version)] if told is None else list(told)
    name = {"json": f".{UUID}.json", "parquet": f".{UUID}.parquet", "classic": ".parquet"}[kind]
    path = f"_delta_log/{version:020d}.checkpoint{name}"
    if kind == "json":
        store.put(path, encode_actions([*meta, *named, *extra, *_actions(store, version, inside)]))
    else:
        store.put(path, parquet(_with_rows(inside, meta, [*named, *extra])))
    return path


def _sidecar(store: ObjectStore, version: int, files: pa.Table, n: int, count: int) -> Sidecar:
    name = f"{version:020d}.checkpoint.{n + 1:010d}.{count:010d}.parquet"
    data = parquet(every(files, n, count))
    store.put(f"{SIDECAR_DIR}/{name}", data)
    return Sidecar(name, len(data), 0)


def _actions(store: ObjectStore, version: int, rows: pa.Table) -> list[Action]:
    path = checkpoint_path(version)
    store.put(path, parquet(rows))
    found = open_checkpoint(store, [path])
    adds: list[AddFile] = list(FileList([FilePart(columns) for columns in found.adds]))
    store.delete(path)
    return [*found.actions, *adds]


def _with_rows(rows: pa.Table, *actions: Sequence[Action]) -> pa.Table:
    for (name, kind), values in zip(ROWS.items(), actions, strict=True):
        told: Any = pa.array(msgspec.to_builtins(list(values)), kind)
        rows = pa.concat_tables([rows, pa.table({name: told})], promote_options="default")
    return rows


def flipped(data: bytes, leaf: str) -> bytes:
    """A checkpoint with a wrong byte in one column, as "add.path": all else can be read."""
    metadata = pq.ParquetFile(pa.BufferReader(data)).metadata
    place = [metadata.schema.column(i).path for i in range(len(metadata.schema))].index(leaf)
    chunks: list[Any] = [
        metadata.row_group(group).column(place) for group in range(metadata.num_row_groups)
    ]
    (chunk,) = [chunk for chunk in chunks if chunk.statistics.null_count < chunk.num_values]
    end = (chunk.dictionary_page_offset or chunk.data_page_offset) + chunk.total_compressed_size
    return data[: end - 3] + bytes([data[end - 3] ^ 0xFF]) + data[end - 2 :]
