"""Following the log: every commit from a version on, in order, none left out."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor

from streamlake.clock import Clock
from streamlake.errors import LogGapError, LogTruncatedError, ObjectNotFoundError
from streamlake.log.commit import Commit, read_commit
from streamlake.log.limits import DEFAULT_LIMITS, Limits
from streamlake.log.segment import list_log
from streamlake.protocol import CheckpointName, CommitName, commit_path, parse_log_name
from streamlake.storage import ObjectStore

READS_IN_A_ROW_PER_LISTING = 2
"""After that many commits in a row more may wait, and a listing shows them at once."""
MOST_READS_IN_A_ROW_PER_LISTING = 32
"""Each listing that shows no more than a read would doubles the number, up to this one: a listing
may cost more the longer the log is, a read never does."""


class LogTail:
    """A cursor over the commits of a log; it keeps no state but its position.

    Only ``<20 digits>.json`` is ever read: compacted files leave out what a follower must see
    (PROTOCOL.md, "Log Compaction Files").
    """

    def __init__(
        self,
        store: ObjectStore,
        *,
        next_version: int,
        clock: Clock,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.next_version = next_version
        """The version that is read next."""
        self.listed_until = next_version - 1
        """The newest version that is known to exist; commits up to it can be read without
        probing."""
        self._store = store
        self._clock = clock
        self._limits = limits
        self._idle_polls = 0
        self._reads_in_a_row = 0
        self._reads_per_listing = READS_IN_A_ROW_PER_LISTING

    @property
    def behind(self) -> int:
        """How many commits are known to wait."""
        return max(0, self.listed_until - self.next_version + 1)

    def poll(self, *, most: int = 64, executor: Executor | None = None) -> Sequence[Commit]:
        """The next commits, or none: one request when idle or at the head.

        The poll after some in a row that found one lists the log instead, and reads up to ``most``
        waiting commits, side by side where an executor is given: after two at first, after more
        where listings show that nothing else waits. After an error the position is where it was.

        Raises:
            LogGapError: A version is missing between two that exist.
            LogTruncatedError: Log clean-up removed the version.
            CorruptTableError: A commit file is torn or garbled.
        """
        if self.behind:
            return self._read_waiting(most, executor)
        if self._is_listing_due():
            many_reads = self._reads_in_a_row >= self._reads_per_listing
            self._idle_polls = self._reads_in_a_row = 0
            self.look_ahead()
            if many_reads:
                self._adapt_to_what_waited()
            return self._read_waiting(most, executor) if self.behind else ()
        try:
            commit = read_commit(self._store, self.next_version, limits=self._limits)
        except ObjectNotFoundError:
            self._idle_polls += 1
            self._reads_in_a_row = 0
            return ()
        self._idle_polls = 0
        self.next_version += 1
        self._reads_in_a_row += 1
        return (commit,)

    def _is_listing_due(self) -> bool:
        """Whether more commits may wait, or enough polls were idle to look for a truncated log."""
        many_idle = self._idle_polls >= self._limits.idle_polls_per_listing
        return many_idle or self._reads_in_a_row >= self._reads_per_listing

    def _adapt_to_what_waited(self) -> None:
        if self.behind > 1:
            self._reads_per_listing = READS_IN_A_ROW_PER_LISTING
        else:
            doubled = 2 * self._reads_per_listing
            self._reads_per_listing = min(doubled, MOST_READS_IN_A_ROW_PER_LISTING)

    def look_ahead(self) -> None:
        """List what waits: one request. Notices a gap and a truncated log.

        Raises:
            LogGapError: As ``poll``.
            LogTruncatedError: As ``poll``.
        """
        commits, checkpoint = self._listed()
        expected = self.next_version
        for version in commits:
            if version > expected:
                self._wait_for(expected, checkpoint)
                expected += 1
                while expected < version:
                    self._wait_for(expected, checkpoint)
                    expected += 1
            expected = version + 1
        if not commits and checkpoint >= self.next_version:
            self._wait_for(self.next_version, checkpoint)
            expected = self.next_version + 1
        self.listed_until = expected - 1

    def _listed(self) -> tuple[list[int], int]:
        """Commits from the next version on, each once; and the newest checkpoint, or -1."""
        commits: set[int] = set()
        checkpoint = -1
        for meta in list_log(self._store, self.next_version):
            name = parse_log_name(meta.path)
            if isinstance(name, CommitName):
                commits.add(name.version)
            elif isinstance(name, CheckpointName):
                checkpoint = max(checkpoint, name.version)
        return sorted(commits), checkpoint

    def _wait_for(self, version: int, checkpoint: int) -> None:
        """Look for a version that a listing left out: listings may lag."""
        pause_s = self._limits.gap_wait_s / self._limits.gap_probes
        for turn in range(self._limits.gap_probes):
            if turn:
                self._clock.sleep(pause_s)
            try:
                self._store.stat(commit_path(version))
            except ObjectNotFoundError:
                continue
            return
        raise self._missing(version, checkpoint)

    def _missing(self, version: int, checkpoint: int) -> LogGapError | LogTruncatedError:
        path = f"{self._store.url}/{commit_path(version)}"
        names = (parse_log_name(meta.path) for meta in list_log(self._store))
        commits = [name.version for name in names if isinstance(name, CommitName)]
        if version < min(commits, default=checkpoint + 1):
            return LogTruncatedError(
                f"Version {version} has been removed by log clean-up.",
                where=path,
                found=f"the oldest commit is {min(commits)}" if commits else "no commit is left",
                remedy="The commits between are lost to this reader: start again with "
                'start="snapshot", or go on with start="earliest" and accept the loss.',
            )
        return LogGapError(
            f"Version {version} is missing between two that exist.",
            where=path,
            found=f"the newest version is {max([*commits, checkpoint])}",
            remedy="Restore the commit file. It is never skipped: its rows would be lost.",
        )

    def _read_waiting(self, most: int, executor: Executor | None) -> Sequence[Commit]:
        last = min(self.listed_until, self.next_version + most - 1)
        versions = range(self.next_version, last + 1)
        commits = list((executor.map if executor else map)(self._read, versions))
        self.next_version = last + 1
        return commits

    def _read(self, version: int) -> Commit:
        try:
            return read_commit(self._store, version, limits=self._limits)
        except ObjectNotFoundError as error:
            raise self._missing(version, -1) from error


def commit_range(store: ObjectStore) -> tuple[int, int]:
    """The oldest and the newest commit of the log: one listing. (-1, -1) where there is none."""
    names = (parse_log_name(meta.path) for meta in list_log(store))
    versions = [name.version for name in names if isinstance(name, CommitName)]
    return (min(versions), max(versions)) if versions else (-1, -1)
