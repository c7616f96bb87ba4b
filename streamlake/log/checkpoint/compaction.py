"""Log compaction files: several commits as one, for whoever builds a snapshot.

PROTOCOL.md, "Log Compaction Files". Commits are never replaced: a compacted file stands beside
them, and what is wrong with one costs requests and never rows.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from streamlake.errors import ObjectNotFoundError
from streamlake.log.action_keys import ActionKey, key_of, said_twice
from streamlake.log.commit import Commit, oversize, read_commit
from streamlake.log.limits import DEFAULT_LIMITS, Limits
from streamlake.log.segment import LogSegment
from streamlake.protocol import (
    Action,
    AddFile,
    RemoveFile,
    compacted_path,
    decode_actions,
    encode_actions,
)
from streamlake.storage import ObjectStore

logger = logging.getLogger(__name__)


class Reconciler:
    """What a run of commits comes to, in the order in which it was said last.

    PROTOCOL.md, "Action Reconciliation". Unlike the state of a table it keeps what was removed and
    not added before, domains that were removed too: both must reach what lies below.
    """

    def __init__(self, root_url: str) -> None:
        self._root_url = root_url
        self._latest: dict[ActionKey, Action] = {}

    def __len__(self) -> int:
        return len(self._latest)

    def apply(self, actions: Iterable[Action]) -> None:
        """Apply the actions of the next commit: removes first, for paths may be re-added."""
        adds: list[AddFile] = []
        for action in actions:
            if isinstance(action, AddFile):
                adds.append(action)
            else:
                self._put(action)
        for add in adds:
            self._put(add)

    def actions(self) -> Iterator[Action]:
        """The latest of each, without a change of data."""
        for action in self._latest.values():
            if isinstance(action, AddFile | RemoveFile):
                yield msgspec.structs.replace(action, data_change=False)
            else:
                yield action

    def _put(self, action: Action) -> None:
        key = key_of(action, self._root_url)
        if key is not None:
            self._latest.pop(key, None)
            self._latest[key] = action


def read_compacted(
    store: ObjectStore, first: int, last: int, *, limits: Limits = DEFAULT_LIMITS
) -> Commit | None:
    """Commits ``first`` to ``last`` as if they were one, from their compacted file: one request.

    None where the file can't serve: it is gone, empty, torn, too large, or says two things of one
    file, so that it has not been reconciled. The commits then serve. For snapshots only.
    """
    path = compacted_path(first, last)
    try:
        data = store.get(path)
    except ObjectNotFoundError:
        return None
    try:
        _check_size(data, limits)
        _check_not_empty(data)
        actions = decode_actions(data)
        _check_lines(data, actions)
        _check_reconciled(actions, store.url)
    except msgspec.DecodeError as error:
        logger.warning("%s/%s is not used: %s", store.url, path, error)
        return None
    return Commit(last, tuple(actions), len(data))


def _check_size(data: bytes, limits: Limits) -> None:
    passed = oversize(data, limits)
    if passed is not None:
        raise msgspec.DecodeError(f"{passed[1]}, past Limits.{passed[0]}")


def _check_not_empty(data: bytes) -> None:
    """Refuse what a writer leaves that was cut off: it would pass for commits that say nothing."""
    if not data.strip():
        raise msgspec.DecodeError("it is empty")


def _check_lines(data: bytes, actions: Sequence[Action]) -> None:
    """Refuse what is passed over in a commit: an action that is not known, or garbled into one."""
    if len(actions) != sum(1 for line in data.split(b"\n") if line.strip()):
        raise msgspec.DecodeError("it holds actions that are not known")


def _check_reconciled(actions: Iterable[Action], root_url: str) -> None:
    twice = said_twice(actions, root_url=root_url)
    if twice is not None:
        raise msgspec.DecodeError(twice)


def compact(
    store: ObjectStore, segment: LogSegment, *, limits: Limits = DEFAULT_LIMITS
) -> tuple[int, int] | None:
    """Write the commits since the newest checkpoint as one file; returns its first and last.

    As many of them as fit the bounds of one commit file; compacted files that are there already are
    read in place of commits. None where fewer than two commits wait, or they come to nothing. The
    commits stay. Written unconditionally: whoever compacts a range writes the same actions.

    Raises:
        CorruptTableError: A commit is torn or garbled.
        ObjectNotFoundError: Log clean-up removed one meanwhile.
    """
    below = max(segment.checkpoint_versions, default=-1)
    reconciler = Reconciler(store.url)
    files, done, size_bytes = 0, below, 0
    for commit in _commits(store, segment.reads_after(below), limits):
        size_bytes += commit.size_bytes
        too_many = len(reconciler) + len(commit.actions) > limits.commit_actions
        if files and (too_many or size_bytes > limits.commit_bytes):
            break
        reconciler.apply(commit.actions)
        files, done = files + 1, commit.version
    if done < below + 2 or not len(reconciler):
        return None
    if files > 1:
        data = encode_actions(reconciler.actions())
        store.put(compacted_path(below + 1, done), data)
        logger.debug("compacted %d to %d: %d bytes", below + 1, done, len(data))
    return below + 1, done


def _commits(
    store: ObjectStore, reads: Iterable[tuple[int, int]], limits: Limits
) -> Iterator[Commit]:
    for first, last in reads:
        compacted = read_compacted(store, first, last, limits=limits) if last > first else None
        if compacted is not None:
            yield compacted
        else:
            for version in range(first, last + 1):
                yield read_commit(store, version, limits=limits)
