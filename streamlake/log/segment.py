"""Which files of the log make up a version."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from streamlake.errors import (
    LimitExceededError,
    LogGapError,
    LogTruncatedError,
    ObjectNotFoundError,
    TableNotFoundError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from streamlake.log.limits import DEFAULT_LIMITS, Limits
from streamlake.protocol import (
    LAST_CHECKPOINT,
    LOG_DIR,
    CheckpointName,
    CommitName,
    parse_log_name,
)
from streamlake.storage import ObjectMeta, ObjectStore


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSegment:
    """A checkpoint, or none, and every commit after it up to ``version``, without a gap."""

    version: int
    checkpoints: tuple[tuple[str, ...], ...]
    """Paths of the complete checkpoints that may serve, newest first; each may have parts."""
    checkpoint_versions: tuple[int, ...]
    """Their versions."""
    commits: tuple[int, ...]
    """Versions of the commit files that the listing showed, ascending."""
    commit_times_ms: tuple[int, ...]
    """The store's time of each, in milliseconds since the Unix epoch."""

    def commits_after(self, version: int) -> tuple[int, ...]:
        """The commits after ``version``, or all of them for -1; contiguous by construction."""
        return tuple(commit for commit in self.commits if commit > version)

    @property
    def timestamp_ms(self) -> int | None:
        """The store's time of the newest commit."""
        return self.commit_times_ms[-1] if self.commits else None


class _Hint(msgspec.Struct):
    version: int


def list_log(
    store: ObjectStore, first_version: int = 0, *, limits: Limits = DEFAULT_LIMITS
) -> Iterator[ObjectMeta]:
    """Log entries whose version is at least ``first_version``, in name order: one listing.

    Temporary, hidden and underscored names and folders are passed over.

    Raises:
        LimitExceededError: The log has more entries than the limits allow.
    """
    prefix = f"{LOG_DIR}/"
    start_after = f"{prefix}{first_version:020d}" if first_version > 0 else ""
    for number, meta in enumerate(store.list_from(prefix, start_after)):
        name = meta.path[len(prefix) :]
        if name[:1] > "9":
            return
        if number >= limits.listed_entries:
            raise LimitExceededError(
                "The log has more entries than the limit.",
                where=f"{store.url}/{prefix}",
                found=f"over {limits.listed_entries} from version {first_version} on",
                remedy="Write a checkpoint and clean the log up, or raise Limits.listed_entries.",
            )
        if name[:1].isdigit() and "/" not in name:
            yield meta


def hinted_version(store: ObjectStore) -> int:
    """The version that ``_last_checkpoint`` names, or 0: a hint that may be missing or garbled.

    PROTOCOL.md, "Last Checkpoint File".
    """
    try:
        return max(0, msgspec.json.decode(store.get(LAST_CHECKPOINT), type=_Hint).version)
    except (ObjectNotFoundError, msgspec.DecodeError):
        return 0


def find_segment(
    store: ObjectStore, version: int | None = None, *, hinted: bool = True
) -> LogSegment:
    """Find the files that make up ``version``, or the newest one: two requests.

    ``hinted=False`` lists the whole log, whatever ``_last_checkpoint`` says, so that every
    checkpoint is seen.

    Raises:
        TableNotFoundError: There is neither a commit nor a checkpoint.
        VersionNotFoundError: The version is past the newest.
        LogTruncatedError: The version lies before what the log still holds.
        LogGapError: A commit between two others is missing.
        UnsupportedFeatureError: Only a kind of checkpoint that is not read would serve.
    """
    hint = hinted_version(store) if hinted else 0
    if hint and (version is None or hint <= version):
        found = _Listing(store, hint, version)
        if found.checkpoints:
            return found.segment()
    return _Listing(store, 0, version).segment()


class _Listing:
    """What one listing of the log shows up to a version."""

    def __init__(self, store: ObjectStore, first_version: int, version: int | None) -> None:
        self.store = store
        self.asked = version
        self.commits: dict[int, int] = {}
        self.unread: list[str] = []
        self._parts: dict[CheckpointName, str] = {}
        for meta in list_log(store, first_version):
            name = parse_log_name(meta.path)
            if name is None or (version is not None and name.version > version):
                continue
            if isinstance(name, CommitName):
                self.commits[name.version] = meta.modified_ms
            else:
                self._parts[name] = meta.path
        self.checkpoints = self._complete_checkpoints()

    def _complete_checkpoints(self) -> list[tuple[int, tuple[str, ...]]]:
        """Readable checkpoints, newest first; incomplete multi-part sets are left out."""
        complete: list[tuple[int, tuple[str, ...]]] = []
        sets: dict[tuple[int, int], list[tuple[int, str]]] = {}
        for name, path in self._parts.items():
            if name.kind == "classic":
                complete.append((name.version, (path,)))
            elif name.kind == "multipart" and name.part is not None and name.parts is not None:
                sets.setdefault((name.version, name.parts), []).append((name.part, path))
            else:
                self.unread.append(path)
        complete += [
            (version, tuple(path for _, path in sorted(found)))
            for (version, parts), found in sets.items()
            if len(found) == parts
        ]
        return sorted(complete, reverse=True)

    def segment(self) -> LogSegment:
        commits = sorted(self.commits)
        if not commits and not self.checkpoints:
            self._raise_nothing_there()
        newest_checkpoint = self.checkpoints[0][0] if self.checkpoints else -1
        newest = max(newest_checkpoint, commits[-1] if commits else -1)
        if self.asked is not None and newest != self.asked:
            raise VersionNotFoundError(
                f"Version {self.asked} does not exist.",
                where=self.store.url,
                found=f"the newest version is {newest}",
                remedy="Ask for a version up to the newest.",
            )
        self._check_contiguous(newest_checkpoint, newest)
        after = [commit for commit in commits if commit <= newest]
        return LogSegment(
            version=newest,
            checkpoints=tuple(paths for _, paths in self.checkpoints),
            checkpoint_versions=tuple(version for version, _ in self.checkpoints),
            commits=tuple(after),
            commit_times_ms=tuple(self.commits[commit] for commit in after),
        )

    def _check_contiguous(self, checkpoint: int, newest: int) -> None:
        missing = next(
            (v for v in range(checkpoint + 1, newest + 1) if v not in self.commits), None
        )
        if missing is None:
            return
        oldest = min(self.commits)
        if checkpoint < 0 and missing == 0:
            self._raise_truncated(oldest)
        raise LogGapError(
            f"Commit {missing} is missing from the log.",
            where=self.store.url,
            found=f"versions up to {newest}, without {missing}",
            remedy="Restore the file: the table can't be read past the gap without losing data.",
        )

    def _raise_truncated(self, oldest: int) -> None:
        if self.unread:
            raise UnsupportedFeatureError(
                "The table can only be read from a checkpoint of a kind that is not supported.",
                where=self.store.url,
                found=", ".join(self.unread[:3]),
                remedy="Have the table's writer make a classic checkpoint "
                "(`delta.checkpointPolicy = classic`).",
            )
        raise LogTruncatedError(
            "The log has been cleaned up below what was asked for.",
            where=self.store.url,
            found=f"the oldest commit is {oldest} and no checkpoint at or before "
            f"{'the newest version' if self.asked is None else f'version {self.asked}'}",
            remedy="Ask for a version at or after the oldest checkpoint.",
        )

    def _raise_nothing_there(self) -> None:
        if self.asked is None:
            raise TableNotFoundError(
                "There is no Delta table here.",
                where=self.store.url,
                found=f"no commit and no checkpoint under {LOG_DIR}/",
                remedy="Check the location, or create the table: "
                "streamlake.Table.create(url, schema=...).",
            )
        later = next(iter(list_log(self.store)), None)
        if later is None:
            self.asked = None
            self._raise_nothing_there()
        raise LogTruncatedError(
            f"Version {self.asked} has been removed by log clean-up.",
            where=self.store.url,
            found=f"the log begins with {later.path if later else 'nothing'}",
            remedy="Ask for a later version.",
        )
