"""Which files make up a checkpoint, and what is in them: classic, multi-part and V2.

PROTOCOL.md, "Checkpoint Specs" and "Checkpoint Naming Scheme". A V2 checkpoint has its files and
tombstones either inside or, all of them, in sidecars; these are opened when they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from streamlake.errors import LimitExceededError, ObjectNotFoundError
from streamlake.log.action_keys import said_twice
from streamlake.log.checkpoint.columns import SMALL_ACTIONS
from streamlake.log.checkpoint.reader import (
    ActionColumns,
    Checkpoint,
    ParquetPart,
    corrupt_checkpoint,
)
from streamlake.log.files import FILE_TYPES, TOMBSTONE_TYPES, MemoryColumns, table_of
from streamlake.log.limits import DEFAULT_LIMITS, Limits
from streamlake.protocol import (
    Action,
    AddFile,
    CheckpointMetadata,
    CheckpointName,
    RemoveFile,
    Sidecar,
    decode_actions,
    parse_log_name,
    sidecar_path,
)
from streamlake.storage import ObjectStore

SIDECAR_BYTES_PER_ACTION = 128
"""About what a file or a tombstone takes in a sidecar, where nothing tells how many there are."""

_T = TypeVar("_T", bound=Action)


def open_checkpoint(
    store: ObjectStore,
    paths: Sequence[str],
    *,
    actions: Iterable[str] = SMALL_ACTIONS,
    limits: Limits = DEFAULT_LIMITS,
) -> Checkpoint:
    """Open a checkpoint, given as a segment names it, and read its small ``actions``.

    Two requests a part, one for JSON, and as many as the columns take. Sidecars are only opened for
    files and tombstones.

    Raises:
        CorruptTableError: A part is missing, torn or garbled, or contradicts its name or another.
        UnsafePathError: A sidecar lies outside of the table's folder of sidecars.
        LimitExceededError: A JSON checkpoint, or the number of sidecars, is larger than the limits
            allow.
    """
    name = parse_log_name(paths[0])
    if not isinstance(name, CheckpointName):
        raise corrupt_checkpoint(f"{store.url}/{paths[0]}", "a name that no checkpoint has")
    if name.kind == "multipart":
        return _open_parts(store, paths, actions, limits)
    return _open_single(store, paths[0], name, actions, limits)


def _open_parts(
    store: ObjectStore, paths: Sequence[str], actions: Iterable[str], limits: Limits
) -> Checkpoint:
    """A multi-part checkpoint: its files must be unique, for its parts may be of two writers."""
    parts = [ParquetPart(store, path, limits=limits) for path in paths]
    for part, path in zip(parts, paths, strict=True):
        if any(part.small_actions(kind) for kind in ("checkpointMetadata", "sidecar")):
            raise corrupt_checkpoint(f"{store.url}/{path}", "a V2 checkpoint in several parts")
    where = f"{store.url}/{paths[0]}"
    return Checkpoint(
        adds=(ActionColumns(parts, "add", FILE_TYPES, unique_in=where),),
        removes=(ActionColumns(parts, "remove", TOMBSTONE_TYPES),),
        actions=_small_actions(parts, actions, store.url, where),
        num_actions=sum(part.num_rows for part in parts),
    )


def _open_single(
    store: ObjectStore,
    path: str,
    name: CheckpointName,
    actions: Iterable[str],
    limits: Limits,
) -> Checkpoint:
    where = f"{store.url}/{path}"
    is_json = name.format == "json"
    part = _JsonPart(store, path, limits) if is_json else ParquetPart(store, path, limits=limits)
    told = _only(part.small_actions("checkpointMetadata"), CheckpointMetadata)
    sidecars = _only(part.small_actions("sidecar"), Sidecar)
    _check_told(told, sidecars, name, where)
    small = _small_actions([part], actions, store.url, where)
    adds, removes = part.file_columns()
    if not sidecars:
        return Checkpoint(
            adds=(adds,), removes=(removes,), actions=small, num_actions=part.num_rows
        )
    if adds.num_rows or removes.num_rows:
        raise corrupt_checkpoint(where, "files and tombstones beside sidecars")
    parts = _SidecarParts(store, _sidecar_paths(store, sidecars, where, limits), limits)
    return Checkpoint(
        adds=(ActionColumns(parts, "add", FILE_TYPES, unique_in=where),),
        removes=(ActionColumns(parts, "remove", TOMBSTONE_TYPES),),
        actions=small,
        num_actions=part.num_rows + _sidecar_actions(told[0], sidecars),
    )


def _small_actions(
    parts: Sequence[ParquetPart | _JsonPart], kinds: Iterable[str], root_url: str, where: str
) -> tuple[Action, ...]:
    """The small actions of all parts; of one protocol, marker or domain there is one."""
    found = [action for kind in kinds for part in parts for action in part.small_actions(kind)]
    twice = said_twice(found, root_url=root_url)
    if twice is not None:
        raise corrupt_checkpoint(where, twice)
    return tuple(found)


def _check_told(
    told: Sequence[CheckpointMetadata],
    sidecars: Sequence[Sidecar],
    name: CheckpointName,
    where: str,
) -> None:
    """Whether what a checkpoint says of itself fits its name and its content."""
    if len(told) > 1:
        raise corrupt_checkpoint(where, f"{len(told)} checkpointMetadata actions")
    if not told and (sidecars or name.kind == "uuid"):
        raise corrupt_checkpoint(where, "a V2 checkpoint without checkpointMetadata")
    if told and told[0].version != name.version:
        raise corrupt_checkpoint(where, f"a checkpoint of version {told[0].version}")


def _sidecar_paths(
    store: ObjectStore, sidecars: Sequence[Sidecar], where: str, limits: Limits
) -> tuple[tuple[str, int], ...]:
    """Path and size of each sidecar."""
    if len(sidecars) > limits.checkpoint_sidecars:
        raise LimitExceededError(
            "The checkpoint has more sidecars than the limit.",
            where=where,
            found=f"{len(sidecars)} sidecars; the limit is {limits.checkpoint_sidecars}",
            remedy="Raise Limits.checkpoint_sidecars if the file is sound.",
        )
    found = {
        sidecar_path(sidecar.path, root_url=store.url): sidecar.size_in_bytes
        for sidecar in sidecars
    }
    if len(found) != len(sidecars):
        raise corrupt_checkpoint(where, "a sidecar that is named twice")
    return tuple(found.items())


def _sidecar_actions(told: CheckpointMetadata, sidecars: Sequence[Sidecar]) -> int:
    """About how many actions the sidecars hold, without opening them."""
    said = (told.tags or {}).get("sidecarNumActions") or ""
    if said.isdecimal() and len(said) < 19:  # noqa: PLR2004 -- digits of an int64
        return int(said)
    size_bytes = sum(max(0, sidecar.size_in_bytes) for sidecar in sidecars)
    return size_bytes // SIDECAR_BYTES_PER_ACTION


def _only(actions: Iterable[Action], kind: type[_T]) -> list[_T]:
    return [action for action in actions if isinstance(action, kind)]


@dataclass(slots=True)
class _SidecarParts:
    """The sidecars of a checkpoint, opened when they are first gone through."""

    store: ObjectStore
    paths: Sequence[tuple[str, int]]
    limits: Limits
    opened: tuple[ParquetPart, ...] | None = None

    def __iter__(self) -> Iterator[ParquetPart]:
        if self.opened is None:
            self.opened = tuple(
                ParquetPart(self.store, path, size_bytes=size, limits=self.limits)
                for path, size in self.paths
            )
        return iter(self.opened)


class _JsonPart:
    """A V2 checkpoint in JSON; one request.

    Raises:
        CorruptTableError: It is missing, torn or garbled, or says two things of one file.
        LimitExceededError: It is larger than a commit file may be.
    """

    def __init__(self, store: ObjectStore, path: str, limits: Limits) -> None:
        where = f"{store.url}/{path}"
        try:
            data = store.get(path)
        except ObjectNotFoundError as error:
            raise corrupt_checkpoint(where, "it is gone") from error
        if len(data) > limits.commit_bytes:
            raise LimitExceededError(
                "The checkpoint is larger than the limit.",
                where=where,
                found=f"{len(data)} bytes of JSON; the limit is {limits.commit_bytes}",
                remedy="Raise Limits.commit_bytes if the file is sound.",
            )
        try:
            self._actions = decode_actions(data)
        except msgspec.DecodeError as error:
            raise corrupt_checkpoint(where, str(error)) from error
        twice = said_twice(self._actions, root_url=store.url)
        if twice is not None:
            raise corrupt_checkpoint(where, twice)

    @property
    def num_rows(self) -> int:
        """How many actions it holds."""
        return len(self._actions)

    def small_actions(self, name: str) -> list[Action]:
        """The actions of one kind."""
        return [action for action in self._actions if isinstance(action, SMALL_ACTIONS[name])]

    def file_columns(self) -> tuple[MemoryColumns, MemoryColumns]:
        """Its files and its tombstones."""
        adds = _only(self._actions, AddFile)
        removes = _only(self._actions, RemoveFile)
        return (
            MemoryColumns(table_of(adds, FILE_TYPES)),
            MemoryColumns(table_of(removes, TOMBSTONE_TYPES)),
        )
