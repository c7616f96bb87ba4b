"""One commit file as a value, and how it is read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import msgspec

from streamlake.errors import CorruptTableError, LimitExceededError, ObjectNotFoundError
from streamlake.log.limits import DEFAULT_LIMITS, Limits
from streamlake.protocol import (
    MAX_INT64,
    Action,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    NestingError,
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
        """The new metadata, if the commit changes it; the last, as for markers and domains."""
        found = (action for action in reversed(self.actions) if isinstance(action, Metadata))
        return next(found, None)

    @cached_property
    def protocol(self) -> Protocol | None:
        """The new protocol, if the commit changes it; the last."""
        found = (action for action in reversed(self.actions) if isinstance(action, Protocol))
        return next(found, None)


def read_commit(store: ObjectStore, version: int, *, limits: Limits = DEFAULT_LIMITS) -> Commit:
    """Read one commit: one request.

    Raises:
        ObjectNotFoundError: The version does not exist (yet, or any more).
        CorruptTableError: The file is empty, torn or garbled.
        LimitExceededError: It is larger than the limits allow, has more actions, or nests deeper.
    """
    if version > MAX_INT64:
        raise ObjectNotFoundError(f"No version follows {MAX_INT64}.", where=store.url)
    path = commit_path(version)
    data = store.get(path)
    where = f"{store.url}/{path}"
    passed = oversize(data, limits)
    if passed is not None:
        raise _past(where, *passed, limits)
    if not data:
        raise CorruptTableError(
            "The commit file is empty.",
            where=where,
            found="0 bytes; a commit holds at least one action",
            remedy="A writer without atomic puts was probably cut off. Restore the file, or "
            "remove it if it is the newest and its writer is known to have failed.",
        )
    try:
        actions = decode_actions(data, max_depth=limits.json_depth)
    except NestingError as error:
        raise _past(where, "json_depth", str(error), limits) from error
    except msgspec.DecodeError as error:
        raise CorruptTableError(
            "The commit file can't be decoded.",
            where=where,
            found=f"{error} ({len(data)} bytes, ends with {data[-24:]!r})",
            remedy="Torn or garbled: restore it from a copy. Nothing was read past it.",
        ) from error
    return Commit(version, tuple(actions), len(data))


def oversize(data: bytes, limits: Limits) -> tuple[str, str] | None:
    """Which bound on commit files the bytes of one pass, and what is found; None for none.

    Nothing is decoded for it.
    """
    if len(data) > limits.commit_bytes:
        return "commit_bytes", f"{len(data)} bytes"
    actions = data.count(b"\n") + (not data.endswith(b"\n"))
    if actions > limits.commit_actions:
        return "commit_actions", f"{actions} lines"
    if len(data) > limits.action_bytes:
        longest = max(map(len, data.split(b"\n")))
        if longest > limits.action_bytes:
            return "action_bytes", f"a line of {longest} bytes"
    return None


def _past(where: str, name: str, found: str, limits: Limits) -> LimitExceededError:
    return LimitExceededError(
        "The commit file is past a limit.",
        where=where,
        found=f"{found}; Limits.{name} is {getattr(limits, name)}",
        remedy=f"Raise Limits.{name} if the file is sound.",
    )
