"""What is to be committed, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from streamlake.errors import InvalidInputError
from streamlake.log.committing.markers import Expectation
from streamlake.log.committing.metrics import operation_metrics
from streamlake.log.committing.reads import ReadPredicate
from streamlake.protocol import (
    Action,
    AddFile,
    CommitInfo,
    DomainMetadata,
    FileKey,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    isolation_level,
)

ENGINE_INFO = "streamlake/0.1.0"

Isolation: TypeAlias = Literal["Serializable", "WriteSerializable", "SnapshotIsolation"]
"""How a transaction is kept from concurrent ones; the last is for those that change no data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """Staged, not yet committed: its data files exist, and nobody sees them."""

    operation: str
    """As other engines name it: "WRITE", "STREAMING UPDATE", "OPTIMIZE", "CREATE TABLE"."""
    operation_parameters: Mapping[str, Any] = field(default_factory=dict)
    adds: tuple[AddFile, ...] = ()
    removes: tuple[RemoveFile, ...] = ()
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    domains: tuple[DomainMetadata, ...] = ()
    """Domain metadata that it sets or removes; one for each name."""
    markers: tuple[SetTransaction, ...] = ()
    expect: Expectation | None = None
    renews_markers: bool = False
    """Whether it commits expected markers anew, with their versions, so that they do not expire."""
    read_version: int = -1
    """The version that the transaction was staged against: what it read is what was there then."""
    reads: tuple[ReadPredicate, ...] = ()
    """Which rows it read; ``WHOLE_TABLE`` where it looked at all."""
    read_files: tuple[FileKey, ...] = ()
    """Files that it depends on although no predicate of ``reads`` says so."""
    isolation: Isolation | None = None
    """Its own isolation level; None for the table's."""
    staged_schema: str | None = None
    """The ``schemaString`` that the data files were written for."""
    staged_partitions: tuple[str, ...] = ()
    """The partition columns that they were written for."""
    staged_configuration: Mapping[str, str] | None = None
    """The table properties that they were written under, constraints included."""
    staged_table_id: str | None = None
    """The id of the table that they were written for; None where it is not known."""
    keeps_row_ids: bool = False
    """Whether rows that it moves take their ids along, in the hidden columns of their new files."""
    is_blind_append: bool = False
    """Whether it only adds files and read none."""
    info: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the commitInfo."""

    def __post_init__(self) -> None:
        if self.is_blind_append and (self.removes or self.reads or self.read_files):
            raise InvalidInputError(
                "A blind append neither reads the table nor removes files.",
                found=f"{self.operation} with {len(self.removes)} removes, "
                f"{len(self.reads)} read predicates, {len(self.read_files)} files read",
                remedy="Leave is_blind_append out: other writers rely on it.",
            )

    @property
    def depends_on_table(self) -> bool:
        """Whether commits since ``read_version`` can rule it out, beyond staged files and markers.

        False for blind appends, which never need to look at what others committed.
        """
        return bool(
            self.reads
            or self.read_files
            or self.removes
            or self.domains
            or self.metadata is not None
            or self.protocol is not None
        )

    def is_staged_under(self, metadata: Metadata) -> bool:
        """Whether its files, if there are any, were written for the very same metadata."""
        if self.staged_schema is None:
            return True
        configuration = self.staged_configuration
        if self.staged_table_id not in {None, metadata.id}:
            return False
        return (
            self.staged_schema == metadata.schema_string
            and self.staged_partitions == metadata.partition_columns
            and (configuration is None or configuration == metadata.configuration)
        )

    def isolation_under(self, metadata: Metadata) -> Isolation:
        """The level that its conflicts are decided by, for ``commitInfo.isolationLevel``.

        Raises:
            InvalidInputError: The table property has a value that it can't have.
        """
        if self.isolation is not None:
            return self.isolation
        if self._only_rearranges:
            return "SnapshotIsolation"
        return isolation_level(metadata.configuration)

    @property
    def _only_rearranges(self) -> bool:
        """Whether it moves rows between files, and that is all."""
        data_changes = [add.data_change for add in self.adds]
        data_changes += [remove.data_change for remove in self.removes]
        read = self.reads or self.read_files
        others = self.metadata or self.protocol or self.domains or self.markers
        return bool(data_changes) and not (any(data_changes) or read or others)

    def actions(
        self, *, token: str, now_ms: int, isolation: Isolation = "WriteSerializable"
    ) -> list[Action]:
        """The actions of its commit file, commitInfo first."""
        metrics = operation_metrics(self.operation, self.adds, self.removes)
        info = CommitInfo(
            {
                "timestamp": now_ms,
                "operation": self.operation,
                "operationParameters": dict(self.operation_parameters),
                **({"readVersion": self.read_version} if self.read_version >= 0 else {}),
                "isolationLevel": isolation,
                "isBlindAppend": self.is_blind_append,
                **({"operationMetrics": metrics} if metrics else {}),
                "engineInfo": ENGINE_INFO,
                "txnId": token,
                **self.info,
            }
        )
        head: list[Action] = [info]
        head += [action for action in (self.protocol, self.metadata) if action is not None]
        return [*head, *self.domains, *self.markers, *self.removes, *self.adds]


def removal(add: AddFile, *, now_ms: int, data_change: bool = True) -> RemoveFile:
    """The action that takes a file out of the table.

    One that takes rows away keeps the file's statistics, so that concurrent commits can be told
    apart by the rows that they touch.
    """
    return RemoveFile(
        path=add.path,
        data_change=data_change,
        deletion_timestamp=now_ms,
        extended_file_metadata=True,
        partition_values=add.partition_values,
        size=add.size,
        stats=add.stats if data_change else None,
        tags=add.tags,
        deletion_vector=add.deletion_vector,
        base_row_id=add.base_row_id,
        default_row_commit_version=add.default_row_commit_version,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitResult:
    """What came of a commit."""

    version: int
    """The version committed; where it was committed before, the version at which that was seen."""
    already_committed: bool = False
    """Whether the markers said that it was committed before; then nothing was written."""
    token: str | None = None
    """The commit's ``commitInfo.txnId``; None where nothing was written."""
    markers: Mapping[str, SetTransaction] = field(default_factory=dict)
    """The markers as committed, to be expected by the next commit of the same owner."""
