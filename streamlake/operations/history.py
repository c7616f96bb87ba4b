"""What was done to a table, newest first, from its commit files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from streamlake.arguments import check_integer
from streamlake.errors import ObjectNotFoundError
from streamlake.log import Log, Timeline, listed_times, read_commit
from streamlake.operations.travel import timeline
from streamlake.protocol import SetTransaction

LOOK_BACK_VERSIONS = 500
"""How many older commits are listed besides those asked for, still within one page of a store's
listing: the store's times are made to rise from there on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRecord:
    """One commit as its log entry tells it."""

    version: int
    timestamp_ms: int
    """When it was committed, in milliseconds since the Unix epoch, as time travel counts:
    ``inCommitTimestamp`` where the table has it, else the store's time."""
    operation: str | None
    operation_parameters: Mapping[str, Any]
    operation_metrics: Mapping[str, Any]
    """Numbers of the operation as its writer noted them; other engines write them as strings."""
    isolation_level: str | None
    read_version: int | None
    """The version that it was made from, where its writer says so."""
    is_blind_append: bool
    files_added: int
    files_removed: int
    rows_added: int | None
    """Rows of the added files where their statistics say so."""
    markers: Mapping[str, SetTransaction]
    user_metadata: str | None
    engine_info: str | None
    info: Mapping[str, Any]
    """The whole commitInfo."""


def history(log: Log, *, limit: int | None = None) -> Iterator[CommitRecord]:
    """Commits that the log still holds, newest first.

    One request for the newest version, one listing, of no more than the end of the log where a
    limit is given, and one read a commit, made as the iteration reaches it.

    Raises:
        InvalidInputError: A limit below 1.
    """
    if limit is not None:
        check_integer("limit", limit, least=1)
    return _records(log, limit)


def _records(log: Log, limit: int | None) -> Iterator[CommitRecord]:
    line = timeline(log)
    first = 0 if limit is None else max(0, log.head.version - limit - LOOK_BACK_VERSIONS)
    stored_ms = listed_times(log.store, first, log.head.version, limits=log.limits)
    for version in sorted(stored_ms, reverse=True)[:limit]:
        try:
            yield _record(log, line, version, stored_ms[version])
        except ObjectNotFoundError:
            return


def find_marker(log: Log, app_id: str) -> CommitRecord | None:
    """The newest commit that set the marker, or None where the log no longer holds one.

    One listing and one request a commit that is newer; the usual case, a replay right after a
    crash, reads a few.
    """
    return next((record for record in history(log) if app_id in record.markers), None)


def _record(log: Log, line: Timeline, version: int, stored_ms: int) -> CommitRecord:
    commit = read_commit(log.store, version, limits=log.limits)
    info = commit.commit_info
    told_ms = info.in_commit_timestamp_ms if line.is_told(version) else None
    counts = [add.num_records for add in commit.adds if add.data_change]
    return CommitRecord(
        version=version,
        timestamp_ms=stored_ms if told_ms is None else told_ms,
        operation=info.operation,
        operation_parameters=info.operation_parameters,
        operation_metrics=info.operation_metrics,
        isolation_level=info.isolation_level,
        read_version=info.read_version,
        is_blind_append=info.is_blind_append,
        files_added=len(commit.adds),
        files_removed=len(commit.removes),
        rows_added=None if None in counts else sum(n for n in counts if n is not None),
        markers=commit.markers,
        user_metadata=info.user_metadata,
        engine_info=info.engine_info,
        info=info.fields,
    )
