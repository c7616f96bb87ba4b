"""The log of one table: what is known of its newest version, and how the next is made."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from streamlake.clock import SYSTEM_CLOCK, Clock
from streamlake.errors import (
    InvalidInputError,
    TableError,
    TableExistsError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from streamlake.log.checkpoint.schedule import Checkpointing
from streamlake.log.cleanup import LogCleaner
from streamlake.log.commit import Commit
from streamlake.log.committing.committer import Attempt, Outcome, make_durable
from streamlake.log.committing.conflict import check_conflict, check_metadata, forbidden, untouched
from streamlake.log.committing.expired import check_not_cleaned_up
from streamlake.log.committing.markers import (
    Expectation,
    already_committed,
    check_unmoved,
    check_winner,
)
from streamlake.log.committing.stamping import stamped, with_timestamp
from streamlake.log.committing.transaction import CommitResult, Transaction
from streamlake.log.head import Definition, Head
from streamlake.log.limits import DEFAULT_LIMITS, Limits
from streamlake.log.segment import find_segment
from streamlake.log.snapshot import Snapshot
from streamlake.log.view import LogView
from streamlake.protocol import (
    FileKey,
    SetTransaction,
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
        self._view = LogView(store, clock, limits)
        self._durable_version = -1
        self._checkpointing = Checkpointing(store, clock, limits)
        self.cleaner = LogCleaner(store, clock, limits)

    @property
    def url(self) -> str:
        """The table's location, without secrets."""
        return self.store.url

    @property
    def head(self) -> Head:
        """The newest version that this handle has seen; reads the log the first time only."""
        return self._view.head

    @property
    def known_head(self) -> Head | None:
        """The newest version that this handle has seen; None before its first read. No request."""
        return self._view.known

    def refresh(self) -> Head:
        """Read what was committed since the head: one request when there is nothing.

        Raises:
            TableNotFoundError: There is no table.
            UnsupportedFeatureError: It needs what is not supported.
            CorruptTableError: The log can't be read.
        """
        return self._view.refresh()

    def definition(self, version: int | None = None) -> Definition:
        """What the table was at ``version``, or is at its newest, without its files.

        Raises:
            TableNotFoundError: There is no table.
            VersionNotFoundError: The version is past the newest.
            LogTruncatedError: It has been cleaned up.
            UnsupportedFeatureError: It needs what is not supported.
        """
        return self._view.definition(version)

    def snapshot(self, version: int | None = None) -> Snapshot:
        """The table at ``version``, or at its newest.

        Raises:
            VersionNotFoundError: The version is past the newest.
            LogTruncatedError: It has been cleaned up.
            InvalidInputError: It is no whole number from 0.
        """
        return self._view.snapshot(version)

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
        with self._view.lock:
            self._prove_store()
            if self._view.is_stale or transaction.read_version > self.head.version:
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
        with self._view.lock:
            self._check_absent()
            self._prove_store()
            attempt = self._attempt(self.clock.new_id())
            actions = stamped(
                transaction, None, token=attempt.token, now_ms=self.clock.now_ms(), where=self.url
            )
            if attempt.put(0, encode_actions(actions)) is Outcome.LOST:
                raise self._exists()
            self._view.load()
            return CommitResult(version=0, token=attempt.token)

    def checkpoint(self) -> int:
        """Write a checkpoint of the newest version, unless it has one; returns that version.

        Raises:
            UnsupportedFeatureError: The table has a writer feature that is not supported.
        """
        version = self.refresh().version
        self._checkpointing.write(version)
        self._view.note_checkpoint(version)
        self.cleaner.clean_if_due(self.head)
        return version

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
                if self._view.is_stale:
                    check_not_cleaned_up(self.store, commit, attempt.token, limits=self.limits)
                self._view.advance(commit)
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
                self._view.advance(winner)
            except UnsupportedFeatureError as error:
                raise forbidden(winner, error, where=self.url) from error
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
        with self._view.lock:
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

    def untouched_since(self, version: int, files: Collection[FileKey]) -> int:
        """How far ``files`` of ``version`` are known to be in the table: a version from there on.

        For who rewrites many files in several commits: what it finds here need not be tested again
        at each of them. No request as a rule.

        Args:
            version: That the files were listed at.
            files: As ``canonical_key`` spells them.

        Returns:
            The version before the first commit that removed one of them, or changed how files are
            to be written; the newest that this handle has seen where there is none.
        """
        with self._view.lock:
            newest = self.head.version
            commits = self._view.recent.between(version + 1, newest, self.store, limits=self.limits)
            return untouched(commits, files, version, root_url=self.url)

    def _check_missed(self, transaction: Transaction, head: Head) -> None:
        """Test a transaction against the commits between the version that it read and the head."""
        if not 0 <= transaction.read_version <= head.version:
            raise InvalidInputError(
                "A transaction that depends on the table must say which version it read.",
                where=self.url,
                found=f"read_version {transaction.read_version}; the newest is {head.version}",
                remedy="Pass the version of the snapshot that it read.",
            )
        missed = self._view.recent.between(
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
            self._view.note_checkpoint(known)
            self.cleaner.clean_if_due(self.head)
