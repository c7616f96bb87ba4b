"""What a handle has seen of a log: its newest version, and the state behind it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

from streamlake.clock import Clock
from streamlake.errors import InvalidInputError, LogTruncatedError, ObjectNotFoundError
from streamlake.log.commit import Commit, read_commit
from streamlake.log.committing.committer import Attempt
from streamlake.log.committing.recent import RecentCommits
from streamlake.log.freshness import Freshness
from streamlake.log.head import DEFINING_ACTIONS, HEAD_ACTIONS, Definition, Head
from streamlake.log.limits import Limits
from streamlake.log.replay import Replay
from streamlake.log.snapshot import Snapshot, load_state, snapshot_of
from streamlake.protocol import check_readable
from streamlake.storage import ObjectStore


class LogView:
    """A log as one handle has seen it; the head never goes back.

    ``lock`` guards it: whoever changes what was seen over several calls holds it meanwhile.
    """

    def __init__(self, store: ObjectStore, clock: Clock, limits: Limits) -> None:
        self.store = store
        self.limits = limits
        self.lock = threading.RLock()
        self.recent = RecentCommits()
        self._clock = clock
        self._head: Head | None = None
        self._replay: Replay | None = None
        self._freshness = Freshness(clock)
        self._read_version = -1
        """The newest version that was asked for by its number; the head is not below it."""

    @property
    def head(self) -> Head:
        """The newest version that this handle has seen; reads the log the first time only."""
        head = self._head
        return head if head is not None else self.refresh()

    @property
    def known(self) -> Head | None:
        """The newest version that this handle has seen; None before its first read. No request."""
        return self._head

    def refresh(self) -> Head:
        """Read what was committed since the head: one request when there is nothing.

        Raises:
            TableNotFoundError: There is no table.
            UnsupportedFeatureError: It needs what is not supported.
            CorruptTableError: The log can't be read.
        """
        with self.lock:
            head = self._head
            if head is None:
                head = self.load()
                if head.version >= self._read_version:
                    return head
            try:
                head = self._caught_up(head)
                while head.version < self._read_version:  # a listing that lags may end before it
                    reached, head = head.version, self._caught_up(head)
                    if head.version == reached:
                        break
            except LogTruncatedError:
                return self.load()
            if head.version == self.head.version and self.is_stale:
                return self.load()
            return self.see(head)

    def _caught_up(self, head: Head) -> Head:
        for commit in self._winners(head.version + 1):
            head = head.after(commit, where=self.store.url)
            self.recent.note(commit)
        return head

    def definition(self, version: int | None = None) -> Definition:
        """What the table was at ``version``, or is at its newest, without its files.

        Raises:
            TableNotFoundError: There is no table.
            VersionNotFoundError: The version is past the newest.
            LogTruncatedError: It has been cleaned up.
            UnsupportedFeatureError: It needs what is not supported.
        """
        replay, segment = load_state(
            self.store, version, limits=self.limits, actions=DEFINING_ACTIONS, with_files=False
        )
        protocol, metadata = replay.checked()
        check_readable(protocol, where=self.store.url, metadata=metadata, version=segment.version)
        return Definition(version=segment.version, protocol=protocol, metadata=metadata)

    def snapshot(self, version: int | None = None) -> Snapshot:
        """The table at ``version``, or at its newest.

        Raises:
            VersionNotFoundError: The version is past the newest.
            LogTruncatedError: It has been cleaned up.
            InvalidInputError: It is no whole number from 0.
        """
        if version is not None:
            _check_version(version)
        if version is not None and (self._head is None or version != self._head.version):
            replay, _ = load_state(self.store, version, limits=self.limits)
            self._read_version = max(self._read_version, version)
            return self._readable(replay)
        with self.lock:
            head = self.head if version is not None else self.refresh()
            return self._readable(self.state_at(head.version))

    def load(self) -> Head:
        """Read the head anew, from the newest checkpoint on."""
        replay, segment = load_state(
            self.store, limits=self.limits, actions=HEAD_ACTIONS, with_files=False
        )
        protocol, metadata = replay.checked()
        check_readable(protocol, metadata=metadata, where=self.store.url, version=replay.version)
        if self._head is not None and self._head.version > replay.version:
            return self.see(self._head)
        self._replay = None if replay.has_checkpoint else replay
        self.recent = RecentCommits()
        return self.see(
            Head(
                version=replay.version,
                protocol=protocol,
                metadata=metadata,
                markers=dict(replay.markers),
                file_count=replay.checkpoint_actions + replay.replayed_actions,
                checkpoint_version=max(segment.checkpoint_versions, default=-1),
                domains=dict(replay.domains),
                replayed_actions=replay.replayed_actions,
            )
        )

    def see(self, head: Head) -> Head:
        """Take ``head`` as the newest version, seen right now."""
        self._head = head
        self._freshness.renew()
        return head

    def advance(self, commit: Commit) -> Head:
        """Take the next commit as seen.

        Raises:
            UnsupportedFeatureError: It makes the table one that can't be read.
        """
        head = self.see(self.head.after(commit, where=self.store.url))
        self.recent.note(commit)
        return head

    def note_checkpoint(self, version: int) -> None:
        """Count the commits to the next checkpoint from ``version``."""
        with self.lock:
            self._head = replace(self.head, checkpoint_version=version, replayed_actions=0)

    @property
    def is_stale(self) -> bool:
        """Whether the head was seen so long ago that log clean-up may have passed it."""
        return self._head is not None and self._freshness.is_stale(self._head)

    def state_at(self, version: int) -> Replay:
        """The full state at ``version``, brought up from the one held, or read anew."""
        held = self._replay
        if held is None or held.version > version:
            held, _ = load_state(self.store, version, limits=self.limits)
        try:
            for missing in range(held.version + 1, version + 1):
                held.apply(read_commit(self.store, missing, limits=self.limits))
        except ObjectNotFoundError:  # log clean-up, below a checkpoint that holds them
            held, _ = load_state(self.store, version, limits=self.limits)
        self._replay = held
        return held

    def _readable(self, replay: Replay) -> Snapshot:
        snapshot = snapshot_of(replay)
        check_readable(
            snapshot.protocol,
            metadata=snapshot.metadata,
            where=self.store.url,
            version=snapshot.version,
        )
        return snapshot

    def _winners(self, version: int) -> Iterator[Commit]:
        """The commits from ``version`` on."""
        attempt = Attempt(self.store, self._clock, self.limits, "", self._clock.monotonic())
        return attempt.winners(version)


def _check_version(version: int) -> None:
    if isinstance(version, bool) or not isinstance(version, int) or version < 0:
        raise InvalidInputError(
            "A version is a whole number from 0.",
            found=repr(version),
            remedy="Leave it out for the newest.",
        )
