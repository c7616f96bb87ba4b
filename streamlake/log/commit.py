"""One commit file as a value, and how it is read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import msgspec

from streamlake.errors import CorruptTableError, LimitExceededError
from streamlake.log.limits import DEFAULT_LIMITS, Limits
from streamlake.protocol import (
    Action,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    commit_path,
    decode_actions,
)
from streamlake.storage import ObjectStore

_NO_INFO = CommitInfo({})


@dataclass(frozen=True)
class Commit:
    """The actions of one version, in the order of its file (PROTOCOL.md, "Delta Log Entries")."""

    version: int
    actions: tuple[Action, ...]
    size_bytes: int = 0

    @cached_property
    def adds(self) -> tuple[AddFile, ...]:
        """Files that join the table, in order."""
        return tuple(action for action in self.actions if isinstance(action, AddFile))

    @cached_property
    def removes(self) -> tuple[RemoveFile, ...]:
        """Files that leave the table, in order."""
        return tuple(action for action in self.actions if isinstance(action, RemoveFile))

    @cached_property
    def markers(self) -> dict[str, SetTransaction]:
        """The markers that the commit sets, by app_id."""
        return {
            action.app_id: action for action in self.actions if isinstance(action, SetTransaction)
        }

    @cached_property
    def domains(self) -> dict[str, DomainMetadata]:
        """The domain metadata that the commit sets or removes, by name."""
        return {
            action.domain: action for action in self.actions if isinstance(action, DomainMetadata)
        }

    @cached_property
    def commit_info(self) -> CommitInfo:
        """Provenance; empty where the writer gave none."""
        found = (action for action in self.actions if isinstance(action, CommitInfo))
        return next(found, _NO_INFO)

    @cached_property
    def metadata(self) -> Metadata | None:
        """The new metadata, if the commit changes it."""
        return next((action for action in self.actions if isinstance(action, Metadata)), None)

    @cached_property
    def protocol(self) -> Protocol | None:
        """The new protocol, if the commit changes it."""
        return next((action for action in self.actions if isinstance(action, Protocol)), None)


def read_commit(store: ObjectStore, version: int, *, limits: Limits = DEFAULT_LIMITS) -> Commit:
    """Read one commit: one request.

    Raises:
        ObjectNotFoundError: The version does not exist (yet, or any more).
        CorruptTableError: The file is empty, torn or garbled.
        LimitExceededError: It is larger than the limits allow.
    """
    path = commit_path(version)
    data = store.get(path)
    where = f"{store.url}/{path}"
    if len(data) > limits.commit_bytes:
        raise LimitExceededError(
            "The commit file is larger than the limit.",
            where=where,
            found=f"{len(data)} bytes; the limit is {limits.commit_bytes}",
            remedy="Raise Limits.commit_bytes if the file is sound.",
        )
    if not data:
        raise CorruptTableError(
            "The commit file is empty.",
            where=where,
            found="0 bytes; a commit holds at least one action",
            remedy="A writer without atomic puts was probably cut off. Restore the file, or "
            "remove it if it is the newest and its writer is known to have failed.",
        )
    try:
        actions = decode_actions(data)
    except msgspec.DecodeError as error:
        raise CorruptTableError(
            "The commit file can't be decoded.",
            where=where,
            found=f"{error} ({len(data)} bytes, ends with {data[-24:]!r})",
            remedy="Torn or garbled: restore it from a copy. Nothing was read past it.",
        ) from error
    if len(actions) > limits.commit_actions:
        raise LimitExceededError(
            "The commit has more actions than the limit.",
            where=where,
            found=f"{len(actions)} actions; the limit is {limits.commit_actions}",
            remedy="Raise Limits.commit_actions if the file is sound.",
        )
    return Commit(version, tuple(actions), len(data))
