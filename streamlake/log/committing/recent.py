"""The commits that a handle has seen last, for transactions that were staged before them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from streamlake.errors import LimitExceededError, LogTruncatedError, ObjectNotFoundError
from streamlake.log.commit import Commit, read_commit
from streamlake.log.limits import Limits
from streamlake.storage import ObjectStore

MAX_ACTIONS = 10_000
"""How many actions are held at most, in as many commits as have them."""


class RecentCommits:
    """Consecutive commits up to the handle's head, the oldest let go of first."""

    def __init__(self, *, max_actions: int = MAX_ACTIONS) -> None:
        self._max_actions = max_actions
        self._commits: deque[Commit] = deque()
        self._actions = 0

    def note(self, commit: Commit) -> None:
        """Remember the next commit. One that does not follow the last replaces all."""
        if self._commits and commit.version != self._commits[-1].version + 1:
            self._commits.clear()
            self._actions = 0
        self._commits.append(commit)
        self._actions += len(commit.actions)
        while self._actions > self._max_actions:
            self._actions -= len(self._commits.popleft().actions)

    def between(
        self, first: int, last: int, store: ObjectStore, *, limits: Limits
    ) -> Iterator[Commit]:
        """The commits ``first`` to ``last``, in order: one request for each that is not held.

        Raises:
            LogTruncatedError: One was cleaned up.
            LimitExceededError: Too many are not held.
        """
        held = {commit.version: commit for commit in self._commits}
        unread = sum(version not in held for version in range(first, last + 1))
        if unread > limits.missed_commits:
            raise LimitExceededError(
                "Too many commits were made since the version that this one read.",
                where=store.url,
                found=f"{unread} to be read; Limits.missed_commits is {limits.missed_commits}",
                remedy="Run the operation again: it will see the table as it is now. Nothing was "
                "committed.",
            )
        for version in range(first, last + 1):
            commit = held.get(version)
            yield _read(store, version, last, limits) if commit is None else commit


def _read(store: ObjectStore, version: int, newest: int, limits: Limits) -> Commit:
    try:
        return read_commit(store, version, limits=limits)
    except ObjectNotFoundError as error:
        raise LogTruncatedError(
            f"Commit {version}, against which this one must be tested, is gone from the log.",
            where=store.url,
            found=f"the newest version is {newest}; log clean-up has passed {version}",
            remedy="The operation took longer than the log is kept: run it again. Nothing was "
            "committed.",
        ) from error
