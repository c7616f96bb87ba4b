"""What a handle knows of a table without its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from streamlake.log.commit import Commit
from streamlake.protocol import (
    DomainMetadata,
    Metadata,
    Protocol,
    SetTransaction,
    check_readable,
)

DEFINING_ACTIONS = ("protocol", "metaData")
"""Of a checkpoint, what says how the table's files are to be read."""
HEAD_ACTIONS = (*DEFINING_ACTIONS, "txn", "domainMetadata")
"""Of a checkpoint, what a writer must know: all but the files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """How the files of a table are to be read at one version."""

    version: int
    protocol: Protocol
    metadata: Metadata


@dataclass(frozen=True, slots=True)
class Head:
    """What a writer must know of the newest version that it has seen."""

    version: int
    protocol: Protocol
    metadata: Metadata
    markers: Mapping[str, SetTransaction]
    """Not to be changed; a later head may share it."""
    file_count: int
    """About how many files the table has: what a checkpoint would cost."""
    checkpoint_version: int
    """The checkpoint that the next one is counted from; -1 where it knows of none."""
    domains: Mapping[str, DomainMetadata] = field(default_factory=dict)
    """By name, the removed ones too. Not to be changed; a later head may share it."""
    replayed_actions: int = 0
    """Adds and removes since that checkpoint, as far as they were seen: what opening replays."""
    in_commit_timestamp_ms: int | None = None
    """``inCommitTimestamp`` of the version's commit; None where it has none, or was not read."""

    def after(self, commit: Commit, *, where: str) -> Head:
        """The head once ``commit``, the next one, is applied.

        Raises:
            UnsupportedFeatureError: It makes the table one that can't be read.
        """
        protocol = commit.protocol or self.protocol
        metadata = commit.metadata or self.metadata
        if commit.protocol is not None or commit.metadata is not None:
            check_readable(protocol, metadata=metadata, where=where, version=commit.version)
        file_actions = len(commit.adds) + len(commit.removes)
        return Head(
            version=commit.version,
            protocol=protocol,
            metadata=metadata,
            markers={**self.markers, **commit.markers} if commit.markers else self.markers,
            file_count=max(0, self.file_count + len(commit.adds) - len(commit.removes)),
            checkpoint_version=self.checkpoint_version,
            domains={**self.domains, **commit.domains} if commit.domains else self.domains,
            replayed_actions=self.replayed_actions + file_actions,
            in_commit_timestamp_ms=commit.commit_info.in_commit_timestamp_ms,
        )
