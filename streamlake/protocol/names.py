"""Names of the files in the log (PROTOCOL.md, "Delta Log Entries", "Checkpoint Naming Scheme")."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from streamlake.protocol.actions import MAX_INT64

LOG_DIR = "_delta_log"
LAST_CHECKPOINT = f"{LOG_DIR}/_last_checkpoint"

_COMMIT = re.compile(r"(\d{20})\.json", re.ASCII)
_CHECKPOINT = re.compile(
    r"(?P<version>\d{20})\.checkpoint\."
    r"(?:(?P<part>\d{10})\.(?P<parts>\d{10})\.parquet|(?P<uuid>[0-9a-fA-F-]{36})\.(?:json|parquet)"
    r"|(?P<classic>parquet))",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class CommitName:
    """The name of a commit file."""

    version: int


@dataclass(frozen=True, slots=True)
class CheckpointName:
    """The name of a checkpoint, or of one part of it."""

    version: int
    kind: Literal["classic", "multipart", "uuid"]
    part: int | None = None
    parts: int | None = None
    name: str = ""


def commit_path(version: int) -> str:
    """The path of a commit file, relative to the table's root."""
    return f"{LOG_DIR}/{version:020d}.json"


def checkpoint_path(version: int) -> str:
    """The path of a classic checkpoint, relative to the table's root."""
    return f"{LOG_DIR}/{version:020d}.checkpoint.parquet"


def commit_version(path: str) -> int | None:
    """The version of a commit file, or None where the path is not one's."""
    match = _COMMIT.fullmatch(path.removeprefix(f"{LOG_DIR}/"))
    version = None if match is None else int(match[1])
    return version if version is not None and version <= MAX_INT64 else None


def parse_log_name(path: str) -> CommitName | CheckpointName | None:
    """What a path in the log names; None for everything that is no commit and no checkpoint."""
    version = commit_version(path)
    if version is not None:
        return CommitName(version)
    name = path.removeprefix(f"{LOG_DIR}/")
    match = _CHECKPOINT.fullmatch(name)
    if match is None or int(match["version"]) > MAX_INT64:
        return None
    version = int(match["version"])
    if match["part"]:
        part, parts = int(match["part"]), int(match["parts"])
        return CheckpointName(version, "multipart", part, parts) if 1 <= part <= parts else None
    return CheckpointName(version, "uuid" if match["uuid"] else "classic", name=name)
