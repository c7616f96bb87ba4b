"""Append rows: stage data files, commit them with their markers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa

from streamlake.arguments import check_type, items_of
from streamlake.data import Stager, Tabular, arrow_form
from streamlake.errors import InvalidInputError
from streamlake.log import (
    CommitResult,
    Expectation,
    Log,
    Transaction,
    staged_markers,
)
from streamlake.operations.anew import anew
from streamlake.operations.merge_schema import Evolution, evolution
from streamlake.protocol import AddFile, SetTransaction

Markers: TypeAlias = SetTransaction | Sequence[SetTransaction] | None
"""The exactly-once markers of an append: one, several of different app_ids, or none."""


def append(
    log: Log,
    data: Tabular,
    *,
    txn: Markers = None,
    expect: Expectation | None = None,
    merge_schema: bool = False,
    operation: str = "WRITE",
    operation_parameters: Mapping[str, Any] | None = None,
) -> CommitResult:
    """Append rows in one commit: two requests, a data file and a commit file, as a rule.

    Delivery: exactly once with a marker; once for each call that returns without one.

    Args:
        log: The table's log.
        data: Anything that gives Arrow data; its schema must fit the table's.
        txn: Markers that name these rows: a repeat of committed ones writes nothing.
        expect: By app_id the marker that its owner knows; another one there now is FencedError.
        merge_schema: Whether the same commit adds columns and nested fields that the table lacks,
            and widens types where ``delta.enableTypeWidening`` is set.
        operation: As the log shall name it.
        operation_parameters: As the log shall show them.

    Raises:
        SchemaMismatchError: The data do not fit the table; nothing was written.
        ConstraintViolationError: A null in a NOT NULL column; nothing was written.
        InvalidInputError: Markers that can't be.
        CommitError: As ``Log.commit``.
    """
    markers = staged_markers(txn, expect, log.clock.now_ms())
    repeat = log.repeat_of(markers, expect)
    if repeat is not None:
        return repeat
    marked = _Marked(markers, expect, operation, operation_parameters)
    if not merge_schema:
        return _append(log, data, marked)
    given = arrow_form(data)
    if isinstance(given, pa.RecordBatchReader):  # read once, so tried once
        return _append(log, given, marked, evolution(log, given.schema))
    return anew(lambda: _append(log, given, marked, evolution(log, given.schema)))


@dataclass(frozen=True, slots=True)
class _Marked:
    """What a commit says beside its files."""

    markers: tuple[SetTransaction, ...]
    expect: Expectation | None
    operation: str
    parameters: Mapping[str, Any] | None


def _append(
    log: Log, data: Tabular, marked: _Marked, change: Evolution | None = None
) -> CommitResult:
    """One try: the data staged for what the table is, or becomes by ``change``, and committed."""
    head = log.head if change is None else change.head
    protocol, metadata = (None, None) if change is None else (change.protocol, change.metadata)
    writer = Stager.over(
        log.store,
        protocol or head.protocol,
        metadata or head.metadata,
        domains=head.domains,
        clock=log.clock,
    )
    return log.commit(
        Transaction(
            operation=marked.operation,
            operation_parameters=marked.parameters or _append_mode(writer),
            protocol=protocol,
            metadata=metadata,
            adds=_staged(log, writer, data),
            markers=marked.markers,
            expect=marked.expect,
            read_version=head.version,
            staged_schema=writer.schema_json,
            staged_partitions=writer.partition_columns,
            staged_configuration=writer.configuration,
            staged_table_id=writer.table_id,
            is_blind_append=True,
        )
    )


def _staged(log: Log, writer: Stager, data: Tabular) -> tuple[AddFile, ...]:
    try:
        return writer.stage(data)
    except InvalidInputError as error:
        error.where = error.where or log.url
        raise


def commit_staged(
    log: Log,
    files: Sequence[AddFile],
    *,
    staged_by: Stager | None = None,
    txn: Markers = None,
    expect: Expectation | None = None,
    operation: str = "WRITE",
    operation_parameters: Mapping[str, Any] | None = None,
) -> CommitResult:
    """Commit data files that a Stager of this table wrote, here or on other machines: one request.

    Delivery, arguments and errors as ``append``. Files that are staged and never committed stay
    invisible. ``staged_by`` tells under which schema the files were written; without it the one
    that the handle knows is taken.
    """
    check_type("staged_by", staged_by, Stager, remedy="Give what Table.stager() gave.")
    adds = items_of("files", files, AddFile, remedy="Give what Stager.stage(...) returned.")
    writer = staged_by or stager(log)
    return log.commit(
        Transaction(
            operation=operation,
            operation_parameters=operation_parameters or _append_mode(writer),
            adds=tuple(adds),
            markers=staged_markers(txn, expect, log.clock.now_ms()),
            expect=expect,
            read_version=log.head.version,
            staged_schema=writer.schema_json,
            staged_partitions=writer.partition_columns,
            staged_configuration=writer.configuration,
            staged_table_id=writer.table_id,
            is_blind_append=True,
        )
    )


def stager(log: Log) -> Stager:
    """A writer of data files for the table as the handle knows it now."""
    head = log.head
    return Stager.over(
        log.store, head.protocol, head.metadata, domains=head.domains, clock=log.clock
    )


def _append_mode(writer: Stager) -> Mapping[str, Any]:
    partitions = msgspec.json.encode(writer.partition_columns).decode()
    return {"mode": "Append", "partitionBy": partitions}
