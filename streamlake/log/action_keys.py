"""Which actions replace one another (PROTOCOL.md, "Action Reconciliation")."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from streamlake.protocol import (
    Action,
    AddFile,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    canonical_path,
)

ActionKey: TypeAlias = tuple[str, str, str | None]


def key_of(action: Action, root_url: str) -> ActionKey | None:
    """What a later action must have in common with an earlier one to replace it."""
    match action:
        case AddFile() | RemoveFile():
            path, vector = action.key
            return "file", canonical_path(path, root_url=root_url), vector
        case SetTransaction():
            return "txn", action.app_id, None
        case DomainMetadata():
            return "domain", action.domain, None
        case Metadata() | Protocol():
            return type(action).__name__, "", None
        case _:
            return None


def said_twice(actions: Iterable[Action], *, root_url: str) -> str | None:
    """What of reconciled actions is said twice, which can't be; None for nothing."""
    seen: set[ActionKey] = set()
    for action in actions:
        key = key_of(action, root_url)
        if key in seen:
            return f"two actions of {key[0]} {key[1]}".rstrip()
        if key is not None:
            seen.add(key)
    return None
