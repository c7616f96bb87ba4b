"""What the actions of a commit owe to the version that they are put at.

A transaction is stamped anew for every version that it tries, from the head that it follows: so
in-commit timestamps rise and row ids stay unique whoever else commits meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from streamlake.errors import (
    ConstraintViolationError,
    CorruptTableError,
    InvalidInputError,
    ObjectNotFoundError,
    UnsupportedFeatureError,
)
from streamlake.log.commit import read_commit
from streamlake.log.committing.transaction import Transaction
from streamlake.log.head import Head
from streamlake.log.limits import Limits
from streamlake.protocol import (
    Action,
    AddFile,
    DomainMetadata,
    Metadata,
    Protocol,
    append_only,
    assigns_row_ids,
    commit_path,
    in_commit_timestamps,
    keeps_row_ids,
)
from streamlake.protocol.properties import (
    IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP,
    IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION,
)
from streamlake.storage import ObjectStore

ROW_TRACKING_DOMAIN = "delta.rowTracking"
_HIGH_WATER_MARK = "rowIdHighWaterMark"


def stamped(
    transaction: Transaction, head: Head | None, *, token: str, now_ms: int, where: str
) -> tuple[Action, ...]:
    """The actions of ``transaction`` as the commit that follows ``head``, commitInfo first.

    Adds the in-commit timestamp (PROTOCOL.md, "In-Commit Timestamps"), and where it is being
    enabled the properties that say since when; fresh row ids and row commit versions with their
    high-water mark (PROTOCOL.md, "Row Tracking").

    Args:
        transaction: What is to be committed.
        head: From ``with_timestamp``; None for version 0.
        token: Of the commit.
        now_ms: The time of this attempt.
        where: The table, for errors.

    Raises:
        ConstraintViolationError: It removes rows of an append-only table.
        UnsupportedFeatureError: It moves rows whose ids the table keeps.
        InvalidInputError: Rows need ids, and a file does not say how many it has.
    """
    protocol, metadata = _then(transaction, head)
    isolation = transaction.isolation_under(metadata)
    if append_only(metadata.configuration):
        _check_append_only(transaction, where)
    if in_commit_timestamps(protocol, metadata):
        transaction = _timed(transaction, head, metadata, now_ms)
    if assigns_row_ids(protocol, metadata):
        kept = keeps_row_ids(protocol, metadata)
        transaction = _numbered(transaction, head, kept=kept, where=where)
    return tuple(transaction.actions(token=token, now_ms=now_ms, isolation=isolation))


def with_timestamp(
    head: Head, transaction: Transaction, store: ObjectStore, *, limits: Limits
) -> Head:
    """``head`` with the time that an in-commit timestamp must pass, where ``transaction`` needs it.

    No request as a rule: one where the head was read from a checkpoint, or where the timestamps are
    being enabled and the store's time of the last commit counts.

    Raises:
        CorruptTableError: The newest commit should tell its time and does not.
    """
    if not in_commit_timestamps(*_then(transaction, head)):
        return head
    enabled = in_commit_timestamps(head.protocol, head.metadata)
    if enabled and head.in_commit_timestamp_ms is not None:
        return head
    path = commit_path(head.version)
    try:
        if enabled:
            info = read_commit(store, head.version, limits=limits).commit_info
            previous_ms = info.in_commit_timestamp_ms
        else:
            previous_ms = store.stat(path).modified_ms
    except ObjectNotFoundError:
        previous_ms = None
    if previous_ms is None:
        raise CorruptTableError(
            "The newest commit does not tell its in-commit timestamp, which the next must pass.",
            where=f"{store.url}/{path}",
            found="no such file, or no inCommitTimestamp in its commitInfo",
            remedy="Restore the commit file, or disable delta.enableInCommitTimestamps with the "
            "engine that wrote it.",
        )
    return replace(head, in_commit_timestamp_ms=previous_ms)


def _then(transaction: Transaction, head: Head | None) -> tuple[Protocol, Metadata]:
    """The table's protocol and metadata once ``transaction`` is committed."""
    protocol, metadata = transaction.protocol, transaction.metadata
    if head is not None:
        protocol, metadata = protocol or head.protocol, metadata or head.metadata
    if protocol is None or metadata is None:
        raise InvalidInputError("Version 0 needs a protocol and metadata.")
    return protocol, metadata


def _check_append_only(transaction: Transaction, where: str) -> None:
    removed = [remove.path for remove in transaction.removes if remove.data_change]
    if removed:
        raise ConstraintViolationError(
            "The table is append-only: its rows may neither change nor go.",
            where=where,
            found=f"delta.appendOnly=true; {len(removed)} files would go, the first {removed[0]}",
            remedy="Leave the rows, or have the table's owner unset delta.appendOnly first.",
        )


def _timed(
    transaction: Transaction, head: Head | None, metadata: Metadata, now_ms: int
) -> Transaction:
    previous_ms = -1 if head is None else head.in_commit_timestamp_ms
    assert previous_ms is not None  # noqa: S101 - as ``with_timestamp`` gives the head
    time_ms = max(now_ms, previous_ms + 1)
    info: Mapping[str, Any] = {"inCommitTimestamp": time_ms, **transaction.info}
    if head is None or in_commit_timestamps(head.protocol, head.metadata):
        return replace(transaction, info=info)
    since = {
        IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION: str(head.version + 1),
        IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP: str(time_ms),
    }
    noted = msgspec.structs.replace(metadata, configuration={**metadata.configuration, **since})
    return replace(transaction, info=info, metadata=noted)


def _numbered(
    transaction: Transaction, head: Head | None, *, kept: bool, where: str
) -> Transaction:
    """Fresh ids for every row that joins; files that were in the table keep theirs."""
    version = 0 if head is None else head.version + 1
    first = mark = -1 if head is None else high_water_mark(head.domains, where=where)
    adds: list[AddFile] = []
    for add in transaction.adds:
        if add.base_row_id is not None:
            adds.append(add)
            continue
        if kept and not (add.data_change or transaction.keeps_row_ids):
            raise _would_renumber(where)
        if add.num_records is None:
            raise _uncounted(add, where)
        numbered = msgspec.structs.replace(
            add, base_row_id=mark + 1, default_row_commit_version=version
        )
        adds.append(numbered)
        mark += add.num_records
    info = transaction.info
    if kept:
        tags = {"delta.rowTracking.preserved": "true", **info.get("tags", {})}
        info = {**info, "tags": tags}
    domains = transaction.domains
    if mark > first:
        configuration = msgspec.json.encode({_HIGH_WATER_MARK: mark}).decode()
        domains = (*domains, DomainMetadata(ROW_TRACKING_DOMAIN, configuration, removed=False))
    return replace(transaction, adds=tuple(adds), domains=domains, info=info)


class _Mark(msgspec.Struct, rename={"mark": _HIGH_WATER_MARK}):
    mark: int


def high_water_mark(domains: Mapping[str, DomainMetadata], *, where: str) -> int:
    """The highest row id given so far; -1 where none was.

    Raises:
        CorruptTableError: The domain ``delta.rowTracking`` can't be read.
    """
    domain = domains.get(ROW_TRACKING_DOMAIN)
    if domain is None or domain.removed:
        return -1
    try:
        return msgspec.json.decode(domain.configuration, type=_Mark).mark
    except msgspec.DecodeError as error:
        raise CorruptTableError(
            f"The domain metadata {ROW_TRACKING_DOMAIN} can't be read, so rows can't get ids.",
            where=where,
            found=f"{error}: {domain.configuration[:80]!r}",
            remedy="A faulty writer made it; have it repaired before going on.",
        ) from error


def _would_renumber(where: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        "The table keeps row ids (rowTracking), which a rewrite of its files would lose.",
        where=where,
        found="delta.enableRowTracking=true",
        remedy="Rewrite them with `optimize`, which carries the ids over.",
    )


def _uncounted(add: AddFile, where: str) -> InvalidInputError:
    return InvalidInputError(
        "The table tracks rows (rowTracking), and a file does not say how many it has.",
        where=where,
        found=f"no numRecords in the statistics of {add.path}",
        remedy="Stage files with the table's stager, which counts them.",
    )
