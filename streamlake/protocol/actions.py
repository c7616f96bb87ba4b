"""The actions of the log and their JSON codec (PROTOCOL.md, "Actions").

One commit file is one JSON object a line, each with one key that names its action. Decoding is typed and refuses what
does not fit; unknown fields and unknown actions are passed over, as the protocol asks of readers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, TypeVar

import msgspec

MAX_INT64 = 2**63 - 1

_T = TypeVar("_T")


class Format(msgspec.Struct, frozen=True):
    """How data files are encoded; the protocol knows only "parquet" (PROTOCOL.md, "Format Specification")."""

    provider: str = "parquet"
    options: dict[str, str] = {}


class Protocol(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a reader and a writer must know (PROTOCOL.md, "Protocol Evolution")."""

    min_reader_version: int
    min_writer_version: int
    reader_features: tuple[str, ...] | None = None
    writer_features: tuple[str, ...] | None = None


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    """The table's identity, schema, partitioning and properties (PROTOCOL.md, "Change Metadata")."""

    id: str
    schema_string: str = ""
    format: Format = Format()
    partition_columns: tuple[str, ...] = ()
    configuration: dict[str, str] = {}
    created_time: int | msgspec.UnsetType | None = msgspec.UNSET
    """Milliseconds since the Unix epoch."""
    name: str | msgspec.UnsetType | None = msgspec.UNSET
    description: str | msgspec.UnsetType | None = msgspec.UNSET


class DeletionVector(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Which rows of a file are deleted (PROTOCOL.md, "Deletion Vector Descriptor Schema")."""

    storage_type: str
    path_or_inline_dv: str
    size_in_bytes: int
    cardinality: int
    offset: int | None = None

    @property
    def unique_id(self) -> str:
        """The derived field of that name: part of a logical file's key."""
        suffix = "" if self.offset is None else f"@{self.offset}"
        return f"{self.storage_type}{self.path_or_inline_dv}{suffix}"


FileKey: TypeAlias = tuple[str, str | None]
"""A logical file: its path as the log spells it and the unique id of its deletion vector."""


class AddFile(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A data file that joins the table (PROTOCOL.md, "Add File and Remove File")."""

    path: str
    """A URI reference: URL-encoded, relative to the table's root or absolute."""
    partition_values: dict[str, str | None]
    size: int
    """Bytes."""
    modification_time: int
    """Milliseconds since the Unix epoch."""
    data_change: bool
    stats: str | None = None
    """JSON (PROTOCOL.md, "Per-file Statistics")."""
    tags: dict[str, str | None] | None = None
    deletion_vector: DeletionVector | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None
    clustering_provider: str | None = None

    @property
    def num_records(self) -> int | None:
        """Rows of the file before deletion vectors, where its statistics say so."""
        if self.stats is None:
            return None
        try:
            return _count_decoder.decode(self.stats).numRecords
        except msgspec.DecodeError:
            return None

    @property
    def key(self) -> FileKey:
        """What identifies the logical file."""
        vector = self.deletion_vector
        return self.path, None if vector is None else vector.unique_id


class _Count(msgspec.Struct, frozen=True):
    numRecords: int | None = None


_count_decoder = msgspec.json.Decoder(_Count)


class RemoveFile(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A data file that leaves the table (PROTOCOL.md, "Add File and Remove File")."""

    path: str
    data_change: bool
    deletion_timestamp: int | None = None
    """Milliseconds since the Unix epoch."""
    extended_file_metadata: bool | None = None
    partition_values: dict[str, str | None] | None = None
    size: int | None = None
    stats: str | None = None
    tags: dict[str, str | None] | None = None
    deletion_vector: DeletionVector | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None

    @property
    def key(self) -> FileKey:
        """What identifies the logical file."""
        vector = self.deletion_vector
        return self.path, None if vector is None else vector.unique_id


class AddCdcFile(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A file of row-level changes (PROTOCOL.md, "Add CDC File")."""

    path: str
    partition_values: dict[str, str | None]
    size: int
    data_change: bool
    tags: dict[str, str | None] | None = None


class SetTransaction(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """An exactly-once marker: the ``txn`` action (PROTOCOL.md, "Transaction Identifiers")."""

    app_id: str
    """Who writes; one kind of marker per app_id."""
    version: int
    """How far it has come; 0 to 2**63 - 1."""
    last_updated: int | None = None
    """Milliseconds since the Unix epoch; filled in at the commit."""


class DomainMetadata(msgspec.Struct, frozen=True, rename="camel"):
    """A named configuration (PROTOCOL.md, "Domain Metadata")."""

    domain: str
    configuration: str
    removed: bool


class CheckpointMetadata(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Says what version a V2 checkpoint holds (PROTOCOL.md, "Checkpoint Metadata")."""

    version: int
    tags: dict[str, str | None] | None = None


class Sidecar(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A part of a V2 checkpoint (PROTOCOL.md, "Sidecar File Information")."""

    path: str
    size_in_bytes: int
    modification_time: int
    tags: dict[str, str | None] | None = None


class CommitInfo(msgspec.Struct, frozen=True):
    """Provenance of a commit: free-form JSON (PROTOCOL.md, "Commit Provenance Information")."""

    fields: dict[str, Any]

    @property
    def token(self) -> str | None:
        """``txnId``: the unique token of the commit, by which its writer knows it again."""
        return _typed(self.fields.get("txnId"), str)

    @property
    def timestamp_ms(self) -> int | None:
        """When the writer says it committed, in milliseconds since the Unix epoch."""
        return _typed(self.fields.get("timestamp"), int)

    @property
    def in_commit_timestamp_ms(self) -> int | None:
        """``inCommitTimestamp``, in milliseconds since the Unix epoch."""
        return _typed(self.fields.get("inCommitTimestamp"), int)

    @property
    def operation(self) -> str | None:
        """What was done: "WRITE", "STREAMING UPDATE", "OPTIMIZE", ..."""
        return _typed(self.fields.get("operation"), str)

    @property
    def operation_parameters(self) -> Mapping[str, Any]:
        """Parameters of the operation, as its writer noted them."""
        return _typed(self.fields.get("operationParameters"), dict) or {}

    @property
    def is_blind_append(self) -> bool:
        """Whether the commit only added files and read none; False where the writer is silent."""
        return self.fields.get("isBlindAppend") is True


def _typed(value: object, kind: type[_T]) -> _T | None:
    return value if isinstance(value, kind) else None


Action: TypeAlias = (
    AddFile
    | RemoveFile
    | AddCdcFile
    | Metadata
    | Protocol
    | SetTransaction
    | DomainMetadata
    | CheckpointMetadata
    | Sidecar
    | CommitInfo
)


class _Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of a commit file: exactly one field is set, or none where the action is unknown."""

    add: AddFile | None = None
    remove: RemoveFile | None = None
    cdc: AddCdcFile | None = None
    metaData: Metadata | None = None
    protocol: Protocol | None = None
    txn: SetTransaction | None = None
    domainMetadata: DomainMetadata | None = None
    checkpointMetadata: CheckpointMetadata | None = None
    sidecar: Sidecar | None = None
    commitInfo: dict[str, Any] | None = None


_LINE_KEYS: dict[type, str] = {
    AddFile: "add",
    RemoveFile: "remove",
    AddCdcFile: "cdc",
    Metadata: "metaData",
    Protocol: "protocol",
    SetTransaction: "txn",
    DomainMetadata: "domainMetadata",
    CheckpointMetadata: "checkpointMetadata",
    Sidecar: "sidecar",
}
_decoder = msgspec.json.Decoder(_Line)
_encoder = msgspec.json.Encoder()


def encode_actions(actions: Iterable[Action]) -> bytes:
    """The bytes of a commit file that holds ``actions`` in order; one line each, newline-terminated."""
    lines = [
        {"commitInfo": action.fields}
        if isinstance(action, CommitInfo)
        else {_LINE_KEYS[type(action)]: action}
        for action in actions
    ]
    return _encoder.encode_lines(lines)


def decode_actions(data: bytes) -> list[Action]:
    """The actions of a commit file, in order; unknown actions are left out.

    Raises:
        msgspec.DecodeError: The bytes are no JSON lines, or an action lacks a field or has one of a wrong type.
            (msgspec.ValidationError is one of these.)
    """
    actions: list[Action] = []
    for line in _decoder.decode_lines(data):
        action = _only_action(line)
        if action is not None:
            actions.append(action)
    return actions


def _only_action(line: _Line) -> Action | None:
    if line.commitInfo is not None:
        return CommitInfo(line.commitInfo)
    return (
        line.add
        or line.remove
        or line.txn
        or line.metaData
        or line.protocol
        or line.cdc
        or line.domainMetadata
        or line.checkpointMetadata
        or line.sidecar
    )
