"""When each version was committed, and which version belongs to a point in time.

PROTOCOL.md, "In-Commit Timestamps", "Recommendations for Readers": where the table has in-commit
timestamps they count from the version that enabled them on; before it, and in a table without them,
the store's time of each commit file does, made to rise as Delta makes it: at least one millisecond
later than the commit before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TypeAlias

import msgspec

from streamlake.errors import (
    CorruptTableError,
    InvalidInputError,
    ObjectNotFoundError,
    VersionNotFoundError,
)
from streamlake.log.commit import read_commit
from streamlake.log.head import Definition
from streamlake.log.limits import DEFAULT_LIMITS, Limits
from streamlake.log.segment import list_log
from streamlake.protocol import (
    MAX_INT64,
    CommitInfo,
    CommitName,
    commit_path,
    decode_actions,
    in_commit_timestamp_enablement,
    parse_log_name,
)
from streamlake.protocol.properties import ENABLE_IN_COMMIT_TIMESTAMPS, flag
from streamlake.storage import ObjectStore

Moment: TypeAlias = datetime | str | int
"""A point in time: a datetime with a time zone, its ISO 8601 text, or milliseconds since the Unix
epoch."""

FIRST_LINE_BYTES = 16 * 1024
"""Of a commit file so much is read for its first line; more only where that is longer."""

IN_COMMIT_TIMESTAMP = "inCommitTimestamp"
"""The feature's name."""

_EPOCH = datetime.fromtimestamp(0, tz=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def moment_ms(moment: Moment, *, round_up: bool = False) -> int:
    """Milliseconds since the Unix epoch; the part of one is cut off, or rounded up.

    Raises:
        InvalidInputError: No point in time, or one without a time zone.
    """
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment.strip())
        except ValueError as error:
            raise _no_moment(moment) from error
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise InvalidInputError(
                "A timestamp needs a time zone.",
                found=moment.isoformat(),
                remedy=f"Give it as UTC, as in {moment.replace(microsecond=0).isoformat()}Z.",
            )
        since = moment - _EPOCH
        return -(-since // _MILLISECOND) if round_up else since // _MILLISECOND
    if isinstance(moment, bool) or not isinstance(moment, int) or abs(moment) > MAX_INT64:
        raise _no_moment(moment)
    return moment


def _no_moment(found: object) -> InvalidInputError:
    return InvalidInputError(
        f"There is no timestamp {found!r}.",
        remedy="Give a datetime with a time zone, its text such as 2026-01-31T12:00:00Z, or "
        "milliseconds since the Unix epoch.",
    )


def utc_text(time_ms: int) -> str:
    """A time as ISO 8601 text in UTC; one that no calendar has as its number of milliseconds."""
    try:
        moment = _EPOCH + timedelta(milliseconds=time_ms)
    except OverflowError:
        return f"{time_ms} ms after 1970-01-01T00:00:00Z"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def rising(times_ms: Iterable[tuple[int, int]]) -> dict[int, int]:
    """By version its time, from versions and the store's times of their files in any order.

    Each is at least one millisecond later than the one before, as Delta counts.
    """
    risen: dict[int, int] = {}
    last_ms = None
    for version, time_ms in sorted(times_ms):
        if version not in risen:
            last_ms = time_ms if last_ms is None else max(time_ms, last_ms + 1)
            risen[version] = last_ms
    return risen


def commit_times(
    store: ObjectStore, first_version: int = 0, *, limits: Limits = DEFAULT_LIMITS
) -> Iterable[tuple[int, int]]:
    """Version and the store's time in milliseconds of each commit file: one listing, lazily."""
    for meta in list_log(store, first_version, limits=limits):
        name = parse_log_name(meta.path)
        if isinstance(name, CommitName):
            yield name.version, meta.modified_ms


def listed_times(
    store: ObjectStore, first_version: int, newest: int, *, limits: Limits
) -> dict[int, int]:
    """By version the store's times, made to rise, from one version to another that is known.

    A listing may lag behind the newest: commits that it leaves out there are asked for by name.
    """
    listed = commit_times(store, first_version, limits=limits)
    found = {version: time_ms for version, time_ms in listed if version <= newest}
    after = max(found, default=first_version - 1)
    for version in range(newest, max(after, newest - limits.lagging_versions), -1):
        try:
            found[version] = store.stat(commit_path(version)).modified_ms
        except ObjectNotFoundError:
            break
    return rising(found.items())


def in_commit_time_ms(store: ObjectStore, version: int, *, limits: Limits) -> int | None:
    """``inCommitTimestamp`` of a commit, None where it has none: one request as a rule.

    Raises:
        ObjectNotFoundError: The version does not exist (any more).
        CorruptTableError: The file is empty, torn or garbled.
    """
    path = commit_path(version)
    line, end, _ = store.get_range(path, 0, FIRST_LINE_BYTES).partition(b"\n")
    try:
        first = decode_actions(line) if end else []
    except msgspec.DecodeError as error:
        raise CorruptTableError(
            "The first line of a commit file can't be decoded.",
            where=f"{store.url}/{path}",
            found=str(error),
            remedy="Torn or garbled: restore it from a copy.",
        ) from error
    if first and isinstance(first[0], CommitInfo):
        return first[0].in_commit_timestamp_ms
    return read_commit(store, version, limits=limits).commit_info.in_commit_timestamp_ms


class Timeline:
    """The times of the versions that the log still holds, up to the newest one that is known.

    In-commit timestamps are searched by halves: about as many short reads as the number of versions
    has binary digits. Where the store's times count, they take one listing of the log.
    """

    def __init__(
        self, store: ObjectStore, newest: Definition, *, limits: Limits = DEFAULT_LIMITS
    ) -> None:
        self._store = store
        self._limits = limits
        self._newest = newest.version
        self._since, self._since_ms = _enablement(newest)
        self._known_ms: dict[int, int | None] = {}

    def newest_until(self, time_ms: int, *, or_newest: bool = False) -> int:
        """The newest version that was committed at that time or before.

        Args:
            time_ms: In milliseconds since the Unix epoch.
            or_newest: Whether the newest version is the answer for a time after it. It is a
                different one once the next commit is made, so it is refused unless asked for.

        Raises:
            VersionNotFoundError: The time lies before the oldest version that the log still holds,
                or after the newest.
            CorruptTableError: A commit lacks the in-commit timestamp that the table promises.
        """
        versions, time_of = self._section(time_ms)
        place = _first(len(versions), lambda i: _later(time_of(versions[i]), time_ms))
        if place == 0:
            raise self._outside(time_ms, "before the oldest version that the log still holds")
        version = versions[place - 1]
        if version == self._newest and not or_newest:
            newest_ms = time_of(version)
            if newest_ms is not None and newest_ms < time_ms:
                raise self._outside(time_ms, "after the newest version")
        return version

    def first_from(self, time_ms: int) -> int:
        """The first version that was committed at that time or later; the next one for none.

        Where log clean-up may have removed it, the newest version that it removed, so that whoever
        reads on from there learns of the loss.
        """
        versions, time_of = self._section(time_ms)
        place = _first(len(versions), lambda i: _later(time_of(versions[i]), time_ms - 1))
        if place == len(versions):
            if isinstance(versions, range) or self._since is None:
                return self._newest + 1
            return self._since if versions else max(0, self._since - 1)
        version = versions[place]
        if version and time_of(version) != time_ms and self._is_gone(version - 1, versions):
            return version - 1
        return version

    def is_told(self, version: int) -> bool:
        """Whether the commit of that version tells its own time."""
        return self._since is not None and version >= self._since

    def _section(self, time_ms: int) -> tuple[Sequence[int], Callable[[int], int | None]]:
        """The versions among which the one of that time is, ascending, and how to time them."""
        if self._since is None:
            return list(self._stored), self._stored_ms
        if self._since_ms is None or time_ms >= self._since_ms:
            return range(max(self._since, self._oldest), self._newest + 1), self._told_ms
        return [version for version in self._stored if version < self._since], self._stored_ms

    @cached_property
    def _oldest(self) -> int:
        """The oldest commit that the log holds; the next version where it holds none."""
        oldest = next(iter(commit_times(self._store, limits=self._limits)), None)
        return self._newest + 1 if oldest is None else oldest[0]

    @cached_property
    def _stored(self) -> Mapping[int, int]:
        return listed_times(self._store, 0, self._newest, limits=self._limits)

    def _stored_ms(self, version: int) -> int | None:
        return self._stored[version]

    def _told_ms(self, version: int) -> int | None:
        """In-commit timestamp of a version; None where it is gone from the log."""
        if version in self._known_ms:
            return self._known_ms[version]
        try:
            time_ms = in_commit_time_ms(self._store, version, limits=self._limits)
        except ObjectNotFoundError:
            time_ms = None
        else:
            if time_ms is None:
                raise self._untimed(version)
        self._known_ms[version] = time_ms
        return time_ms

    def _is_gone(self, version: int, versions: Sequence[int]) -> bool:
        if isinstance(versions, range):
            return version not in versions or self._told_ms(version) is None
        return version not in self._stored

    def _outside(self, time_ms: int, place: str) -> VersionNotFoundError:
        return VersionNotFoundError(
            f"The timestamp {utc_text(time_ms)} lies {place}.",
            where=self._store.url,
            found=self._range_text(),
            remedy="Ask for a time within that range, for a version, or, without either, for the "
            "newest one.",
        )

    def _range_text(self) -> str:
        if self._oldest > self._newest:
            return "no commit file in the log"
        return f"versions {self._text(self._oldest)} to {self._text(self._newest)}"

    def _text(self, version: int) -> str:
        is_told = self.is_told(version)
        time_ms = self._told_ms(version) if is_told else self._stored.get(version)
        return f"{version}{'' if time_ms is None else f' of {utc_text(time_ms)}'}"

    def _untimed(self, version: int) -> CorruptTableError:
        return CorruptTableError(
            f"Commit {version} has no in-commit timestamp, which the table promises.",
            where=f"{self._store.url}/{commit_path(version)}",
            found="no inCommitTimestamp in its first action",
            remedy="A writer that does not know the feature inCommitTimestamp made it. Ask for a "
            "version instead of a time.",
        )


def _enablement(newest: Definition) -> tuple[int | None, int | None]:
    """The first version that tells its own time, None for none, and that time where it is told."""
    configuration = newest.metadata.configuration
    is_supported = IN_COMMIT_TIMESTAMP in (newest.protocol.writer_features or ())
    if is_supported and flag(configuration, ENABLE_IN_COMMIT_TIMESTAMPS):
        return in_commit_timestamp_enablement(configuration)
    return None, None


def _later(time_ms: int | None, than_ms: int) -> bool:
    """Whether a version's time lies after another; one that is gone lies before all."""
    return time_ms is not None and time_ms > than_ms


def _first(count: int, holds: Callable[[int], bool]) -> int:
    """The first number for which ``holds``, and from which on it does; ``count`` for none below."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low
