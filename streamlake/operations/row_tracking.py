"""Give ids to the rows that a table has, so that they can be kept (PROTOCOL.md, "Row Tracking")."""

from __future__ import annotations

import msgspec

from streamlake.errors import (
    ConcurrentDeleteDeleteError,
    ConcurrentDeleteReadError,
    LimitExceededError,
    MetadataChangedError,
)
from streamlake.log import CommitResult, Log, Transaction
from streamlake.protocol import AddFile, assigns_row_ids

FILES_PER_COMMIT = 10_000
"""How many files one commit gives ids to."""
LOST_RACES = 20
"""How often files may be removed by others before it is given up."""


def give_row_ids(log: Log) -> None:
    """Commit the files that have no row ids once more, with ids; nothing where all have them.

    The table supports row tracking, so that files which come meanwhile have ids already. Rows do
    not change: a tail passes these commits over.

    Raises:
        InvalidInputError: A file does not say how many rows it has.
        MetadataChangedError: Others suspended row tracking meanwhile.
        LimitExceededError: Others removed files faster than these could be given ids.
        CommitError: As ``Log.commit``.
    """
    lost = 0
    while True:
        snapshot = log.snapshot()
        missing = [add for add in snapshot.files() if add.base_row_id is None]
        if not missing:
            return
        if not assigns_row_ids(snapshot.protocol, snapshot.metadata):
            raise MetadataChangedError(
                "The table gives its rows no ids, so they can't be kept.",
                where=log.url,
                found="delta.rowTrackingSuspended was set meanwhile",
                remedy="Unset it, and enable row tracking again.",
            )
        try:
            _commit(log, missing[:FILES_PER_COMMIT], snapshot.version)
        except (ConcurrentDeleteReadError, ConcurrentDeleteDeleteError) as error:
            lost += 1
            if lost >= LOST_RACES:
                raise LimitExceededError(
                    "The table's files change too fast to give their rows ids.",
                    where=log.url,
                    found=f"{lost} times others removed some meanwhile",
                    remedy="Set the property again when fewer files are rewritten.",
                ) from error


def _commit(log: Log, files: list[AddFile], version: int) -> CommitResult:
    return log.commit(
        Transaction(
            operation="ROW TRACKING BACKFILL",
            adds=tuple(msgspec.structs.replace(add, data_change=False) for add in files),
            read_version=version,
            read_files=tuple(add.key for add in files),
        )
    )
