"""Log clean-up: old entries go, from the oldest on (PROTOCOL.md, "Metadata Cleanup").

What is kept: everything from the newest complete checkpoint on that is no newer than the newest
commit before the cutoff, which is midnight UTC a retention ago. So every version since the cutoff
can still be read, and a crash between two deletions leaves a log that a reader finds whole from its
newest checkpoint on.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from streamlake.clock import Clock
from streamlake.errors import (
    ClockError,
    ObjectNotFoundError,
    TableError,
)
from streamlake.log.checkpoint.opening import open_checkpoint
from streamlake.log.checkpoint.reader import corrupt_checkpoint
from streamlake.log.head import DEFINING_ACTIONS, Definition, Head
from streamlake.log.limits import Limits
from streamlake.log.segment import list_log
from streamlake.log.snapshot import read_whole
from streamlake.log.times import utc_text
from streamlake.protocol import (
    SIDECAR_DIR,
    Action,
    CheckpointName,
    CommitName,
    Metadata,
    Protocol,
    Sidecar,
    check_writable,
    commit_path,
    is_sidecar,
    log_retention_ms,
    parse_checksum,
    parse_compacted,
    parse_log_name,
)
from streamlake.protocol.properties import DAY_MS, cleans_log
from streamlake.storage import ObjectMeta, ObjectStore, store_time_ms

logger = logging.getLogger(__name__)

CLOCK_TOLERANCE_MS = 60 * 60 * 1000
"""Clocks that differ by more than an hour are not trusted with removing anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanUp:
    """What a clean-up of the log removed, or, as a dry run, would remove."""

    cutoff_ms: int
    """Commits of that time or later stay, in milliseconds since the Unix epoch: midnight UTC."""
    first_version: int | None
    """The version of the checkpoint that the log begins with afterwards; None where nothing is old
    enough, or no checkpoint stands for what is."""
    paths: tuple[str, ...]
    """The files, in the order of their removal, relative to the table."""
    size_bytes: int
    """What they take."""
    is_complete: bool
    """Whether nothing was left for the next call, for its bound was reached."""
    dry_run: bool


@dataclass(frozen=True, slots=True)
class _Plan:
    checkpoint: int | None
    """The newest one that serves every version since the cutoff."""
    expired: Sequence[ObjectMeta]
    """What lies before it, oldest first."""


class LogCleaner:
    """Cleans up the log of one table; remembers the day that it is done with."""

    def __init__(self, store: ObjectStore, clock: Clock, limits: Limits) -> None:
        self._store = store
        self._clock = clock
        self._limits = limits
        self._made_ms = clock.now_ms()
        self._made_s = clock.monotonic()
        self._done_ms: int | None = None
        self._cleaning = threading.Lock()

    def clean_if_due(self, newest: Definition | Head) -> CleanUp | None:
        """Clean up as part of other work: once a day, within a bound of time.

        None where it is not due, or another thread is at it. What is in the way is logged and not
        raised, for the other work stands.
        """
        if not self._cleaning.acquire(blocking=False):
            return None
        try:
            cutoff_ms = self.cutoff_ms(newest)
            if not cleans_log(newest.metadata.configuration) or cutoff_ms == self._done_ms:
                return None
            done = self.clean(newest, seconds=self._limits.clean_up_s)
        except ClockError as error:
            logger.warning("%s", error)
            self._done_ms = cutoff_ms  # told once a day
            return None
        except Exception:  # the other work stands, whatever a clean-up meets
            logger.warning("the log of %s was not cleaned up", self._store.url, exc_info=True)
            return None
        finally:
            self._cleaning.release()
        if done.is_complete:
            self._done_ms = cutoff_ms
        return done

    def clean(
        self,
        newest: Definition | Head,
        *,
        dry_run: bool = False,
        keep_from: int | None = None,
        seconds: float | None = None,
    ) -> CleanUp:
        """Remove what the table's retention has passed, oldest first, up to the limits' bound.

        One listing that ends at the cutoff. Where a checkpoint serves: the reading of all of it, if
        anything lies before it, a few requests to compare clocks, a listing of the sidecars, and
        one a file. Where there are old sidecars, every checkpoint that stays is asked for those
        that it names.

        Args:
            newest: The table at its newest version.
            dry_run: Only tell; then nothing is written and the store's clock is not asked.
            keep_from: Keep what is needed to read this version and every later one, however old.
            seconds: Stop after that time and leave the rest to the next call.

        Raises:
            ClockError: This machine's clock and the store's contradict each other, or the newest
                commit.
            InvalidInputError: delta.logRetentionDuration has a value that it can't have.
            UnsupportedFeatureError: The table has a writer feature that is not supported.
        """
        check_writable(newest.protocol, newest.metadata, where=self._store.url)
        cutoff_ms = self.cutoff_ms(newest)
        highest = newest.version if keep_from is None else min(newest.version, keep_from)
        plan = self._plan(highest, cutoff_ms)
        if plan.checkpoint is not None and not dry_run:
            self._check_clocks(newest.version)
        orphans = () if plan.checkpoint is None else self._orphans(plan.expired)
        found = [*plan.expired, *orphans]
        chosen = found[: self._limits.clean_up_files]
        removed = chosen if dry_run else list(self._remove(chosen, seconds))
        return CleanUp(
            cutoff_ms=cutoff_ms,
            first_version=plan.checkpoint,
            paths=tuple(meta.path for meta in removed),
            size_bytes=sum(meta.size_bytes for meta in removed),
            is_complete=len(removed) == len(found),
            dry_run=dry_run,
        )

    def cutoff_ms(self, newest: Definition | Head) -> int:
        """Midnight UTC of the day that lies the table's retention back.

        Raises:
            InvalidInputError: delta.logRetentionDuration has a value that it can't have.
        """
        oldest_ms = self._clock.now_ms() - log_retention_ms(newest.metadata.configuration)
        return oldest_ms // DAY_MS * DAY_MS

    def _plan(self, highest: int, cutoff_ms: int) -> _Plan:
        """What of the versions up to ``highest`` is old enough, by one listing up to there."""
        old: list[tuple[int, ObjectMeta]] = []
        checkpoints: dict[CheckpointName, str] = {}
        newest, time_ms = -1, -1
        for meta in list_log(self._store, limits=self._limits):
            name = parse_log_name(meta.path)
            if isinstance(name, CommitName):
                time_ms = max(meta.modified_ms, time_ms + 1)
                if time_ms > cutoff_ms or name.version > highest:
                    break
                newest = name.version
            elif name is not None:
                checkpoints[name] = meta.path
            first = _last_needed_by(meta.path)
            if first is not None:
                old.append((first, meta))
        oldest = min((first for first, _ in old), default=newest)
        serving = self._serving(checkpoints, newest, oldest=oldest)
        if serving is None:
            return _Plan(None, ())
        return _Plan(serving, [meta for first, meta in old if first < serving])

    def _serving(
        self, found: Mapping[CheckpointName, str], highest: int, *, oldest: int
    ) -> int | None:
        """The newest checkpoint up to a version that is complete and can be read.

        Read to its end where there is anything to remove: it shall be all that is left.
        """
        for version, paths in _complete(found):
            if version > highest:
                continue
            try:
                self._check_serves(paths)
                if oldest < version:
                    read_whole(self._store, version, paths, limits=self._limits)
            except TableError:
                logger.warning("no use of checkpoint %s", paths[0], exc_info=True)
                continue
            return version
        return None

    def _check_serves(self, paths: Sequence[str]) -> None:
        """Refuse a checkpoint that can't be read or that lacks a sidecar."""
        where = f"{self._store.url}/{paths[0]}"
        actions = self._small_actions(paths, (*DEFINING_ACTIONS, "sidecar"))
        if not {Protocol, Metadata} <= {type(action) for action in actions}:
            raise corrupt_checkpoint(where, "no protocol or no metadata")
        for name in _sidecar_names(actions):
            try:
                self._store.stat(f"{SIDECAR_DIR}/{name}")
            except ObjectNotFoundError as error:
                raise corrupt_checkpoint(where, f"sidecar {name} is missing") from error

    def _small_actions(self, paths: Sequence[str], kinds: Sequence[str]) -> tuple[Action, ...]:
        return open_checkpoint(self._store, paths, actions=kinds, limits=self._limits).actions

    def _orphans(self, expired: Sequence[ObjectMeta]) -> list[ObjectMeta]:
        """Sidecars that no checkpoint names which stays, and that none being written may name."""
        before_ms = self._clock.now_ms() // DAY_MS * DAY_MS - DAY_MS
        old = [
            meta
            for meta in self._store.list_from(f"{SIDECAR_DIR}/")
            if is_sidecar(meta.path) and meta.modified_ms < before_ms
        ]
        if not old:
            return []
        going = {meta.path for meta in expired}
        needed: set[str] = set()
        try:
            for meta in list_log(self._store, limits=self._limits):
                name = parse_log_name(meta.path)
                if isinstance(name, CheckpointName) and meta.path not in going:
                    needed |= _sidecar_names(self._small_actions([meta.path], ("sidecar",)))
        except TableError:
            logger.warning("no sidecar of %s removed", self._store.url, exc_info=True)
            return []
        return [meta for meta in old if _file_name(meta.path) not in needed]

    def _remove(self, chosen: Sequence[ObjectMeta], seconds: float | None) -> Iterator[ObjectMeta]:
        started_s = self._clock.monotonic()
        for meta in chosen:
            if seconds is not None and self._clock.monotonic() - started_s > seconds:
                return
            self._store.delete(meta.path)
            yield meta

    def _check_clocks(self, newest_version: int) -> None:
        """Refuse to remove anything while clocks contradict one another."""
        now_ms = self._clock.now_ms()
        elapsed_ms = round((self._clock.monotonic() - self._made_s) * 1000)
        self._check_close("the time that passed", now_ms, self._made_ms + elapsed_ms)
        self._check_close("the store's clock", now_ms, store_time_ms(self._store, self._clock))
        try:
            committed_ms = self._store.stat(commit_path(newest_version)).modified_ms
        except ObjectNotFoundError:
            return
        if committed_ms > now_ms:
            self._check_close("the newest commit", now_ms, committed_ms)

    def _check_close(self, what: str, now_ms: int, other_ms: int) -> None:
        if abs(now_ms - other_ms) <= CLOCK_TOLERANCE_MS:
            return
        raise ClockError(
            f"This machine's clock and {what} contradict each other, so nothing is removed.",
            where=self._store.url,
            found=f"{utc_text(now_ms)} here, {utc_text(other_ms)} there",
            remedy="Set the clock right, and clean up again from a fresh process.",
        )


def _last_needed_by(path: str) -> int | None:
    """A checkpoint of a later version than this makes the file expendable; None for never."""
    name = parse_log_name(path)
    if name is not None:
        return name.version
    compacted = parse_compacted(path)
    return parse_checksum(path) if compacted is None else compacted[0] - 1


def _complete(found: Mapping[CheckpointName, str]) -> list[tuple[int, tuple[str, ...]]]:
    """Checkpoints with all their parts, newest first."""
    sets: dict[tuple[int, str, int, str], dict[int, str]] = {}
    for name, path in found.items():
        key = (name.version, name.kind, name.parts or 1, name.uuid or "")
        sets.setdefault(key, {})[name.part or 1] = path
    whole = [
        (version, tuple(path for _, path in sorted(parts.items())))
        for (version, _, count, _), parts in sets.items()
        if len(parts) == count
    ]
    return sorted(whole, reverse=True)


def _sidecar_names(actions: Sequence[Action]) -> set[str]:
    return {_file_name(action.path) for action in actions if isinstance(action, Sidecar)}


def _file_name(path: str) -> str:
    return unquote(path).rpartition("/")[2]
