"""The columns of a checkpoint file (PROTOCOL.md, "Checkpoint Schema")."""

from __future__ import annotations

import pyarrow as pa

from streamlake.log.files import FILE_TYPES, TOMBSTONE_TYPES
from streamlake.protocol import (
    Action,
    CheckpointMetadata,
    DomainMetadata,
    Metadata,
    Protocol,
    SetTransaction,
    Sidecar,
)

_STRINGS = pa.map_(pa.string(), pa.string())

SMALL_ACTIONS: dict[str, type[Action]] = {
    "protocol": Protocol,
    "metaData": Metadata,
    "txn": SetTransaction,
    "domainMetadata": DomainMetadata,
    "checkpointMetadata": CheckpointMetadata,
    "sidecar": Sidecar,
}
"""What a checkpoint holds besides files and tombstones, by its names in the log."""

KEY_MEMBERS = {
    "add": "path",
    "remove": "path",
    "protocol": "minReaderVersion",
    "metaData": "id",
    "txn": "appId",
    "domainMetadata": "domain",
    "checkpointMetadata": "version",
    "sidecar": "path",
}
"""Of each action in a checkpoint a member that is never null."""

ACTION_TYPES: dict[str, pa.StructType] = {
    "txn": pa.struct(
        [("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())]
    ),
    "add": pa.struct(list(FILE_TYPES.items())),
    "remove": pa.struct(list(TOMBSTONE_TYPES.items())),
    "metaData": pa.struct(
        [
            ("id", pa.string()),
            ("name", pa.string()),
            ("description", pa.string()),
            ("format", pa.struct([("provider", pa.string()), ("options", _STRINGS)])),
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
"""The columns of a V1 checkpoint."""

MANIFEST_TYPES: dict[str, pa.StructType] = {
    "checkpointMetadata": pa.struct([("version", pa.int64()), ("tags", _STRINGS)]),
    "sidecar": pa.struct(
        [
            ("path", pa.string()),
            ("sizeInBytes", pa.int64()),
            ("modificationTime", pa.int64()),
            ("tags", _STRINGS),
        ]
    ),
}
"""The further columns of a V2 checkpoint."""
