"""Names of the files in the log (PROTOCOL.md, "Delta Log Entries" and "Checkpoint Naming Scheme").

Names are matched whole and strictly. What no pattern matches is no part of the log: temporary
files, staged commits, hidden files, files in folders below the log.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from streamlake.errors import InvalidInputError, UnsafePathError
from streamlake.protocol.actions import MAX_INT64
from streamlake.protocol.paths import resolve_path

LOG_DIR = "_delta_log"
LAST_CHECKPOINT = f"{LOG_DIR}/_last_checkpoint"
SIDECAR_DIR = f"{LOG_DIR}/_sidecars"

CheckpointKind: TypeAlias = Literal["classic", "multipart", "uuid"]

_VERSION = r"([0-9]{20})"
_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_COMMIT = re.compile(rf"{LOG_DIR}/{_VERSION}\.json")
_CHECKPOINT = re.compile(
    rf"{LOG_DIR}/{_VERSION}\.checkpoint"
    rf"(?:\.([0-9]{{10}})\.([0-9]{{10}})|\.({_UUID}))?\.(parquet|json)"
)
_COMPACTED = re.compile(rf"{LOG_DIR}/{_VERSION}\.{_VERSION}\.compacted\.json")
_CHECKSUM = re.compile(rf"{LOG_DIR}/{_VERSION}\.crc")
_SIDECAR = re.compile(rf"{SIDECAR_DIR}/[^/\\\x00-\x1f]+\.parquet")


@dataclass(frozen=True, slots=True)
class CommitName:
    """The name of a commit file, ``<version>.json``."""

    version: int


@dataclass(frozen=True, slots=True)
class CheckpointName:
    """The name of a checkpoint, or of one part of a multi-part checkpoint."""

    version: int
    kind: CheckpointKind
    part: int | None = None
    """1 to ``parts``; of multi-part checkpoints only."""
    parts: int | None = None
    """How many parts make the checkpoint; of multi-part checkpoints only."""
    uuid: str | None = None
    """Of UUID-named checkpoints only."""
    format: Literal["parquet", "json"] = "parquet"


LogName: TypeAlias = CommitName | CheckpointName


def commit_path(version: int) -> str:
    """The path of a commit file, relative to the table's root.

    Raises:
        InvalidInputError: The version is negative or no int64.
    """
    return f"{LOG_DIR}/{_digits(version)}.json"


def commit_version(path: str) -> int | None:
    """The version of a commit file by its path; None for every other path."""
    match = _COMMIT.fullmatch(path)
    return None if match is None else _version(match[1])


def checkpoint_path(version: int) -> str:
    """The path of a classic checkpoint, relative to the table's root.

    Raises:
        InvalidInputError: The version is negative or no int64.
    """
    return f"{LOG_DIR}/{_digits(version)}.checkpoint.parquet"


def v2_checkpoint_path(version: int, uuid: str) -> str:
    """The path of a UUID-named checkpoint in Parquet (PROTOCOL.md, "UUID-named checkpoint").

    Raises:
        InvalidInputError: The version is negative or no int64.
    """
    return f"{LOG_DIR}/{_digits(version)}.checkpoint.{uuid}.parquet"


def compacted_path(first: int, last: int) -> str:
    """The path of a log compaction file (PROTOCOL.md, "Log Compaction Files").

    Raises:
        InvalidInputError: A version is negative or no int64, or ``last`` is not above ``first``.
    """
    if last <= first:
        raise InvalidInputError(
            f"Versions {first} to {last} can't be compacted.",
            remedy="The last must be above the first.",
        )
    return f"{LOG_DIR}/{_digits(first)}.{_digits(last)}.compacted.json"


def sidecar_path(uri: str, *, root_url: str) -> str:
    """The path of a sidecar, relative to the table's root, by what its ``sidecar`` action says.

    PROTOCOL.md, "Sidecar File Information": a name, or a URI of a file in the table's own folder
    of sidecars.

    Raises:
        UnsafePathError: It lies elsewhere.
        CorruptTableError: It is no URI reference.
    """
    folder = f"{root_url.rstrip('/')}/{SIDECAR_DIR}"
    path = f"{SIDECAR_DIR}/{resolve_path(uri, root_url=folder)}"
    if not is_sidecar(path):
        raise UnsafePathError(
            "A checkpoint names a sidecar that is none.",
            where=folder,
            found=uri[:200],
            remedy="Sidecars are Parquet files in that folder. Find out who wrote this checkpoint.",
        )
    return path


def checksum_path(version: int) -> str:
    """The path of a version checksum file (PROTOCOL.md, "Version Checksum File").

    Raises:
        InvalidInputError: The version is negative or no int64.
    """
    return f"{LOG_DIR}/{_digits(version)}.crc"


def parse_log_name(path: str) -> LogName | None:
    """What a path in the log names: a commit, a checkpoint, or None for anything else.

    Versions that are no int64 and parts that are not among their parts name nothing.

    Args:
        path: Relative to the table's root, as a store lists it.
    """
    version = commit_version(path)
    if version is not None:
        return CommitName(version)
    match = _CHECKPOINT.fullmatch(path)
    return None if match is None else _checkpoint(match)


def parse_compacted(path: str) -> tuple[int, int] | None:
    """The first and last version of a log compaction file; None for every other path.

    PROTOCOL.md, "Log Compaction Files". A stream must never read one: it leaves out what was added
    and removed in between.
    """
    match = _COMPACTED.fullmatch(path)
    if match is None:
        return None
    first, last = _version(match[1]), _version(match[2])
    return None if first is None or last is None or first >= last else (first, last)


def parse_checksum(path: str) -> int | None:
    """The version of a version checksum file; None for every other path."""
    match = _CHECKSUM.fullmatch(path)
    return None if match is None else _version(match[1])


def is_sidecar(path: str) -> bool:
    """Whether the path is that of a checkpoint's sidecar (PROTOCOL.md, "Sidecar Files")."""
    return _SIDECAR.fullmatch(path) is not None


def _checkpoint(match: re.Match[str]) -> CheckpointName | None:
    version = _version(match[1])
    if version is None:
        return None
    file_format: Literal["parquet", "json"] = "json" if match[5] == "json" else "parquet"
    if match[4] is not None:
        return CheckpointName(version, "uuid", uuid=match[4], format=file_format)
    if file_format == "json":
        return None
    if match[2] is None:
        return CheckpointName(version, "classic")
    part, parts = int(match[2]), int(match[3])
    return CheckpointName(version, "multipart", part, parts) if 1 <= part <= parts else None


def _version(digits: str) -> int | None:
    version = int(digits)
    return version if version <= MAX_INT64 else None


def _digits(version: int) -> str:
    if not 0 <= version <= MAX_INT64:
        raise InvalidInputError(
            f"Version {version} can't be a version of a table.",
            remedy="Versions are 0 to 2**63 - 1.",
        )
    return f"{version:020d}"
