"""What was done to a table, newest first, from its commit files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from streamlake.errors import ObjectNotFoundError
from streamlake.log import Log, read_commit
from streamlake.protocol import SetTransaction


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRecord:
    """One commit as its log entry tells it."""

    version: int
    timestamp_ms: int
    """When it was committed, in milliseconds since the Unix epoch: ``inCommitTimestamp`` or the
    store's time."""
    operation: str | None
    operation_parameters: Mapping[str, Any]
    is_blind_append: bool
    files_added: int
    files_removed: int
    rows_added: int | None
    """Rows of the added files where their statistics say so."""
    markers: Mapping[str, SetTransaction]
    info: Mapping[str, Any]
    """The whole commitInfo."""


def history(log: Log, *, limit: int | None = None) -> Iterator[CommitRecord]:
    """Commits that the log still holds, newest first: one listing and one request a commit."""
    times = sorted(log.commit_times(), reverse=True)
    for version, modified_ms in times[:limit]:
        try:
            yield _record(log, version, modified_ms)
        except ObjectNotFoundError:
            return


def find_marker(log: Log, app_id: str) -> CommitRecord | None:
    """The newest commit that set the marker, or None where the log no longer holds one.

    One listing and one request a commit that is newer; the usual case, a replay right after a
    crash, reads a few.
    """
    return next((record for record in history(log) if app_id in record.markers), None)


def _record(log: Log, version: int, modified_ms: int) -> CommitRecord:
    commit = read_commit(log.store, version, limits=log.limits)
    info = commit.commit_info
    counts = [add.num_records for add in commit.adds if add.data_change]
    return CommitRecord(
        version=version,
        timestamp_ms=info.in_commit_timestamp_ms or modified_ms,
        operation=info.operation,
        operation_parameters=info.operation_parameters,
        is_blind_append=info.is_blind_append,
        files_added=len(commit.adds),
        files_removed=len(commit.removes),
        rows_added=None if None in counts else sum(n for n in counts if n is not None),
        markers=commit.markers,
        info=info.fields,
    )
