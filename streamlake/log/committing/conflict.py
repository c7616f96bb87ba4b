"""Whether a staged transaction still holds after a commit that was made since it read the table.

The rules are Delta's: what one winner changed is laid against what the transaction read, removes
and changes. They are applied to each winner by itself, in order, so that what one of them added and
the next removed again counts as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import chain

from streamlake.errors import (
    ConcurrentAppendError,
    ConcurrentDeleteDeleteError,
    ConcurrentDeleteReadError,
    ConcurrentTransactionError,
    MetadataChangedError,
    ProtocolChangedError,
    UnsupportedFeatureError,
)
from streamlake.log.commit import Commit
from streamlake.log.committing.fitting import misfits
from streamlake.log.committing.reads import matching, matching_removed
from streamlake.log.committing.transaction import Transaction
from streamlake.log.replay import canonical_key
from streamlake.protocol import (
    AddFile,
    FileKey,
    Metadata,
    Protocol,
    RemoveFile,
    check_writable,
)

_AGAIN = "Run the operation again: it will see the table as it is now."
_REBASED_DOMAINS = frozenset({"delta.rowTracking"})
"""Domains that each attempt sets anew, from what its winners set."""


def check_conflict(
    staged: Transaction, winner: Commit, *, protocol: Protocol, metadata: Metadata, where: str
) -> None:
    """Test a staged transaction against one commit that was made since its ``read_version``.

    ``protocol`` and ``metadata`` are the table's with the winner applied.

    What counts of a winner, by the isolation level of ``staged.isolation_under(metadata)``:

    - "WriteSerializable": data that it removed, and data that it added unless it is a blind append,
      which is then as good as made after this transaction. Where the transaction changes the
      metadata, blind appends count as well: their files have to satisfy the new.
    - "Serializable": all data that it added or removed.
    - "SnapshotIsolation", of transactions that change no data: only its removal of their inputs.

    A winner's files with ``dataChange=false`` hold rows that were there before: they change nothing
    that was read, and conflict only where both remove the same file.

    Raises:
        ProtocolChangedError: The new protocol forbids the transaction.
        MetadataChangedError: It read the table under the old metadata, or its staged files do not
            fit the new.
        ConcurrentTransactionError: Both set the same domain metadata.
        ConcurrentAppendError: Files were added that it should have read.
        ConcurrentDeleteReadError: Files that it read were removed.
        ConcurrentDeleteDeleteError: A file that it removes was removed.
    """
    told = f"commit {winner.version} of {where}"
    if winner.protocol is not None:
        _check_protocol(staged, told)
        _check_writable(winner, protocol, metadata, where)
    if winner.metadata is not None:
        check_metadata(staged, protocol, metadata, where=told)
        _check_writable(winner, protocol, metadata, where)
    if staged.domains and winner.domains:
        _check_domains(staged, winner, told)
    if staged.isolation_under(metadata) != "SnapshotIsolation":
        _check_added(staged, winner, metadata, told)
        _check_read(staged, winner, metadata, root_url=where, where=told)
    _check_removed(staged, winner, root_url=where, where=told)


def check_metadata(
    staged: Transaction, protocol: Protocol, metadata: Metadata, *, where: str
) -> None:
    """Test staged files against other metadata than they were written under.

    A blind append passes where its files still fit, see ``misfits``. Whatever read the table, or
    changes its metadata too, does not.

    Raises:
        MetadataChangedError: They do not fit.
    """
    if staged.is_blind_append and staged.metadata is None:
        found = misfits(staged, protocol, metadata)
        remedy = "Append again: the data will be checked against the new schema."
    else:
        found = ["the operation read the table under the old metadata"]
        remedy = _AGAIN
    if found:
        raise MetadataChangedError(
            "A concurrent commit changed the table's metadata, and what is staged does not fit it.",
            where=where,
            found="; ".join(found),
            remedy=remedy,
        )


def untouched(
    commits: Iterable[Commit], files: Collection[FileKey], version: int, *, root_url: str
) -> int:
    """The last version before one of ``commits`` removes a file, or changes how they are written.

    Args:
        commits: Those that follow ``version``.
        files: As ``canonical_key`` spells them.
        version: At which they were in the table.
        root_url: The table.
    """
    for commit in commits:
        gone = (canonical_key(remove.key, root_url=root_url) for remove in commit.removes)
        if commit.metadata or commit.protocol or any(key in files for key in gone):
            break
        version = commit.version
    return version


def _check_writable(winner: Commit, protocol: Protocol, metadata: Metadata, where: str) -> None:
    try:
        check_writable(protocol, metadata, where=where)
    except UnsupportedFeatureError as error:
        raise forbidden(winner, error, where=where) from error


def forbidden(
    winner: Commit, error: UnsupportedFeatureError, *, where: str
) -> ProtocolChangedError | MetadataChangedError:
    """The error for a commit after which the table can't be read, or written, here any more."""
    kind = MetadataChangedError if winner.protocol is None else ProtocolChangedError
    return kind(
        f"A concurrent commit changed the table so that nothing can follow. {error.what}",
        where=f"commit {winner.version} of {where}",
        found=error.found,
        remedy=error.remedy,
    )


def _check_protocol(staged: Transaction, where: str) -> None:
    if staged.protocol is not None or staged.metadata is not None:
        raise ProtocolChangedError(
            "A concurrent commit changed the protocol, on which this one's change depends.",
            where=where,
            remedy="Open the table again and repeat the operation.",
        )


def _check_domains(staged: Transaction, winner: Commit, where: str) -> None:
    mine = {action.domain: action for action in staged.domains}
    both = sorted((mine.keys() & winner.domains.keys()) - _REBASED_DOMAINS)
    if both:
        raise ConcurrentTransactionError(
            f"A concurrent commit set the domain metadata {both[0]!r}, as this one does.",
            where=where,
            found=f"both set {', '.join(both)}",
            remedy="Read the domain again and decide anew.",
        )


def _check_added(staged: Transaction, winner: Commit, metadata: Metadata, where: str) -> None:
    """Whether files were added that the transaction should have read."""
    if not staged.reads:
        return
    blind = winner.commit_info.is_blind_append and not winner.removes
    passes_blind = (
        staged.isolation_under(metadata) == "WriteSerializable" and staged.metadata is None
    )
    if blind and passes_blind:
        return
    added = [add for add in winner.adds if add.data_change]
    read = matching(staged.reads, added, metadata)
    if read is not None:
        raise ConcurrentAppendError(
            "A concurrent commit added files that this one should have read.",
            where=where,
            found=f"{_files(added)}; this commit read {read.sql}",
            remedy=_AGAIN,
        )


def _check_read(
    staged: Transaction, winner: Commit, metadata: Metadata, *, root_url: str, where: str
) -> None:
    """Whether files that the transaction read were removed with their data."""
    removed = [remove for remove in winner.removes if remove.data_change]
    files = _common(staged.read_files, removed, root_url=root_url)
    read = None if files else matching_removed(staged.reads, removed, metadata)
    if files or read is not None:
        what = files[0][0] if read is None else read.sql
        raise ConcurrentDeleteReadError(
            "A concurrent commit removed files that this one read.",
            where=where,
            found=f"{len(removed)} files, the first {removed[0].path}; this commit read {what}",
            remedy=_AGAIN,
        )


def _check_removed(staged: Transaction, winner: Commit, *, root_url: str, where: str) -> None:
    # A file that is committed once more, as with row ids, must not come back by it either.
    keys = chain((r.key for r in staged.removes), (add.key for add in staged.adds))
    mine = _common(keys, winner.removes, root_url=root_url)
    if mine:
        raise ConcurrentDeleteDeleteError(
            "A concurrent commit removed files that this one rewrites or removes.",
            where=where,
            found=f"{len(mine)} files, the first {mine[0][0]}",
            remedy=_AGAIN,
        )


def _files(added: Sequence[AddFile]) -> str:
    return f"{len(added)} files, the first {added[0].path}"


def _common(
    mine: Iterable[FileKey], removes: Iterable[RemoveFile], *, root_url: str
) -> list[FileKey]:
    """Those of ``mine`` that are among ``removes``: the same path and deletion vector.

    A file whose deletion vector changed is another logical file: the commit that changed it removed
    the old one. Paths are compared by what they name, not by how they are spelt.
    """
    gone = {canonical_key(remove.key, root_url=root_url) for remove in removes}
    return [key for key in mine if canonical_key(key, root_url=root_url) in gone] if gone else []
