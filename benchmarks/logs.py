"""Large logs, made past the write path: their data files are only told of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

START_MS = 1_700_000_000_000
PER_GROUP = 100_000
_STRINGS = pa.map_(pa.string(), pa.string())
_ADD = pa.struct(
    [
        pa.field("path", pa.string()),
        pa.field("partitionValues", _STRINGS),
        pa.field("size", pa.int64()),
        pa.field("modificationTime", pa.int64()),
        pa.field("dataChange", pa.bool_()),
        pa.field("stats", pa.string()),
        pa.field("tags", _STRINGS),
    ]
)
_PROTOCOL = pa.struct(
    [pa.field("minReaderVersion", pa.int32()), pa.field("minWriterVersion", pa.int32())]
)
_METADATA = pa.struct(
    [
        pa.field("id", pa.string()),
        pa.field("name", pa.string()),
        pa.field("description", pa.string()),
        pa.field(
            "format",
            pa.struct([pa.field("provider", pa.string()), pa.field("options", _STRINGS)]),
        ),
        pa.field("schemaString", pa.string()),
        pa.field("partitionColumns", pa.list_(pa.string())),
        pa.field("configuration", _STRINGS),
        pa.field("createdTime", pa.int64()),
    ]
)
_CHECKPOINT = pa.schema(
    [pa.field("protocol", _PROTOCOL), pa.field("metaData", _METADATA), pa.field("add", _ADD)]
)
PROTOCOL = {"minReaderVersion": 1, "minWriterVersion": 2}


def metadata() -> dict[str, Any]:
    """Two columns, no partitions."""
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in (("id", "long"), ("v", "string"))
    ]
    return {
        "id": "00000000-0000-0000-0000-000000000001",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {},
        "createdTime": START_MS,
    }


def adds(first: int, count: int) -> pa.StructArray:
    """``add`` actions with statistics, as an Arrow struct."""
    numbers = pa.array(range(first, first + count), pa.int64())
    text = pc.utf8_lpad(pc.cast(numbers, pa.string()), 8, "0")
    low, high = pc.multiply(numbers, 100), pc.add(pc.multiply(numbers, 100), 99)
    path = joined("part-00000-", text, "-aaaa-4bbb-8ccc-123456789abc-c000.snappy.parquet")
    stats = joined(
        '{"numRecords":100,"minValues":{"id":',
        pc.cast(low, pa.string()),
        ',"v":"a',
        text,
        '"},"maxValues":{"id":',
        pc.cast(high, pa.string()),
        ',"v":"b',
        text,
        '"},"nullCount":{"id":0,"v":0}}',
    )
    empty = pa.array([[]] * count, _STRINGS)
    columns = [
        path,
        empty,
        pa.array([1234] * count, pa.int64()),
        pc.add(numbers, START_MS),
        pa.array([False] * count),
        stats,
        pa.nulls(count, _STRINGS),
    ]
    return pa.StructArray.from_arrays(columns, fields=list(_ADD))


def joined(*parts: str | pa.Array[Any]) -> pa.Array[Any]:
    """Strings put together row by row."""
    found: pa.Array[Any] = pc.binary_join_element_wise(*parts, "")  # type: ignore[call-overload]
    return found


def write_checkpoint(log: Path, version: int, files: int) -> None:
    """A classic checkpoint of ``files`` files, and the hint to it."""
    log.mkdir(parents=True, exist_ok=True)
    path = log / f"{version:020d}.checkpoint.parquet"
    with pq.ParquetWriter(path, _CHECKPOINT, compression="snappy", store_schema=False) as writer:
        writer.write_table(one_action("protocol", pa.array([PROTOCOL], _PROTOCOL)))
        writer.write_table(one_action("metaData", pa.array([metadata()], _METADATA)))
        for first in range(0, files, PER_GROUP):
            writer.write_table(one_action("add", adds(first, min(PER_GROUP, files - first))))
    hint = {"version": version, "size": files + 2}
    (log / "_last_checkpoint").write_text(json.dumps(hint))


def one_action(name: str, rows: pa.Array[Any]) -> pa.Table:
    """Rows that set one kind of action."""
    columns = [
        rows if column.name == name else pa.nulls(len(rows), column.type) for column in _CHECKPOINT
    ]
    return pa.Table.from_arrays(columns, schema=_CHECKPOINT)


def write_commits(log: Path, first: int, count: int) -> None:
    """Commits of one file and one marker each; version 0 makes the table."""
    log.mkdir(parents=True, exist_ok=True)
    for start in range(first, first + count, PER_GROUP):
        part: Any = adds(start, min(PER_GROUP, first + count - start))
        for version, add in enumerate(part.to_pylist(), start):
            text = commit(version, add["path"], add["stats"])
            (log / f"{version:020d}.json").write_text(text)


def commit(version: int, path: str, stats: str) -> str:
    """The text of a commit file."""
    info = {
        "timestamp": START_MS + version,
        "operation": "WRITE",
        "operationParameters": {"mode": "Append"},
        "isBlindAppend": True,
        "txnId": f"{version:036d}",
    }
    add = {
        "path": path,
        "partitionValues": {},
        "size": 1234,
        "modificationTime": START_MS + version,
        "dataChange": True,
        "stats": stats,
    }
    made = [{"protocol": PROTOCOL}, {"metaData": metadata()}] if version == 0 else []
    txn = {"appId": "writer", "version": version, "lastUpdated": START_MS + version}
    actions = [{"commitInfo": info}, *made, {"txn": txn}, {"add": add}]
    return "".join(json.dumps(action, separators=(",", ":")) + "\n" for action in actions)
