"""The Delta protocol as values and functions over them (floor 1).

Nothing here does I/O, keeps state or knows of stores: text and bytes come in, values go out, and
the other way round. One module a chapter of the protocol document:

- ``actions``, ``codec``: the actions of a commit and their JSON, read within ``json_bounds``;
  ``json_checksum``: that of ``_last_checkpoint``.
- ``schema``: ``schemaString`` to Arrow and back, and how schemas differ.
- ``mapping``: the names of columns in files and log, where they differ from the schema's.
- ``partition``, ``paths``: partition values, folders, URI references that stay in the table.
- ``names``: the files of the log.
- ``features``, ``properties``: what a table asks of those who read and write it.
- ``markers``: what a ``txn`` may be.

What was read from a table and is wrong raises a TableError; what a caller gave, InvalidInputError.
"""

from streamlake.protocol.actions import (
    MAX_INT64,
    Action,
    AddCdcFile,
    AddFile,
    CheckpointMetadata,
    CommitInfo,
    DeletionVector,
    DomainMetadata,
    FileKey,
    Format,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    Sidecar,
)
from streamlake.protocol.codec import decode_actions, encode_actions
from streamlake.protocol.features import (
    assigns_row_ids,
    check_readable,
    check_writable,
    in_commit_timestamps,
    keeps_row_ids,
    supports_reader_feature,
    supports_writer_feature,
)
from streamlake.protocol.json_bounds import MAX_JSON_DEPTH, NestingError
from streamlake.protocol.json_checksum import json_checksum
from streamlake.protocol.mapping import ColumnMapping, MappingMode, column_mapping
from streamlake.protocol.markers import validate_marker
from streamlake.protocol.names import (
    LAST_CHECKPOINT,
    LOG_DIR,
    SIDECAR_DIR,
    CheckpointName,
    CommitName,
    checkpoint_path,
    checksum_path,
    commit_path,
    commit_version,
    compacted_path,
    is_sidecar,
    parse_checksum,
    parse_compacted,
    parse_log_name,
    sidecar_path,
    v2_checkpoint_path,
)
from streamlake.protocol.partition import (
    decode_partition_value,
    encode_partition_value,
    partition_path,
)
from streamlake.protocol.paths import canonical_path, encode_path, resolve_path
from streamlake.protocol.properties import (
    FEATURE_PREFIX,
    append_only,
    check_properties,
    checkpoint_interval,
    data_skipping_num_indexed_cols,
    data_skipping_stats_columns,
    deleted_file_retention_ms,
    in_commit_timestamp_enablement,
    isolation_level,
    log_retention_ms,
    set_transaction_retention_ms,
)
from streamlake.protocol.schema import (
    MAX_SCHEMA_DEPTH,
    field_metadata,
    normalize_schema,
    schema_difference,
    schema_from_json,
    schema_to_json,
    with_field_metadata,
)
from streamlake.protocol.upgrade import protocol_for, requested_features, upgraded_protocol

__all__ = [
    "FEATURE_PREFIX",
    "LAST_CHECKPOINT",
    "LOG_DIR",
    "MAX_INT64",
    "MAX_JSON_DEPTH",
    "MAX_SCHEMA_DEPTH",
    "SIDECAR_DIR",
    "Action",
    "AddCdcFile",
    "AddFile",
    "CheckpointMetadata",
    "CheckpointName",
    "ColumnMapping",
    "CommitInfo",
    "CommitName",
    "DeletionVector",
    "DomainMetadata",
    "FileKey",
    "Format",
    "MappingMode",
    "Metadata",
    "NestingError",
    "Protocol",
    "RemoveFile",
    "SetTransaction",
    "Sidecar",
    "append_only",
    "assigns_row_ids",
    "canonical_path",
    "check_properties",
    "check_readable",
    "check_writable",
    "checkpoint_interval",
    "checkpoint_path",
    "checksum_path",
    "column_mapping",
    "commit_path",
    "commit_version",
    "compacted_path",
    "data_skipping_num_indexed_cols",
    "data_skipping_stats_columns",
    "decode_actions",
    "decode_partition_value",
    "deleted_file_retention_ms",
    "encode_actions",
    "encode_partition_value",
    "encode_path",
    "field_metadata",
    "in_commit_timestamp_enablement",
    "in_commit_timestamps",
    "is_sidecar",
    "isolation_level",
    "json_checksum",
    "keeps_row_ids",
    "log_retention_ms",
    "normalize_schema",
    "parse_checksum",
    "parse_compacted",
    "parse_log_name",
    "partition_path",
    "protocol_for",
    "requested_features",
    "resolve_path",
    "schema_difference",
    "schema_from_json",
    "schema_to_json",
    "set_transaction_retention_ms",
    "sidecar_path",
    "supports_reader_feature",
    "supports_writer_feature",
    "upgraded_protocol",
    "v2_checkpoint_path",
    "validate_marker",
    "with_field_metadata",
]
