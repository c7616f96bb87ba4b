"""The log of one table: what is known of its newest version, and how the next is made."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

from streamlake.clock import SYSTEM_CLOCK, Clock
from streamlake.errors import (
    CommitUnknownError,
    InvalidInputError,
    LogTruncatedError,
    ObjectNotFoundError,
    StreamlakeError,
    TableError,
    TableExistsError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from streamlake.log.checkpointing import Checkpointing
from streamlake.log.cleanup import LogCleaner
from streamlake.log.commit import Commit, read_commit
from streamlake.log.committer import Attempt, Outcome, make_durable
from streamlake.log.conflict import check_conflict, check_metadata, forbidden
from streamlake.log.freshness import Freshness
from streamlake.log.head import DEFINING_ACTIONS, HEAD_ACTIONS, Definition, Head
from streamlake.log.limits import DEFAULT_LIMITS, Limits
from streamlake.log.markers import (
    Expectation,
    already_committed,
    check_unmoved,
    check_winner,
)
from streamlake.log.recent import RecentCommits
from streamlake.log.replay import Replay
from streamlake.log.segment import find_segment
from streamlake.log.snapshot import Snapshot, load_state, snapshot_of
from streamlake.log.stamping import stamped, with_timestamp
from streamlake.log.transaction import CommitResult, Transaction
from streamlake.protocol import (
    SetTransaction,
    check_readable,
    check_writable,
    encode_actions,
)
from streamlake.storage import ObjectStore, prove_put_if_absent

_proven: set[str] = set()


class Log:
    """The log of one table, with the head that this handle has seen last.

    Safe to use from several threads; starts none. Its reads are monotonic: the head never goes
    back, and a commit of this handle is in every later read of it.
    """

    def __init__(
        self,
        store: ObjectStore,
        *,
        clock: Clock = SYSTEM_CLOCK,
        single_writer: bool = False,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.store = store
        self.clock = clock
        self.limits = limits
        self.single_writer = single_writer
        self._lock = threading.RLock()
        self._head: Head | None = None
        self._replay: Replay | None = None
        self._recent = RecentCommits()
        self._durable_version = -1
        self._freshness = Freshness(clock)
        self._checkpointing = Checkpointing(store, clock, limits)
        self.cleaner = LogCleaner(store, clock, limits)

    @property
    def url(self) -> str:
        """The table's location, without secrets."""
        return self.store.url

    @property
    def head(self) -> Head:
        """The newest version that this handle has seen; reads the log the first time only."""
        head = self._head
        return head if head is not None else self.refresh()

    @property
    def known_head(self) -> Head | None:
        """The newest version that this handle has seen; None before its first read. No request."""
        return self._head

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
        check_readable(protocol, where=self.url, metadata=metadata, version=segment.version)
        return Definition(version=segment.version, protocol=protocol, metadata=metadata)

    def refresh(self) -> Head:
        """Read what was committed since the head: one request when there is nothing.

        Raises:
            TableNotFoundError: There is no table.
            UnsupportedFeatureError: It needs what is not supported.
            CorruptTableError: The log can't be read.
        """
        with self._lock:
            head = self._head
            if head is None:
                return self._load()
            try:
                for commit in self._attempt("").winners(head.version + 1):
                    head = head.after(commit, where=self.url)
                    self._recent.note(commit)
            except LogTruncatedError:
                return self._load()
            if head.version == self.head.version and self._is_stale():
                return self._load()
            return self._see(head)

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
            return self._readable(replay)
        with self._lock:
            head = self.head if version is not None else self.refresh()
            return self._readable(self._state_at(head.version))

    def commit(self, transaction: Transaction) -> CommitResult:
        """Commit, or learn that it was committed before. One request when nobody is in the way.

        Delivery: when it returns, the commit is durable and in the log exactly once.

        Raises:
            FencedError: An expected marker was moved by another owner.
            PartlyCommittedError: Of several markers some are committed and some are not.
            CommitConflictError: A concurrent commit rules this one out.
            CommitUnknownError: The outcome could not be learnt in time.
            WriteRefusedError: The store refused before anything was visible.
            UnsupportedFeatureError: The table needs a writer feature that is not supported.
        """
        with self._lock:
            self._prove_store()
            if self._is_stale() or transaction.read_version > self.head.version:
                self.refresh()
            if self._is_repeat(transaction):
                return self._repeated(self.head.version)
            self._check_at_head(transaction)
            result = self._commit_at_head(transaction)
        self._checkpoint_if_due()
        return result

    def create(self, transaction: Transaction) -> CommitResult:
        """Make version 0, which ``transaction`` describes by protocol and metadata.

        Raises:
            TableExistsError: There is a table already, or another writer made it first.
        """
        with self._lock:
            self._check_absent()
            self._prove_store()
            attempt = self._attempt(self.clock.new_id())
            actions = stamped(
                transaction, None, token=attempt.token, now_ms=self.clock.now_ms(), where=self.url
            )
            if attempt.put(0, encode_actions(actions)) is Outcome.LOST:
                raise self._exists()
            self._load()
            return CommitResult(version=0, token=attempt.token)

    def checkpoint(self) -> int:
        """Write a checkpoint of the newest version; returns that version."""
        version = self.refresh().version
        self._checkpointing.write(version)
        self._count_checkpoints_from(version)
        self.cleaner.clean_if_due(self.head)
        return version

    def _load(self) -> Head:
        replay, segment = load_state(
            self.store, limits=self.limits, actions=HEAD_ACTIONS, with_files=False
        )
        protocol, metadata = replay.checked()
        check_readable(protocol, metadata=metadata, where=self.url, version=replay.version)
        if self._head is not None and self._head.version > replay.version:
            return self._see(self._head)
        self._replay = None if replay.has_checkpoint else replay
        self._recent = RecentCommits()
        return self._see(
            Head(
                version=replay.version,
                protocol=protocol,
                metadata=metadata,
                markers=dict(replay.markers),
                file_count=replay.checkpoint_actions + replay.loose_actions,
                checkpoint_version=max(segment.checkpoint_versions, default=-1),
                domains=dict(replay.domains),
            )
        )

    def _see(self, head: Head) -> Head:
        self._head = head
        self._freshness.renew()
        return head

    def _state_at(self, version: int) -> Replay:
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
            where=self.url,
            version=snapshot.version,
        )
        return snapshot

    def _commit_at_head(self, transaction: Transaction) -> CommitResult:
        attempt = self._attempt(self.clock.new_id())
        while True:
            version = self.head.version + 1
            actions = stamped(
                transaction,
                with_timestamp(self.head, transaction, self.store, limits=self.limits),
                token=attempt.token,
                now_ms=self.clock.now_ms(),
                where=self.url,
            )
            commit = Commit(version, actions)
            if attempt.put(version, encode_actions(commit.actions)) is Outcome.COMMITTED:
                self._check_not_cleaned_up(commit, attempt.token)
                self._see(self.head.after(commit, where=self.url))
                self._recent.note(commit)
                return self._committed(transaction, attempt.token, version)
            landed = self._rebase(transaction, attempt)
            if landed is not None:
                return landed
            attempt.next_version()

    def _rebase(self, transaction: Transaction, attempt: Attempt) -> CommitResult | None:
        """Bring the head up over every winner, testing the transaction against each.

        Returns a result where one of them shows that the transaction is committed.
        """
        for winner in attempt.winners(self.head.version + 1):
            try:
                self._see(self.head.after(winner, where=self.url))
            except UnsupportedFeatureError as error:
                raise forbidden(winner, error, where=self.url) from error
            self._recent.note(winner)
            if winner.commit_info.token == attempt.token:
                return self._committed(transaction, attempt.token, winner.version)
            if self._is_repeat(transaction):
                return self._repeated(winner.version)
            check_winner(transaction.markers, transaction.expect, winner.markers, where=self.url)
            check_conflict(
                transaction,
                winner,
                protocol=self.head.protocol,
                metadata=self.head.metadata,
                where=self.url,
            )
        return None

    def repeat_of(
        self, markers: Sequence[SetTransaction], expect: Expectation | None
    ) -> CommitResult | None:
        """What to answer for markers that the head shows to be committed; None where it does not.

        No request, but the first time after a version that this handle did not commit: then the
        commit is made sure of first, for its writer may have died before its last sync.

        Raises:
            PartlyCommittedError: Some are committed and some are not.
            FencedError: An expected marker was moved by another owner.
        """
        with self._lock:
            head = self.head
            if already_committed(markers, expect, head.markers, where=self.url):
                return self._repeated(head.version)
            return None

    def _repeated(self, version: int) -> CommitResult:
        if version > self._durable_version:
            make_durable(self.store, version)
            self._durable_version = version
        return CommitResult(version=version, already_committed=True)

    def _check_at_head(self, transaction: Transaction) -> None:
        """Test a transaction against what the head has become since it was staged."""
        head = self.head
        if transaction.depends_on_table:
            self._check_missed(transaction, head)
        check_writable(head.protocol, head.metadata, where=self.url)
        if transaction.metadata is None and not transaction.is_staged_under(head.metadata):
            check_metadata(transaction, head.protocol, head.metadata, where=self.url)

    def _check_missed(self, transaction: Transaction, head: Head) -> None:
        """Test a transaction against the commits between the version that it read and the head."""
        if not 0 <= transaction.read_version <= head.version:
            raise InvalidInputError(
                "A transaction that depends on the table must say which version it read.",
                where=self.url,
                found=f"read_version {transaction.read_version}; the newest is {head.version}",
                remedy="Pass the version of the snapshot that it read.",
            )
        missed = self._recent.between(
            transaction.read_version + 1, head.version, self.store, limits=self.limits
        )
        for commit in missed:
            check_conflict(
                transaction,
                commit,
                protocol=head.protocol,
                metadata=head.metadata,
                where=self.url,
            )

    def _is_repeat(self, transaction: Transaction) -> bool:
        if transaction.renews_markers:
            for marker in transaction.markers:
                current = self.head.markers.get(marker.app_id)
                check_unmoved(marker.app_id, transaction.expect or {}, current, where=self.url)
            return False
        return already_committed(
            transaction.markers, transaction.expect, self.head.markers, where=self.url
        )

    def _committed(self, transaction: Transaction, token: str, version: int) -> CommitResult:
        self._durable_version = version
        markers = {marker.app_id: marker for marker in transaction.markers}
        return CommitResult(version=version, token=token, markers=markers)

    def _attempt(self, token: str) -> Attempt:
        started_s = self.clock.monotonic()
        return Attempt(self.store, self.clock, self.limits, token, started_s, self.single_writer)

    def _prove_store(self) -> None:
        if self.single_writer or self.url in _proven:
            return
        prove_put_if_absent(self.store, self.clock)
        _proven.add(self.url)

    def _is_stale(self) -> bool:
        return self._head is not None and self._freshness.is_stale(self._head)

    def _check_not_cleaned_up(self, commit: Commit, token: str) -> None:
        """A put succeeds also at a version that log clean-up has removed, where nobody reads it.

        Raises:
            CommitUnknownError: The version lies below a checkpoint that does not know the commit.
        """
        if not self._is_stale():
            return
        try:
            state, segment = load_state(self.store, limits=self.limits)
        except (StreamlakeError, OSError) as error:
            raise self._perhaps_cleaned_up(
                commit, token, f"the log can't be read: {error}"
            ) from error
        if commit.version > max(segment.checkpoint_versions, default=-1):
            return
        marked = any(state.markers.get(app) == m for app, m in commit.markers.items())
        if marked or state.held(add.key for add in commit.adds):
            return
        found = f"the newest version is {segment.version}, and it does not hold this commit"
        raise self._perhaps_cleaned_up(commit, token, found)

    def _perhaps_cleaned_up(self, commit: Commit, token: str, found: str) -> CommitUnknownError:
        return CommitUnknownError(
            "The commit took so long that the log may have been cleaned up past its version.",
            token=token,
            version=commit.version,
            where=self.url,
            found=found,
            remedy="Open the table again and append again with the same marker.",
        )

    def _check_absent(self) -> None:
        try:
            find_segment(self.store)
        except TableNotFoundError:
            return
        except TableError as error:
            raise self._exists() from error
        raise self._exists()

    def _exists(self) -> TableExistsError:
        return TableExistsError(
            "There is a table here already.",
            where=self.url,
            remedy="Open it with streamlake.Table.open(url), or choose another location.",
        )

    def _checkpoint_if_due(self) -> None:
        """Write a checkpoint if the interval was crossed; the commit is durable by then."""
        known = self._checkpointing.write_if_due(self.head)
        if known is not None:
            self._count_checkpoints_from(known)
            self.cleaner.clean_if_due(self.head)

    def _count_checkpoints_from(self, version: int) -> None:
        with self._lock:
            self._head = replace(self.head, checkpoint_version=version)


def _check_version(version: int) -> None:
    if isinstance(version, bool) or not isinstance(version, int) or version < 0:
        raise InvalidInputError(
            "A version is a whole number from 0.",
            found=repr(version),
            remedy="Leave it out for the newest.",
        )
