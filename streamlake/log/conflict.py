"""Whether a staged transaction still holds after a commit that won the race."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from streamlake.errors import (
    ConcurrentDeleteDeleteError,
    MetadataChangedError,
    ProtocolChangedError,
    UnsupportedFeatureError,
)
from streamlake.log.commit import Commit
from streamlake.log.replay import canonical_key
from streamlake.log.transaction import Transaction
from streamlake.protocol import (
    Metadata,
    Protocol,
    RemoveFile,
    check_writable,
    schema_difference,
    schema_from_json,
)


def check_conflict(
    staged: Transaction, winner: Commit, *, protocol: Protocol, metadata: Metadata, where: str
) -> None:
    """Test a staged transaction against one commit that was made since it was staged.

    ``protocol`` and ``metadata`` are the table's with the winner applied. Appends never conflict
    with appends; a rewrite conflicts with the removal of its inputs; a change of metadata or
    protocol is checked against what is staged, and passes where it still fits.

    Raises:
        ProtocolChangedError: The new protocol forbids the transaction.
        MetadataChangedError: The staged files do not fit the new schema or partitioning.
        ConcurrentDeleteDeleteError: A file that is to be removed was removed.
    """
    told = f"commit {winner.version} of {where}"
    if winner.protocol is not None:
        _check_protocol(staged, protocol, metadata, told)
    if winner.metadata is not None:
        check_metadata(staged, metadata, where=told)
    if staged.removes and winner.removes:
        gone = {canonical_key(remove.key, root_url=where) for remove in winner.removes}
        mine = [r for r in staged.removes if canonical_key(r.key, root_url=where) in gone]
        if mine:
            raise removed_meanwhile(mine, where=told)


def removed_meanwhile(removes: Sequence[RemoveFile], *, where: str) -> ConcurrentDeleteDeleteError:
    """The error for files that are to be removed and are gone already."""
    return ConcurrentDeleteDeleteError(
        "A concurrent commit removed files that this one rewrites or removes.",
        where=where,
        found=f"{len(removes)} files, the first {removes[0].path}",
        remedy="Run the operation again: it will see the table as it is now.",
    )


def _check_protocol(
    staged: Transaction, protocol: Protocol, metadata: Metadata, where: str
) -> None:
    remedy = "Open the table again and repeat the operation."
    if staged.protocol is not None or staged.metadata is not None:
        raise ProtocolChangedError(
            "A concurrent commit changed the protocol, as this one does.",
            where=where,
            remedy=remedy,
        )
    try:
        check_writable(protocol, metadata, where=where)
    except UnsupportedFeatureError as error:
        raise ProtocolChangedError(
            "A concurrent commit changed the protocol to one that can't be written.",
            where=where,
            found=error.found or error.what,
            remedy=error.remedy or remedy,
        ) from error


def check_metadata(staged: Transaction, metadata: Metadata, *, where: str) -> None:
    """Test staged files against other metadata than they were written under.

    A blind append passes where its files still fit: further nullable columns at most.

    Raises:
        MetadataChangedError: They do not fit.
    """
    if staged.staged_schema is None or not staged.is_blind_append:
        misfits = ["the operation read the table under the old metadata"]
    elif metadata.partition_columns != staged.staged_partitions:
        now, then = list(metadata.partition_columns), list(staged.staged_partitions)
        misfits = [f"partitioned by {now}, the files were written for {then}"]
    else:
        misfits = _schema_misfits(metadata.schema_string, staged.staged_schema)
    if misfits:
        raise MetadataChangedError(
            "A concurrent commit changed the table's metadata, and the staged files do not fit it.",
            where=where,
            found="; ".join(misfits),
            remedy="Append again: the data will be checked against the new schema.",
        )


def _schema_misfits(now: str, then: str) -> list[str]:
    """What of the new schema the files lack: a column of theirs, or one that may not be null."""
    schema = schema_from_json(now)
    staged = schema_from_json(then)
    known = set(staged.names)
    needed = [field for field in schema if field.name in known or not field.nullable]
    return schema_difference(pa.schema(needed), staged)
