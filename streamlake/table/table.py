"""Table: the handle that users hold."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any

import pyarrow as pa

from streamlake import operations
from streamlake.arguments import check_type
from streamlake.clock import SYSTEM_CLOCK, Clock
from streamlake.data import Stager, Tabular
from streamlake.errors import InvalidInputError
from streamlake.log import (
    DEFAULT_LIMITS,
    CleanUp,
    CommitResult,
    Expectation,
    Limits,
    Log,
    Moment,
)
from streamlake.operations import CommitRecord, Markers, OptimizeResult
from streamlake.operations.optimize import DEFAULT_TARGET_BYTES
from streamlake.protocol import AddFile, SetTransaction, schema_from_json
from streamlake.storage import open_store
from streamlake.stream import Batch, Start, Stop, TailOptions, tail
from streamlake.table.changes import TableChanges
from streamlake.table.snapshot import Snapshot


class Table(TableChanges):
    """A handle on a Delta table. Opening starts no thread; safe to use from several."""

    def __init__(self, log: Log) -> None:
        self.log = log

    @classmethod
    def open(
        cls,
        url: str | PathLike[str],
        *,
        storage_options: Mapping[str, str] | None = None,
        single_writer: bool = False,
        clock: Clock = SYSTEM_CLOCK,
        limits: Limits = DEFAULT_LIMITS,
    ) -> Table:
        """Open a table: reads its newest version.

        Args:
            url: A path, or a ``file://``, ``memory://`` or ``s3://`` URL.
            storage_options: What the store needs besides the URL, as endpoint and credentials.
            single_writer: Trust that nobody else writes, on a store without put-if-absent.
            clock: Where time and ids come from.
            limits: Bounds on what is read and tried.

        Raises:
            InvalidInputError: No location, or an option that can't be.
            TableNotFoundError: There is no table.
            UnsupportedFeatureError: It needs what is not supported.
            CorruptTableError: Its log can't be read.
        """
        check_type("limits", limits, Limits, remedy="Give streamlake.Limits(commit_bytes=...).")
        store = open_store(url, storage_options)
        log = Log(store, clock=clock, single_writer=single_writer, limits=limits)
        log.refresh()
        return cls(log)

    @classmethod
    def create(
        cls,
        url: str | PathLike[str],
        *,
        schema: pa.Schema,
        partition_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        storage_options: Mapping[str, str] | None = None,
        single_writer: bool = False,
        clock: Clock = SYSTEM_CLOCK,
    ) -> Table:
        """Create a table and open it. Of several writers that create one at once, one does.

        Args:
            url: As ``open``.
            schema: The columns, in Arrow's types; ``nullable=False`` is NOT NULL.
            partition_by: Columns whose values become folders, not bytes in data files.
            properties: Table properties by Delta's names.
            storage_options: As ``open``.
            single_writer: As ``open``.
            clock: As ``open``.

        Raises:
            TableExistsError: There is one already.
            InvalidInputError: A type, name or property that a Delta table can't have.
            UnsupportedFeatureError: A property asks for a feature that is not supported; a
                constraint or generated column can't be computed here.
        """
        store = open_store(url, storage_options)
        log = Log(store, clock=clock, single_writer=single_writer)
        operations.create(log, schema, partition_by=partition_by, properties=properties)
        return cls(log)

    @property
    def url(self) -> str:
        """The location, without secrets."""
        return self.log.url

    @property
    def id(self) -> str:
        """The table's own id, kept for life; a table made anew in its place has another."""
        return self.log.head.metadata.id

    @property
    def version(self) -> int:
        """The newest version that this handle has seen; no request."""
        return self.log.head.version

    @property
    def schema(self) -> pa.Schema:
        """The schema as this handle has seen it last; no request."""
        return schema_from_json(self.log.head.metadata.schema_string)

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The columns that the table is partitioned by."""
        return self.log.head.metadata.partition_columns

    @property
    def properties(self) -> Mapping[str, str]:
        """The table properties that are set, by Delta's names."""
        return self.log.head.metadata.configuration

    def __repr__(self) -> str:
        return f"Table({self.url!r}, version={self.version})"

    def append(
        self,
        data: Tabular,
        *,
        txn: Markers = None,
        expect: Expectation | None = None,
        merge_schema: bool = False,
    ) -> CommitResult:
        """Append rows in one commit: two requests when nobody is in the way.

        Delivery: durable when it returns. With ``txn`` exactly once: the same markers again answer
        ``already_committed`` and write nothing.

        Args:
            data: A pyarrow Table, RecordBatch or RecordBatchReader, or anything with
                ``__arrow_c_stream__``.
            txn: One or several exactly-once markers, of different app_ids.
            expect: Compare-and-set: by app_id the marker that must be the table's latest (None: no
                marker), as found at open or in the ``markers`` of the last result.
            merge_schema: Whether the commit also adds columns and nested fields that the table
                lacks, and widens types where ``delta.enableTypeWidening`` is set.

        Raises:
            SchemaMismatchError: The data do not fit; ``found`` names each difference. Nothing was
                written.
            ConstraintViolationError: A row breaks NOT NULL, a constraint, an invariant or a
                generated column. Nothing was written.
            InvalidInputError: No Arrow data, or markers that can't be.
            PartlyCommittedError: Some of the markers are committed and some are not. Nothing was
                written.
            FencedError: Another owner moved an expected marker.
            CommitConflictError: A concurrent commit rules this one out.
            CommitUnknownError: The outcome could not be learnt in time.
        """
        return operations.append(self.log, data, txn=txn, expect=expect, merge_schema=merge_schema)

    def stager(self) -> Stager:
        """A picklable writer of data files, which nobody sees before ``commit_staged``."""
        return operations.stager(self.log)

    def commit_staged(
        self,
        files: Sequence[AddFile],
        *,
        staged_by: Stager | None = None,
        txn: Markers = None,
        expect: Expectation | None = None,
        operation: str = "WRITE",
        operation_parameters: Mapping[str, Any] | None = None,
    ) -> CommitResult:
        """Commit files that a ``stager`` of this table wrote, on any machine: one request.

        Delivery, markers and errors as ``append``.

        Args:
            files: What ``Stager.stage`` returned, of one or several calls.
            staged_by: Who wrote them, which tells by which schema; None for the one that this
                handle knows.
            txn: As ``append``.
            expect: As ``append``.
            operation: What the history shall call it.
            operation_parameters: What the history shall show of it.
        """
        return operations.commit_staged(
            self.log,
            files,
            staged_by=staged_by,
            txn=txn,
            expect=expect,
            operation=operation,
            operation_parameters=operation_parameters,
        )

    def snapshot(self, version: int | None = None, *, timestamp: Moment | None = None) -> Snapshot:
        """The table at ``version``, as it was at ``timestamp``, or at its newest, which is read.

        Args:
            version: From 0 on.
            timestamp: A datetime with a time zone, its ISO 8601 text, or milliseconds since the
                Unix epoch: the newest version committed then or before, by in-commit timestamps
                where the table has them, else by the store's times. After the newest commit it is
                refused, for the next commit may change the answer.

        Raises:
            VersionNotFoundError: The version is past the newest; the timestamp lies before the
                oldest commit that the log still holds, or after the newest.
            LogTruncatedError: It has been cleaned up.
            InvalidInputError: Both are given, or what is no version, no point in time.
        """
        if timestamp is not None:
            if version is not None:
                raise InvalidInputError(
                    "Ask for a version or for a timestamp, not for both.",
                    found=f"version {version!r} and timestamp {timestamp!r}",
                    remedy="Leave one of them out.",
                )
            version = operations.version_at(self.log, timestamp)
        return Snapshot(self.log.snapshot(version), self.log.store)

    def confirm_read(self, snapshot: Snapshot, *, where: str | None = None) -> CommitResult:
        """Prove that what was read of ``snapshot`` still holds: commit an empty write.

        For decisions that rest on what was read: once this returns, the read is ordered among the
        table's commits at ``result.version``, as if it had been made there. One request as a rule.

        Args:
            snapshot: What was read, of this table.
            where: The SQL condition that it was read by: only rows that may satisfy it count. None
                where all were.

        Raises:
            InvalidInputError: No snapshot of this table; ``where`` is no condition, or has a part
                that is not supported.
            ConcurrentAppendError: Rows were added since: read again.
            ConcurrentDeleteReadError: Rows were removed since: read again.
            MetadataChangedError: The table's metadata changed since.
            CommitUnknownError: The outcome could not be learnt in time.
        """
        if not isinstance(snapshot, Snapshot):
            raise InvalidInputError(
                "What is confirmed must be a Snapshot.",
                found=repr(snapshot)[:200],
                remedy="Give what Table.snapshot() gave, and what was read of.",
            )
        if snapshot.url != self.url and snapshot.metadata.id != self.id:
            raise InvalidInputError(
                "The snapshot is of another table.",
                where=self.url,
                found=repr(snapshot),
                remedy="Confirm it with a handle on the table that was read.",
            )
        return operations.confirm_read(self.log, snapshot._state, where)  # noqa: SLF001

    def version_at(self, timestamp: Moment, *, or_newest: bool = False) -> int:
        """The newest version committed at ``timestamp`` or before, as ``snapshot`` finds it.

        Args:
            timestamp: As ``snapshot``.
            or_newest: Whether a time after the newest commit means the newest version. The next
                commit may change that answer, so it is refused unless asked for.

        Raises:
            VersionNotFoundError: It lies before the oldest commit that the log still holds, or
                after the newest.
            InvalidInputError: No point in time, or one without a time zone.
        """
        return operations.version_at(self.log, timestamp, or_newest=or_newest)

    def tail(
        self,
        start: Start = "earliest",
        *,
        stop: Stop = None,
        follow: bool = True,
        options: TailOptions | None = None,
    ) -> Generator[Batch, None, None]:
        """The table's rows in the order of their commits, from ``start`` on, and those that come.

        Delivery: in order, nothing left out. Resume with ``start=batch.offset``: at least once if
        the offset is stored after the rows, exactly once if both are stored in one step.

        Args:
            start: "earliest" (version 0), "latest" (what is committed from now on), "snapshot" (the
                table as it is now, then what comes), a version, a point in time, or an Offset.
            stop: The last version, or "latest" for the newest one now; None for never.
            follow: Whether to wait for what comes; False is ``stop="latest"``.
            options: Columns, bounds, and policies for removed data, lost versions, new schemas.

        Raises:
            LogTruncatedError: Versions that were not read have been removed by log clean-up.
            LogGapError: A version is missing between two that exist.
            DataRemovedError: A commit removes data, and the policy is to fail.
            TableReplacedError: The table was made anew, or the Offset is of another one.
        """
        return tail(self.log, start=start, stop=stop, follow=follow, options=options)

    def markers(self) -> Mapping[str, SetTransaction]:
        """The latest marker of each app_id now: one request when nothing is new."""
        return self.log.refresh().markers

    def find_marker(self, app_id: str) -> CommitRecord | None:
        """The newest commit still in the log that set the marker; None where it is gone."""
        return operations.find_marker(self.log, app_id)

    def history(self, *, limit: int | None = None) -> Iterator[CommitRecord]:
        """Commits that the log still holds, newest first, read as they are asked for.

        Args:
            limit: How many; all of them for None.

        Raises:
            InvalidInputError: A limit below 1.
        """
        return operations.history(self.log, limit=limit)

    def optimize(
        self,
        *,
        target_file_size_bytes: int = DEFAULT_TARGET_BYTES,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> OptimizeResult:
        """Pack small files into large ones without a change of data; a tail does not see it.

        Args:
            target_file_size_bytes: Files of at least half of it are left alone.
            on_progress: Called after each commit with the commits made and those there will be.

        Raises:
            InvalidInputError: No size above 0, or no function.
            ConcurrentDeleteDeleteError: A file was removed meanwhile; what was committed before
                stays.
        """
        return operations.optimize(
            self.log, target_file_size_bytes=target_file_size_bytes, on_progress=on_progress
        )

    def clean_log(self, *, dry_run: bool = False, keep_from: int | None = None) -> CleanUp:
        """Remove log entries that ``delta.logRetentionDuration`` has passed, oldest first.

        Only whole days (UTC) go, and only what lies below a complete checkpoint from which every
        later version can still be read. A checkpoint brings it along once a day, unless
        ``delta.enableExpiredLogCleanup`` is false.

        Args:
            dry_run: Only tell what would go.
            keep_from: Keep what it takes to read this version and every later one, however old.

        Raises:
            ClockError: Clocks contradict one another; nothing was removed.
            InvalidInputError: A version that is none, or a retention that can't be.
        """
        return operations.clean_log(self.log, dry_run=dry_run, keep_from=keep_from)

    def checkpoint(self) -> int:
        """Write a checkpoint of the newest version, unless it has one; returns that version.

        Raises:
            UnsupportedFeatureError: The table has a writer feature that is not supported.
        """
        return self.log.checkpoint()

    def compact_log(self) -> tuple[int, int] | None:
        """Write the commits since the newest checkpoint as one file beside them, too.

        Whoever opens the table then reads that file in place of each commit; tails go on reading
        the commits. Cheaper than a checkpoint where the table has many files.

        Returns:
            The first and the last version in the file; None where fewer than two commits wait.

        Raises:
            UnsupportedFeatureError: The table has a writer feature that is not supported.
            CorruptTableError: A commit is torn or garbled.
        """
        return operations.compact_log(self.log)
