"""The actions of the log as values (PROTOCOL.md, "Actions"); ``codec`` has their JSON.

Fields are named as the protocol names them, in Python's case. An optional field that is None is
absent from the JSON; required ones are always written. Tuples in place of lists, and no field
changes once made: treat the dicts as frozen too. Those that come by the million (``gc=False``) hold
nothing that could refer back to them, and are kept out of the garbage collector's rounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec

MAX_READER_VERSION = 3
"""The newest reader version there is; from it on the protocol lists reader features."""
MAX_WRITER_VERSION = 7
"""The newest writer version there is; from it on the protocol lists writer features."""
MAX_INT64 = 2**63 - 1
Int64: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=MAX_INT64)]
"""A Long of the protocol; checked where JSON is decoded, not where a value is made."""

Int32: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
"""An Int of the protocol, likewise."""

_T = TypeVar("_T")


def _no_schema() -> str:
    return ""


def _no_columns() -> tuple[str, ...]:
    return ()


def _no_properties() -> dict[str, str]:
    return {}


class Format(msgspec.Struct, frozen=True):
    """How data files are encoded (PROTOCOL.md, "Format Specification")."""

    provider: str = "parquet"
    """The protocol knows no other."""
    options: dict[str, str] = {}


class Protocol(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a reader and a writer must know (PROTOCOL.md, "Protocol Evolution")."""

    min_reader_version: int
    min_writer_version: int
    reader_features: tuple[str, ...] | None = None
    writer_features: tuple[str, ...] | None = None


class Metadata(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Identity, schema, partitioning and properties (PROTOCOL.md, "Change Metadata")."""

    # The protocol requires the first five: a default that a function makes is written even so.
    id: str
    schema_string: str = msgspec.field(default_factory=_no_schema)
    format: Format = msgspec.field(default_factory=Format)
    partition_columns: tuple[str, ...] = msgspec.field(default_factory=_no_columns)
    configuration: dict[str, str] = msgspec.field(default_factory=_no_properties)
    created_time: Int64 | None = None
    """Milliseconds since the Unix epoch."""
    name: str | None = None
    description: str | None = None


class DeletionVector(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Which rows of a file are deleted (PROTOCOL.md, "Deletion Vector Descriptor Schema")."""

    storage_type: str
    path_or_inline_dv: str
    size_in_bytes: Int32
    cardinality: Int64
    offset: Int32 | None = None

    @property
    def unique_id(self) -> str:
        """The derived field of that name: part of a logical file's key."""
        suffix = "" if self.offset is None else f"@{self.offset}"
        return f"{self.storage_type}{self.path_or_inline_dv}{suffix}"


FileKey: TypeAlias = tuple[str, str | None]
"""A logical file: its path as the log spells it and the unique id of its deletion vector."""


class AddFile(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A data file that joins the table (PROTOCOL.md, "Add File and Remove File")."""

    path: str
    """A URI reference: URL-encoded, relative to the table's root or absolute."""
    partition_values: dict[str, str | None]
    size: Int64
    """Bytes."""
    modification_time: Int64
    """Milliseconds since the Unix epoch."""
    data_change: bool
    stats: str | None = None
    """JSON (PROTOCOL.md, "Per-file Statistics")."""
    tags: dict[str, str | None] | None = None
    deletion_vector: DeletionVector | None = None
    base_row_id: Int64 | None = None
    default_row_commit_version: Int64 | None = None
    clustering_provider: str | None = None

    @property
    def num_records(self) -> int | None:
        """Rows of the file before deletion vectors, where its statistics say so."""
        if self.stats is None:
            return None
        try:
            return _count_decoder.decode(self.stats).num_records
        except msgspec.DecodeError:
            return None

    @property
    def key(self) -> FileKey:
        """What identifies the logical file."""
        vector = self.deletion_vector
        return self.path, None if vector is None else vector.unique_id


class _Count(msgspec.Struct, frozen=True, rename="camel"):
    num_records: Int64 | None = None


_count_decoder = msgspec.json.Decoder(_Count)


class RemoveFile(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A data file that leaves the table (PROTOCOL.md, "Add File and Remove File")."""

    path: str
    data_change: bool
    deletion_timestamp: Int64 | None = None
    """Milliseconds since the Unix epoch."""
    extended_file_metadata: bool | None = None
    partition_values: dict[str, str | None] | None = None
    size: Int64 | None = None
    stats: str | None = None
    tags: dict[str, str | None] | None = None
    deletion_vector: DeletionVector | None = None
    base_row_id: Int64 | None = None
    default_row_commit_version: Int64 | None = None

    @property
    def key(self) -> FileKey:
        """What identifies the logical file."""
        vector = self.deletion_vector
        return self.path, None if vector is None else vector.unique_id


class AddCdcFile(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A file of row-level changes (PROTOCOL.md, "Add CDC File")."""

    path: str
    partition_values: dict[str, str | None]
    size: Int64
    data_change: bool
    tags: dict[str, str | None] | None = None


class SetTransaction(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """An exactly-once marker: the ``txn`` action (PROTOCOL.md, "Transaction Identifiers")."""

    app_id: str
    """Who writes; one kind of marker per app_id."""
    version: Int64
    """How far it has come; 0 to 2**63 - 1."""
    last_updated: Int64 | None = None
    """Milliseconds since the Unix epoch; filled in at the commit."""


class DomainMetadata(msgspec.Struct, frozen=True, rename="camel"):
    """A named configuration (PROTOCOL.md, "Domain Metadata")."""

    domain: str
    configuration: str
    removed: bool


class CheckpointMetadata(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Says what version a V2 checkpoint holds (PROTOCOL.md, "Checkpoint Metadata")."""

    version: Int64
    tags: dict[str, str | None] | None = None


class Sidecar(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A part of a V2 checkpoint (PROTOCOL.md, "Sidecar File Information")."""

    path: str
    size_in_bytes: Int64
    modification_time: Int64
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
    def operation_metrics(self) -> Mapping[str, Any]:
        """What the operation did in numbers, as its writer noted them, mostly as strings."""
        return _typed(self.fields.get("operationMetrics"), dict) or {}

    @property
    def isolation_level(self) -> str | None:
        """Under which isolation level the commit was checked against others."""
        return _typed(self.fields.get("isolationLevel"), str)

    @property
    def read_version(self) -> int | None:
        """The version that the commit was made from."""
        return _typed(self.fields.get("readVersion"), int)

    @property
    def user_metadata(self) -> str | None:
        """What the user noted with the commit."""
        return _typed(self.fields.get("userMetadata"), str)

    @property
    def engine_info(self) -> str | None:
        """Which program committed, with its version."""
        return _typed(self.fields.get("engineInfo"), str)

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
