"""Which files of the log make up a version."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from streamlake.errors import (
    LimitExceededError,
    LogGapError,
    LogTruncatedError,
    ObjectNotFoundError,
    TableNotFoundError,
    VersionNotFoundError,
)
from streamlake.log.checkpoint.hint import hinted_version
from streamlake.log.limits import DEFAULT_LIMITS, Limits
from streamlake.protocol import (
    LOG_DIR,
    CheckpointName,
    CommitName,
    commit_path,
    parse_checksum,
    parse_compacted,
    parse_log_name,
)
from streamlake.storage import ObjectMeta, ObjectStore


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSegment:
    """A checkpoint, or none, and every commit after it up to ``version``, without a gap."""

    version: int
    checkpoints: tuple[tuple[str, ...], ...]
    """Paths of the complete checkpoints that may serve, newest first; each may have parts. Of one
    version those come first that are never replaced."""
    checkpoint_versions: tuple[int, ...]
    """Their versions."""
    commits: tuple[int, ...]
    """Versions of the commit files that the listing showed, ascending."""
    commit_times_ms: tuple[int, ...]
    """The store's time of each, in milliseconds since the Unix epoch."""
    compactions: tuple[tuple[int, int], ...] = ()
    """First and last version of each log compaction file that lies within ``commits``."""
    checksums: frozenset[int] = frozenset()
    """The versions whose version checksum file the listing showed."""

    def commits_after(self, version: int) -> tuple[int, ...]:
        """The commits after ``version``, or all of them for -1; contiguous by construction."""
        return tuple(commit for commit in self.commits if commit > version)

    def reads_after(self, version: int) -> tuple[tuple[int, int], ...]:
        """The fewest files that hold the commits after ``version``: first and last version of each.

        Where both are one version it is a commit, else a log compaction file in place of commits
        (PROTOCOL.md, "Log Compaction Files"). None begins at or below ``version``. For snapshots
        only: a compacted file leaves out what was added and removed again.
        """
        ends: dict[int, list[int]] = {}
        for first, last in self.compactions:
            ends.setdefault(first, []).append(last)
        needed = {self.version + 1: 0}
        jumps: dict[int, int] = {}
        for first in range(self.version, version, -1):
            jumps[first] = min(
                (first, *ends.get(first, ())), key=lambda last: (needed[last + 1], -last)
            )
            needed[first] = 1 + needed[jumps[first] + 1]
        reads: list[tuple[int, int]] = []
        first = version + 1
        while first <= self.version:
            reads.append((first, jumps[first]))
            first = jumps[first] + 1
        return tuple(reads)

    @property
    def timestamp_ms(self) -> int | None:
        """The store's time of the newest commit."""
        return self.commit_times_ms[-1] if self.commits else None


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


def find_segment(
    store: ObjectStore,
    version: int | None = None,
    *,
    hinted: bool = True,
    limits: Limits = DEFAULT_LIMITS,
) -> LogSegment:
    """Find the files that make up ``version``, or the newest one: two requests.

    A listing may lag: a commit that it leaves out, between others or up to the ``version`` asked
    for, is looked for by its name. ``hinted=False`` lists the whole log, whatever
    ``_last_checkpoint`` says, so that every checkpoint is seen.

    Raises:
        TableNotFoundError: There is neither a commit nor a checkpoint.
        VersionNotFoundError: The version is past the newest.
        LogTruncatedError: The version lies before what the log still holds.
        LogGapError: A commit between two others is missing.
        LimitExceededError: The log has more entries than the limits allow.
    """
    hint = hinted_version(store) if hinted else 0
    if hint and (version is None or hint <= version):
        found = _Listing(store, hint, version, limits)
        if found.checkpoints:
            return found.segment()
    return _Listing(store, 0, version, limits).segment()


class _Listing:
    """What one listing of the log shows up to a version."""

    def __init__(
        self, store: ObjectStore, first_version: int, version: int | None, limits: Limits
    ) -> None:
        self.store = store
        self.limits = limits
        self.asked = version
        self.commits: dict[int, int] = {}
        self._parts: dict[CheckpointName, str] = {}
        self._compactions: set[tuple[int, int]] = set()
        self._checksums: set[int] = set()
        for meta in list_log(store, first_version, limits=limits):
            self._sort_in(meta)
        self.checkpoints = self._complete_checkpoints()

    def _sort_in(self, meta: ObjectMeta) -> None:
        name = parse_log_name(meta.path)
        if name is None:
            self._sort_in_auxiliary(meta.path)
        elif self.asked is not None and name.version > self.asked:
            return
        elif isinstance(name, CommitName):
            self.commits[name.version] = meta.modified_ms
        else:
            self._parts[name] = meta.path

    def _sort_in_auxiliary(self, path: str) -> None:
        compacted = parse_compacted(path)
        checksum = parse_checksum(path)
        if compacted is not None:
            self._compactions.add(compacted)
        elif checksum is not None:
            self._checksums.add(checksum)

    def _complete_checkpoints(self) -> list[tuple[int, tuple[str, ...]]]:
        """Complete checkpoints, the best first; multi-part sets with a missing part are left out.

        Newest first. Of one version a UUID-named one, which nobody replaces, comes before a classic
        one; a multi-part one, whose parts may be of several writers, comes last.
        """
        complete: list[tuple[int, int, tuple[str, ...]]] = []
        sets: dict[tuple[int, int], list[tuple[int, str]]] = {}
        for name, path in self._parts.items():
            if name.part is not None and name.parts is not None:
                sets.setdefault((name.version, name.parts), []).append((name.part, path))
            else:
                complete.append((name.version, 2 if name.kind == "uuid" else 1, (path,)))
        complete += [
            (version, 0, tuple(path for _, path in sorted(found)))
            for (version, parts), found in sets.items()
            if len(found) == parts
        ]
        return [(version, paths) for version, _, paths in sorted(complete, reverse=True)]

    def segment(self) -> LogSegment:
        newest_checkpoint = self.checkpoints[0][0] if self.checkpoints else -1
        self._find_unlisted(newest_checkpoint)
        commits = sorted(self.commits)
        if not commits and not self.checkpoints:
            self._raise_nothing_there()
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
            compactions=self._compactions_within(after),
            checksums=frozenset(self._checksums),
        )

    def _find_unlisted(self, checkpoint: int) -> None:
        """Look for commits that the listing leaves out by their names; the first miss ends it."""
        newest = max(checkpoint, max(self.commits, default=0), self.asked or 0)
        left_out = (v for v in range(checkpoint + 1, newest + 1) if v not in self.commits)
        for version in islice(left_out, self.limits.lagging_versions):
            try:
                self.commits[version] = self.store.stat(commit_path(version)).modified_ms
            except ObjectNotFoundError:
                return

    def _compactions_within(self, commits: list[int]) -> tuple[tuple[int, int], ...]:
        return tuple(
            (first, last)
            for first, last in sorted(self._compactions)
            if first in self.commits and commits[0] <= first and last <= commits[-1]
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
