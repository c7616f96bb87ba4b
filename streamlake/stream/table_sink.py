"""A table as a Sink: rows and positions in one commit."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from os import PathLike
from typing import Protocol, TypeAlias

import pyarrow as pa

from streamlake import operations
from streamlake.arguments import check_names, check_type
from streamlake.clock import SYSTEM_CLOCK, Clock
from streamlake.errors import InvalidInputError, TableExistsError, TableNotFoundError
from streamlake.log import CommitResult, Log, MarkerClaim, Transaction, staged_markers
from streamlake.protocol import Metadata, SetTransaction, set_transaction_retention_ms
from streamlake.storage import open_store
from streamlake.stream.contracts import Batch, Positions

logger = logging.getLogger(__name__)

OPERATION = "STREAMING UPDATE"
RENEWALS_PER_RETENTION = 4
"""An idle marker is committed anew when it is older than this part of the retention of markers."""


class HasLog(Protocol):
    """A handle on a table, such as ``Table``."""

    @property
    def log(self) -> Log:
        """The table's log."""


Target: TypeAlias = "str | PathLike[str] | Log | HasLog"


class TableSink:
    """Stores each batch as one commit of rows and markers.

    Delivery: exactly once. The markers ``"<app_id>/<position's name>"`` are in the same commit as
    the rows, and are compare-and-set: a batch is stored only while the table's markers are the ones
    that this sink found at ``committed`` or set since. A batch without positions is stored without
    markers, and at least once.

    Of several sinks of one app_id the first to commit goes on, and the others are fenced at their
    next ``write`` until they ask for ``committed`` again; in one process the second ``open``
    raises.

    An app_id keeps one kind of marker: those of Kafka partitions (``"<topic>/<partition>"``), of
    tables (``"<table id>"``), or a single one under the app_id itself, as a producer or a Spark
    query sets.
    """

    def __init__(
        self,
        target: Target,
        *,
        app_id: str,
        schema: pa.Schema | None = None,
        partition_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        storage_options: Mapping[str, str] | None = None,
        single_writer: bool = False,
        merge_schema: bool = False,
        allow_marker_expiry: bool = False,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """A sink that is not open yet; reads and writes nothing.

        Args:
            target: The table's location, or a handle on it.
            app_id: Under which name the positions are stored; one owner at a time. No "/".
            schema: Creates the table with these columns where there is none; None never creates
                one.
            partition_by: As ``Table.create``, where the table is created.
            properties: As ``Table.create``, where the table is created.
            storage_options: As ``Table.open``, where the target is a location.
            single_writer: As ``Table.open``, where the target is a location.
            merge_schema: Whether a batch may add columns and nested fields to the table, and widen
                types where ``delta.enableTypeWidening`` is set.
            allow_marker_expiry: Go on with a table on which
                ``delta.setTransactionRetentionDuration`` is set. Markers that do not move are then
                committed anew before they expire; those of a sink that is not running for that long
                are lost, and rows may come twice.
            clock: Where time and ids come from, where the target is a location.

        Raises:
            InvalidInputError: An app_id that is empty or holds "/"; an argument of another type.
        """
        check_target("target", target)
        if not isinstance(app_id, str) or not app_id or "/" in app_id:
            raise InvalidInputError(
                "An app_id must be a text, not empty and without a slash: markers are named "
                '"<app_id>/<part of the source>".',
                found=repr(app_id),
                remedy='Use a name such as "orders-ingest".',
            )
        check_type("schema", schema, pa.Schema, remedy="Give a pyarrow.Schema.")
        check_names("partition_by", partition_by)
        self._target = target
        self._app_id = app_id
        self._schema = schema
        self._partition_by = tuple(partition_by)
        self._properties = properties
        self._storage_options = storage_options
        self._single_writer = single_writer
        self._merge_schema = merge_schema
        self._allow_marker_expiry = allow_marker_expiry
        self._clock = clock
        self._log: Log | None = None
        self._claim: MarkerClaim | None = None
        self._expected: dict[str, SetTransaction] = {}
        self._metadata: Metadata | None = None
        self._retention_ms: int | None = None

    def open(self) -> None:
        """Open the table, or create it where a schema was given; claim the app_id in this process.

        Raises:
            TableNotFoundError: There is no table, and no schema to create one with.
            InvalidInputError: The app_id is open in this process, or the table has a marker of
                another kind under it, or markers expire on the table and that was not allowed.
            UnsupportedFeatureError: The table needs what is not supported.
        """
        log = self._opened()
        self._check_expiry(log)
        self._claim = MarkerClaim(log.head.metadata.id, [self._app_id])
        self._log = log
        try:
            self.committed()
        except InvalidInputError:
            self.close()
            raise

    def committed(self) -> Positions:
        """The positions stored now, by their names; they are expected from here on.

        One request where nothing is new.

        Raises:
            InvalidInputError: The sink is not open, or the table has a marker of another kind.
        """
        prefix = f"{self._app_id}/"
        log = self._opened_log()
        markers = log.refresh().markers
        if self._app_id in markers:
            raise self._other_kind(log, "a single marker, as a producer or a Spark query sets it")
        self._expected = {
            app_id: marker for app_id, marker in markers.items() if app_id.startswith(prefix)
        }
        positions = {
            app_id.removeprefix(prefix): marker.version for app_id, marker in self._expected.items()
        }
        self._check_kinds(log, positions)
        return positions

    def write(self, batch: Batch) -> int:
        """Store rows and positions in one commit; returns the table's version.

        Positions at or below the expected ones are a repeat: nothing is written. Without rows only
        the positions are committed.

        Raises:
            SchemaMismatchError: The rows do not fit the table; nothing was written.
            ConstraintViolationError: A null in a NOT NULL column; nothing was written.
            FencedError: Another owner moved a position; nothing was committed.
            CommitUnknownError: The outcome could not be learnt in time.
        """
        log = self._opened_log()
        self._check_expiry(log)
        self._check_kinds(log, [*self._names(), *batch.positions])
        markers = [
            SetTransaction(f"{self._app_id}/{name}", position)
            for name, position in batch.positions.items()
        ]
        return self._commit(log, batch.data, markers).version

    def tend(self) -> None:
        """Commit markers anew that would expire soon; nothing where markers do not expire.

        Raises:
            FencedError: As ``write``.
            CommitUnknownError: As ``write``.
        """
        log = self._opened_log()
        if self._retention_ms is None:
            return
        now_ms = log.clock.now_ms()
        oldest_ms = now_ms - self._retention_ms // RENEWALS_PER_RETENTION
        due = {a: m for a, m in self._expected.items() if (m.last_updated or 0) < oldest_ms}
        if not due:
            return
        result = log.commit(
            Transaction(
                operation=OPERATION,
                operation_parameters={"appId": self._app_id, "renews": str(len(due))},
                markers=staged_markers(list(due.values()), due, now_ms),
                expect=due,
                renews_markers=True,
                read_version=log.head.version,
                is_blind_append=True,
            )
        )
        self._expected.update(result.markers)

    def close(self) -> None:
        """Let go of the claim. Idempotent."""
        if self._claim is not None:
            self._claim.close()
        self._claim = None
        self._log = None

    def _commit(self, log: Log, data: pa.Table, markers: Sequence[SetTransaction]) -> CommitResult:
        expect = {marker.app_id: self._expected.get(marker.app_id) for marker in markers} or None
        append = (
            partial(operations.append, log, data, merge_schema=self._merge_schema)
            if data.num_rows
            else partial(operations.commit_staged, log, ())
        )
        result = append(
            txn=markers,
            expect=expect,
            operation=OPERATION,
            operation_parameters={"outputMode": "Append", "appId": self._app_id},
        )
        self._expected.update(result.markers)
        return result

    def _opened(self) -> Log:
        target = self._target
        if isinstance(target, Log):
            return target
        if not isinstance(target, (str, PathLike)):
            return target.log
        store = open_store(target, self._storage_options)
        log = Log(store, clock=self._clock, single_writer=self._single_writer)
        try:
            log.refresh()
        except TableNotFoundError:
            if self._schema is None:
                raise
            self._create(log, self._schema)
        return log

    def _create(self, log: Log, schema: pa.Schema) -> None:
        try:
            operations.create(
                log, schema, partition_by=self._partition_by, properties=self._properties
            )
        except TableExistsError:
            logger.info("%s was created by somebody else meanwhile", log.url)
            log.refresh()

    def _opened_log(self) -> Log:
        if self._log is None:
            raise InvalidInputError(
                "The sink is not open.", remedy="Call open() first, as a Pipeline does."
            )
        return self._log

    def _check_expiry(self, log: Log) -> None:
        """Refuse a table whose markers expire; looks again when its metadata has changed."""
        metadata = log.head.metadata
        if metadata is self._metadata:
            return
        self._retention_ms = set_transaction_retention_ms(metadata.configuration)
        if self._retention_ms is not None and not self._allow_marker_expiry:
            raise InvalidInputError(
                "Exactly-once markers expire on this table: rows could come twice.",
                where=log.url,
                found=f"delta.setTransactionRetentionDuration is {self._retention_ms} ms",
                remedy="Unset the property, or pass allow_marker_expiry=True and never let the "
                "sink rest for half that time.",
            )
        self._metadata = metadata

    def _names(self) -> Iterable[str]:
        prefix = f"{self._app_id}/"
        return (app_id.removeprefix(prefix) for app_id in self._expected)

    def _check_kinds(self, log: Log, names: Iterable[str]) -> None:
        kinds = {_kind(name) for name in names}
        if len(kinds) > 1:
            raise self._other_kind(log, f"positions of {' and of '.join(sorted(kinds))}")

    def _other_kind(self, log: Log, found: str) -> InvalidInputError:
        return InvalidInputError(
            f"The app_id {self._app_id!r} has markers of another kind on this table.",
            where=log.url,
            found=found,
            remedy="An app_id keeps one kind of source for life: use another app_id.",
        )


def check_target(name: str, target: object) -> None:
    """Refuse what is neither a location nor a handle on a table.

    Raises:
        InvalidInputError: It is neither; the argument is named.
    """
    if isinstance(target, (str, PathLike, Log)) or isinstance(getattr(target, "log", None), Log):
        return
    raise InvalidInputError(
        f"{name} must be a table's location or a handle on it.",
        found=repr(target),
        remedy="Give a path, a URL, or what Table.open() returns.",
    )


def _kind(name: str) -> str:
    return "Kafka partitions" if "/" in name else "tables"
