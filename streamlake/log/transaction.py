"""What is to be committed, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from streamlake.log.markers import Expectation
from streamlake.protocol import (
    Action,
    AddFile,
    CommitInfo,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)

ENGINE_INFO = "streamlake/0.1.0"


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
    markers: tuple[SetTransaction, ...] = ()
    expect: Expectation | None = None
    renews_markers: bool = False
    """Whether it commits expected markers anew, with their versions, so that they do not expire."""
    read_version: int = -1
    """The version that the transaction was staged against."""
    staged_schema: str | None = None
    """The ``schemaString`` that the data files were written for."""
    staged_partitions: tuple[str, ...] = ()
    """The partition columns that they were written for."""
    is_blind_append: bool = False
    """Whether it only adds files and read none."""
    info: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the commitInfo."""

    def actions(self, *, token: str, now_ms: int) -> list[Action]:
        """The actions of its commit file, commitInfo first."""
        info = CommitInfo(
            {
                "timestamp": now_ms,
                "operation": self.operation,
                "operationParameters": dict(self.operation_parameters),
                **({"readVersion": self.read_version} if self.read_version >= 0 else {}),
                "isolationLevel": "WriteSerializable",
                "isBlindAppend": self.is_blind_append,
                "engineInfo": ENGINE_INFO,
                "txnId": token,
                **self.info,
            }
        )
        head: list[Action] = [info]
        head += [action for action in (self.protocol, self.metadata) if action is not None]
        return [*head, *self.markers, *self.removes, *self.adds]


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
