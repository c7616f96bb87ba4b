"""Prove that what was read of a snapshot still holds."""

from __future__ import annotations

from streamlake.data.predicates import read_predicate
from streamlake.log import WHOLE_TABLE, CommitResult, Log, Snapshot, Transaction


def confirm_read(log: Log, snapshot: Snapshot, where: str | None = None) -> CommitResult:
    """Commit an empty write that depends on what was read of ``snapshot``: one request as a rule.

    It is tested as "Serializable" whatever the table's isolation level: every row counts that was
    added or removed since, by blind appends too.

    Args:
        log: The table's log.
        snapshot: What was read.
        where: An SQL condition: the rows that were read. None for all.

    Raises:
        InvalidInputError: ``where`` is no condition, or has a part that is not supported.
        ConcurrentAppendError: Rows that may satisfy it were added since.
        ConcurrentDeleteReadError: Rows that may have satisfied it were removed since.
        MetadataChangedError: The table's metadata changed since.
        CommitError: As ``Log.commit``.
    """
    read = WHOLE_TABLE if where is None else read_predicate(where, snapshot.metadata)
    return log.commit(
        Transaction(
            operation="READ",
            operation_parameters={"predicate": read.sql},
            read_version=snapshot.version,
            reads=(read,),
            isolation="Serializable",
        )
    )
