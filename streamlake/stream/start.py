"""Where a tail begins: from what a user says to a version and a file of the log."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from streamlake.errors import (
    InvalidInputError,
    LogTruncatedError,
    TableReplacedError,
    VersionNotFoundError,
)
from streamlake.log import Definition, Log, Snapshot, Timeline, commit_range, moment_ms
from streamlake.protocol import MAX_INT64, AddFile
from streamlake.stream.offset import BEFORE_FIRST_FILE, Offset

logger = logging.getLogger(__name__)

Start: TypeAlias = str | int | datetime | Offset
"""Where a tail begins.

``"earliest"``: version 0. ``"latest"``: after the newest version. ``"snapshot"``: the table as it
is now, then what follows. A version: with that one; waits where it does not exist yet. A timestamp
(a datetime with a time zone, or its ISO 8601 text): with the first version committed then or later.
An Offset, or its JSON: right after it.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """Where a tail begins, resolved against the log as it is."""

    version: int
    """The first version that is handed on, or that of the snapshot."""
    definition: Definition | None
    """How the files of that version are to be read; None where version 0 itself says it."""
    snapshot_files: tuple[AddFile, ...] | None = None
    """The files of the initial snapshot in their order; None where there is none."""
    index: int = BEFORE_FIRST_FILE
    """The last file of that version that was consumed before."""
    rows_done: int = 0
    """Rows consumed of the file after it."""
    table_id: str | None = None
    """The table that the position belongs to; None where any will do."""
    newest_known: int | None = None
    """The newest version where that is known already."""


def parse_start(start: Start) -> Start:
    """A start as "earliest", "latest", "snapshot", a version, a datetime or an Offset.

    Raises:
        InvalidInputError: None of these.
    """
    if isinstance(start, str) and start not in {"earliest", "latest", "snapshot"}:
        return _parsed_text(start.strip())
    if isinstance(start, bool) or (isinstance(start, int) and not 0 <= start <= MAX_INT64):
        raise _no_start(start)
    if isinstance(start, datetime) and start.tzinfo is None:
        raise InvalidInputError(
            "A timestamp to start from needs a time zone.",
            found=start.isoformat(),
            remedy=f"Give it as UTC, as in {start.replace(microsecond=0).isoformat()}Z.",
        )
    if not isinstance(start, (str, int, datetime, Offset)):
        raise _no_start(start)
    return start


def is_moving(start: Start) -> bool:
    """Whether a parsed start may mean a later version when it is found out again later.

    "latest" does with each commit, a timestamp when log clean-up has removed what it meant. Rows
    would be left out then, unless what it meant at first is stored. A later snapshot leaves out
    none: it holds them.
    """
    return start == "latest" or isinstance(start, datetime)


def _parsed_text(text: str) -> Start:
    if text.startswith("{"):
        return Offset.from_json(text)
    if text.isdecimal():
        return parse_start(int(text))
    try:
        return parse_start(datetime.fromisoformat(text))
    except InvalidInputError:
        raise
    except ValueError as error:
        raise _no_start(text) from error


def _no_start(start: object) -> InvalidInputError:
    return InvalidInputError(
        f"There is no start {start!r}.",
        remedy='Give "earliest", "latest", "snapshot", a version from 0 on, a timestamp such as '
        "2026-01-31T12:00:00Z, or an Offset or its JSON.",
    )


def find_beginning(log: Log, start: Start) -> Beginning:
    """Resolve a start; a few requests, none of which grows with the number of data files.

    Only a snapshot, and an Offset inside of one, read the table's list of files.

    Raises:
        TableNotFoundError: There is no table.
        LogTruncatedError: The snapshot that an Offset lies in has been cleaned up.
        TableReplacedError: An Offset of another table, or past the end of this one.
        InvalidInputError: No start, or a timestamp in the future.
        UnsupportedFeatureError: The table needs what is not supported.
    """
    match parse_start(start):
        case "earliest":
            return Beginning(version=0, definition=None)
        case "latest":
            return after_newest(log)
        case "snapshot":
            return _of_snapshot(log.snapshot())
        case datetime() as moment:
            return _at_version(log, _version_at(log, moment))
        case Offset() as offset:
            return _after_offset(log, offset)
        case int() as version:
            return _at_version(log, version)
        case unknown:
            raise _no_start(unknown)


def after_newest(log: Log) -> Beginning:
    """After the newest version that there is now."""
    definition = newest_definition(log)
    newest = definition.version
    return Beginning(version=newest + 1, definition=definition, newest_known=newest)


def newest_definition(log: Log) -> Definition:
    """How the newest version is to be read; without the markers where no head is known yet."""
    if log.known_head is None:
        return log.definition()
    head = log.refresh()
    return Definition(version=head.version, protocol=head.protocol, metadata=head.metadata)


def at_oldest(log: Log) -> Beginning:
    """With the oldest version whose commit is left."""
    oldest, _ = commit_range(log.store)
    return after_newest(log) if oldest < 0 else _at_version(log, oldest)


def _of_snapshot(snapshot: Snapshot, *, offset: Offset | None = None) -> Beginning:
    files = sorted(snapshot.files(), key=lambda add: (add.modification_time, add.path))
    return Beginning(
        version=snapshot.version,
        definition=Definition(
            version=snapshot.version, protocol=snapshot.protocol, metadata=snapshot.metadata
        ),
        snapshot_files=tuple(files),
        index=BEFORE_FIRST_FILE if offset is None else offset.index,
        rows_done=0 if offset is None else offset.rows_done,
    )


def _at_version(log: Log, version: int) -> Beginning:
    """With ``version``, read as it says itself; it may not exist yet."""
    if version == 0:
        return Beginning(version=0, definition=None)
    return Beginning(version=version, definition=_definition(log, version))


def _definition(log: Log, version: int) -> Definition:
    """How the table is to be read at a version; where nothing tells any more, as it is now."""
    try:
        return log.definition(version)
    except VersionNotFoundError:
        return log.definition()
    except LogTruncatedError:
        logger.info("no checkpoint leads to version %d of %s", version, log.url)
        return log.definition()


def _after_offset(log: Log, offset: Offset) -> Beginning:
    if offset.is_starting_version:
        beginning = _of_snapshot(log.snapshot(offset.reservoir_version), offset=offset)
        _check_table(log, offset, beginning.definition)
        return beginning
    version = offset.reservoir_version
    if version == 0:
        return Beginning(
            version=0,
            definition=None,
            index=offset.index,
            rows_done=offset.rows_done,
            table_id=offset.reservoir_id,
        )
    is_between = offset.index == BEFORE_FIRST_FILE and not offset.rows_done
    definition = _definition(log, version - 1 if is_between else version)
    _check_table(log, offset, definition)
    if definition.version < (version - 1 if is_between else version):
        raise TableReplacedError(
            "The position lies past the table's newest version.",
            where=log.url,
            found=f"position {offset.to_json()}; the newest version is {definition.version}",
            remedy="The table was put back to an earlier state, or is another one. Find out which "
            'rows it holds, then start again from a version, "earliest" or "snapshot".',
        )
    return Beginning(
        version=version,
        definition=definition,
        index=offset.index,
        rows_done=offset.rows_done,
        table_id=offset.reservoir_id,
    )


def _check_table(log: Log, offset: Offset, definition: Definition | None) -> None:
    if definition is not None:
        check_same_table(offset.reservoir_id, definition.metadata.id, where=log.url)


def check_same_table(known_id: str, found_id: str, *, where: str) -> None:
    """Refuse a table that is not the one that was read before.

    Raises:
        TableReplacedError: The ids differ.
    """
    if known_id == found_id:
        return
    raise TableReplacedError(
        "The table is not the one that was read before: it has another id.",
        where=where,
        found=f"{found_id}; the position belongs to {known_id}",
        remedy="The table was made anew, or the location leads to another one. Start again from "
        '"earliest" or "snapshot" if its rows are wanted.',
    )


def _version_at(log: Log, moment: datetime) -> int:
    """The first version committed at or after a moment, as ``Timeline`` tells times."""
    wanted_ms = moment_ms(moment, round_up=True)
    if wanted_ms > log.clock.now_ms():
        raise InvalidInputError(
            "The timestamp to start from lies in the future.",
            where=log.url,
            found=moment.isoformat(),
            remedy='Give one that has passed, or start="latest".',
        )
    newest = newest_definition(log)
    return Timeline(log.store, newest, limits=log.limits).first_from(wanted_ms)
