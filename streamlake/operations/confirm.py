"""Prove that what was read of a snapshot still holds."""

from __future__ import annotations

from streamlake.log import WHOLE_TABLE, CommitResult, Log, ReadPredicate, Transaction


def confirm_read(log: Log, version: int, read: ReadPredicate = WHOLE_TABLE) -> CommitResult:
    """Commit an empty write that depends on what was read at ``version``: one request as a rule.

    It is tested as "Serializable" whatever the table's isolation level: every row counts that was
    added or removed since, by blind appends too.

    Args:
        log: The table's log.
        version: The snapshot's.
        read: Which rows were read.

    Raises:
        ConcurrentAppendError: Rows that may satisfy the predicate were added since.
        ConcurrentDeleteReadError: Rows that may have satisfied it were removed since.
        MetadataChangedError: The table's metadata changed since.
        CommitError: As ``Log.commit``.
    """
    return log.commit(
        Transaction(
            operation="READ",
            operation_parameters={"predicate": read.sql},
            read_version=version,
            reads=(read,),
            isolation="Serializable",
        )
    )
