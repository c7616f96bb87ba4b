"""Append rows: stage data files, commit them with their markers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from streamlake.data import Stager, Tabular
from streamlake.log import (
    CommitResult,
    Expectation,
    Log,
    Transaction,
    already_committed,
    staged_markers,
)
from streamlake.protocol import AddFile, SetTransaction, schema_from_json

Markers: TypeAlias = SetTransaction | Sequence[SetTransaction] | None


def append(
    log: Log,
    data: Tabular,
    *,
    txn: Markers = None,
    expect: Expectation | None = None,
    operation: str = "WRITE",
    operation_parameters: Mapping[str, Any] | None = None,
) -> CommitResult:
    """Append rows in one commit: two requests, a data file and a commit file, when nobody is in the way.

    Delivery: exactly once with a marker; once for each call that returns without one.

    Args:
        log: The table's log.
        data: Anything that gives Arrow data; its schema must fit the table's.
        txn: Markers that name these rows: a repeat of committed ones writes nothing.
        expect: By app_id the marker that its owner knows; another one there now is FencedError.
        operation: As the log shall name it.
        operation_parameters: As the log shall show them.

    Raises:
        SchemaMismatchError: The data do not fit the table; nothing was written.
        ConstraintViolationError: A null in a NOT NULL column; nothing was written.
        InvalidInputError: Markers that can't be.
        CommitError: As ``Log.commit``.
    """
    markers = staged_markers(txn, expect, log.clock.now_ms())
    head = log.head
    if already_committed(markers, expect, head.markers, where=log.url):
        return CommitResult(version=head.version, already_committed=True)
    staged = stager(log).stage(data)
    return _commit(log, staged, markers, expect, operation, operation_parameters)


def commit_staged(
    log: Log,
    files: Sequence[AddFile],
    *,
    txn: Markers = None,
    expect: Expectation | None = None,
    operation: str = "WRITE",
    operation_parameters: Mapping[str, Any] | None = None,
) -> CommitResult:
    """Commit data files that a Stager of this table wrote, here or on other machines: one request.

    Delivery, arguments and errors as ``append``. Files that are staged and never committed stay invisible.
    """
    markers = staged_markers(txn, expect, log.clock.now_ms())
    return _commit(log, tuple(files), markers, expect, operation, operation_parameters)


def stager(log: Log) -> Stager:
    """A writer of data files for the table as the handle knows it now."""
    return Stager.over(log.store, log.head.metadata, clock=log.clock)


def _commit(
    log: Log,
    files: tuple[AddFile, ...],
    markers: tuple[SetTransaction, ...],
    expect: Expectation | None,
    operation: str,
    operation_parameters: Mapping[str, Any] | None,
) -> CommitResult:
    metadata = log.head.metadata
    if operation_parameters is None:
        partitions = msgspec.json.encode(metadata.partition_columns).decode()
        operation_parameters = {"mode": "Append", "partitionBy": partitions}
    return log.commit(
        Transaction(
            operation=operation,
            operation_parameters=operation_parameters,
            adds=files,
            markers=markers,
            expect=expect,
            read_version=log.head.version,
            staged_schema=schema_from_json(metadata.schema_string),
            staged_partitions=metadata.partition_columns,
            is_blind_append=True,
        )
    )
