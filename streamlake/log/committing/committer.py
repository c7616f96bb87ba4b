"""The commit loop: put if absent, resolve what is unknown, rebase what was lost."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from streamlake.clock import Clock
from streamlake.errors import (
    CommitUnknownError,
    ConditionalPutUnsupportedError,
    LimitExceededError,
    LogTruncatedError,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
    WriteRefusedError,
)
from streamlake.log.commit import Commit, oversize, read_commit
from streamlake.log.limits import Limits
from streamlake.log.segment import find_segment, list_log
from streamlake.protocol import CommitName, commit_path, parse_log_name
from streamlake.storage import ObjectStore

logger = logging.getLogger(__name__)


class Outcome(Enum):
    """What a put at one version came to, once it is known."""

    COMMITTED = "committed"
    LOST = "lost"


@dataclass(slots=True)
class Attempt:
    """One commit on its way through versions; it knows its token and its time."""

    store: ObjectStore
    clock: Clock
    limits: Limits
    token: str
    started_s: float
    single_writer: bool = False
    tries: int = 0

    def put(self, version: int, data: bytes) -> Outcome:
        """Put the commit at ``version`` until it is known who has it: one request as a rule.

        Any answer but success is unknown, not failed: the object is read back, and the same bytes
        are put again at the same version while nothing is there. A commit of our own that is read
        back is put once more: only a name that the store refuses is known to be durable.

        Raises:
            LimitExceededError: The commit is larger than may be read back; nothing was written.
            WriteRefusedError: The store refused before anything could have landed; certainly not
                committed.
            ConditionalPutUnsupportedError: The store can't; certainly not committed.
            CommitUnknownError: Tries or time ran out.
            CorruptTableError: The version is taken by a file that can't be decoded.
        """
        path = commit_path(version)
        last: Exception | None = None
        self._check_size(path, data)
        for turn in range(self.limits.puts_per_version):
            try:
                self._put_once(path, data)
            except (WriteRefusedError, ConditionalPutUnsupportedError) as error:
                if turn == 0:
                    raise
                last = error
            except (StorageError, OSError) as error:
                last = error
            else:
                return Outcome.COMMITTED
            owner = self._read_back(version)
            if owner is not None and owner.commit_info.token != self.token:
                return Outcome.LOST
            if owner is not None and isinstance(last, ObjectExistsError):
                return Outcome.COMMITTED
            logger.info("commit %d: outcome unknown (%s), trying again", version, last)
            if self._out_of_time():
                break
            self.pause(turn)
        raise CommitUnknownError(
            "The outcome of the commit is not known: it may have landed, or may still land.",
            token=self.token,
            version=version,
            where=f"{self.store.url}/{path}",
            found=f"no answer to go by; last: {last}",
            remedy="Append again with the same marker: it answers already_committed if this "
            "commit landed. Its data files are kept.",
        ) from last

    def _put_once(self, path: str, data: bytes) -> None:
        try:
            self.store.put_if_absent(path, data)
        except ConditionalPutUnsupportedError:
            if not self.single_writer:
                raise
            put_if_missing(self.store, path, data)

    def _check_size(self, path: str, data: bytes) -> None:
        passed = oversize(data, self.limits)
        if passed is not None:
            name, found = passed
            raise LimitExceededError(
                "The commit is past a limit; nothing was committed.",
                where=f"{self.store.url}/{path}",
                found=f"{found}; Limits.{name} is {getattr(self.limits, name)}",
                remedy=f"Commit less at once, or raise Limits.{name} for all readers.",
            )

    def _read_back(self, version: int) -> Commit | None:
        """Who has the version, or None where nobody has it or nobody can tell."""
        try:
            return read_commit(self.store, version, limits=self.limits)
        except ObjectNotFoundError:
            return None
        except (StorageError, OSError) as error:
            logger.info("commit %d: can't be read back (%s)", version, error)
            return None

    def winners(self, first: int) -> Iterator[Commit]:
        """Every commit from ``first`` on, in order: probed one by one, many listed once.

        Raises:
            LogTruncatedError: One was cleaned up, or is missing; it is never skipped.
        """
        version = first
        for _ in range(self.limits.probe_versions):
            try:
                commit = read_commit(self.store, version, limits=self.limits)
            except ObjectNotFoundError:
                return
            yield commit
            version += 1
        names = (parse_log_name(meta.path) for meta in list_log(self.store, version))
        listed = [name.version for name in names if isinstance(name, CommitName)]
        for later in range(version, max(listed, default=version - 1) + 1):
            try:
                commit = read_commit(self.store, later, limits=self.limits)
            except ObjectNotFoundError as error:
                raise LogTruncatedError(
                    f"Commit {later} vanished while the log was read.",
                    where=self.store.url,
                    found=f"the newest version is {max(listed)}",
                    remedy="Log clean-up has passed this version: open the table again.",
                ) from error
            yield commit

    def next_version(self) -> None:
        """Count a lost version, and pause with jitter before the next.

        Raises:
            LimitExceededError: Too many were lost; nothing was committed.
        """
        self.tries += 1
        if self.tries >= self.limits.commit_versions or self._out_of_time():
            raise LimitExceededError(
                "The commit lost every race and gave up; nothing was committed.",
                where=self.store.url,
                found=f"{self.tries} versions lost in "
                f"{self.clock.monotonic() - self.started_s:.1f} s",
                remedy="Too many writers: commit less often with more rows each, or raise "
                "Limits.commit_versions and Limits.commit_deadline_s.",
            )
        if self.tries > 1:
            self.pause(self.tries)

    def pause(self, turn: int) -> None:
        """Wait with jitter, longer at each turn."""
        longest = self.limits.backoff_first_s * 2.0 ** min(turn, 20)
        self.clock.sleep(min(longest, self.limits.backoff_max_s) * self.clock.jitter())

    def _out_of_time(self) -> bool:
        return self.clock.monotonic() - self.started_s > self.limits.commit_deadline_s


def put_if_missing(store: ObjectStore, path: str, data: bytes) -> None:
    """What a single writer does on a store that can't refuse a name: look, then put.

    Raises:
        ObjectExistsError: The name is taken.
    """
    try:
        store.stat(path)
    except ObjectNotFoundError:
        store.put(path, data)
        return
    raise ObjectExistsError("The name is taken.", where=f"{store.url}/{path}")


def make_durable(store: ObjectStore, version: int) -> None:
    """Make sure that a commit that is seen stays: its writer may have died before its last sync.

    Two requests: a store that refuses a name knows that what has it is durable. One that log
    clean-up has removed is in a checkpoint, for which a few more tell.

    Raises:
        ObjectNotFoundError: It is gone, and no checkpoint stands for it.
    """
    path = commit_path(version)
    try:
        data = store.get(path)
    except ObjectNotFoundError:
        if version <= max(find_segment(store).checkpoint_versions, default=-1):
            return
        raise
    with contextlib.suppress(ObjectExistsError, ConditionalPutUnsupportedError):
        store.put_if_absent(path, data)
