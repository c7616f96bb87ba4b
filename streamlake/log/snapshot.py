"""The table at one version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain

import pyarrow as pa

from streamlake.errors import CorruptTableError, LogTruncatedError, ObjectNotFoundError
from streamlake.log.checkpoint.checksum import StateTotals, check_totals, read_checksum
from streamlake.log.checkpoint.columns import SMALL_ACTIONS
from streamlake.log.checkpoint.compaction import read_compacted
from streamlake.log.checkpoint.opening import open_checkpoint
from streamlake.log.commit import read_commit
from streamlake.log.files import FILE_TYPES, FileList
from streamlake.log.limits import Limits
from streamlake.log.replay import Replay
from streamlake.log.segment import LogSegment, find_segment
from streamlake.protocol import (
    Metadata,
    Protocol,
    SetTransaction,
    schema_from_json,
)
from streamlake.storage import ObjectStore


@dataclass(frozen=True)
class Snapshot:
    """The table at one version; it does not change when the table does."""

    version: int
    protocol: Protocol
    metadata: Metadata
    markers: Mapping[str, SetTransaction]
    """The latest marker of each app_id at this version."""
    _files: FileList

    @cached_property
    def schema(self) -> pa.Schema:
        """The table's schema in Arrow's terms."""
        return schema_from_json(self.metadata.schema_string)

    def files(self) -> FileList:
        """The logical files of the table, in the order in which the log added them."""
        return self._files

    def txn_version(self, app_id: str) -> int | None:
        """The version of the latest marker of ``app_id``; None where there is none."""
        marker = self.markers.get(app_id)
        return None if marker is None else marker.version


def load_state(
    store: ObjectStore,
    version: int | None = None,
    *,
    limits: Limits,
    actions: Iterable[str] = SMALL_ACTIONS,
    with_files: bool = True,
    to_the_end: bool = False,
) -> tuple[Replay, LogSegment]:
    """The state at ``version``, or at the newest one, and the files that it was read from.

    Of a checkpoint only ``actions`` and the paths of its files are decoded, for whoever needs no
    more; ``with_files=False`` leaves out the paths. A checkpoint that can't be read, or that leads
    to another state than a version checksum file says, is passed over for an earlier one, or for
    the whole log, where every commit since is still there. ``to_the_end`` reads all columns of a
    checkpoint first, so that it is known to serve for more than what is decoded here.

    Raises:
        CorruptTableError: No way leads to the state.
    """
    replay = partial(
        replay_segment,
        store,
        limits=limits,
        actions=actions,
        with_files=with_files,
        to_the_end=to_the_end,
    )
    segment = find_segment(store, version, limits=limits)
    try:
        return replay(segment), segment
    except (CorruptTableError, LogTruncatedError):  # damaged, or cleaned up meanwhile
        whole = find_segment(store, version, hinted=False, limits=limits)
        if whole == segment:
            raise
        return replay(whole), whole


def replay_segment(
    store: ObjectStore,
    segment: LogSegment,
    *,
    limits: Limits,
    actions: Iterable[str] = SMALL_ACTIONS,
    with_files: bool = True,
    to_the_end: bool = False,
) -> Replay:
    """The state at the segment's version: a checkpoint and the commits after it.

    A checkpoint that can't be read, or contradicts the version checksum file, is passed over for an
    earlier one, or for the whole log, where every commit since is still there.

    Raises:
        CorruptTableError: No way leads to the state.
    """
    failure: CorruptTableError | LogTruncatedError | None = None
    for base, paths in zip(segment.checkpoint_versions, segment.checkpoints, strict=True):
        if not _reaches(segment, base):
            break
        try:
            found = open_checkpoint(store, paths, actions=actions, limits=limits)
            replay = Replay(store.url, checkpoint=found, version=base)
            if with_files:
                replay.files()
                if segment.version not in segment.checksums:
                    _check(store, segment, replay)
            if to_the_end:
                _read_to_the_end(replay)
        except (CorruptTableError, LogTruncatedError) as error:
            failure = failure or error
            continue
        _apply_after(store, segment, replay, limits=limits)
        try:
            if with_files:
                _check(store, segment, replay)
        except CorruptTableError as error:
            failure = failure or error
            continue
        return replay
    if not _reaches(segment, -1):
        raise failure or CorruptTableError(
            "No readable checkpoint leads to the version asked for.", where=store.url
        )
    replay = _apply_after(store, segment, Replay(store.url), limits=limits)
    _check(store, segment, replay)
    return replay


def _check(store: ObjectStore, segment: LogSegment, replay: Replay) -> None:
    """Compare a state with its version checksum file, where there is one: one request."""
    if replay.version in segment.checksums:
        _compare(store, replay)


def _compare(store: ObjectStore, replay: Replay) -> None:
    checksum = read_checksum(store, replay.version)
    if checksum is None:
        return
    protocol, metadata = replay.checked()
    files = replay.files()
    totals = StateTotals(
        protocol=protocol, metadata=metadata, num_files=len(files), size_bytes=files.size_bytes
    )
    check_totals(checksum, totals, where=f"{store.url}, version {replay.version}")


def read_whole(store: ObjectStore, version: int, paths: Sequence[str], *, limits: Limits) -> None:
    """Read a checkpoint to its end, and compare it with its version checksum file.

    For whoever is about to remove all else that leads to its version. Memory: as a snapshot.

    Raises:
        CorruptTableError: A part of it can't be read, or is contradicted.
        LimitExceededError: It holds more than the limits allow.
    """
    found = open_checkpoint(store, paths, limits=limits)
    replay = Replay(store.url, checkpoint=found, version=version)
    replay.checked()
    _compare(store, replay)
    _read_to_the_end(replay)


def _read_to_the_end(replay: Replay) -> None:
    for _ in chain(replay.files().blocks(FILE_TYPES), replay.tombstone_blocks()):
        pass


def _reaches(segment: LogSegment, base: int) -> bool:
    """Whether every commit after ``base`` is in the segment."""
    return len(segment.commits_after(base)) == segment.version - base


def _apply_after(
    store: ObjectStore, segment: LogSegment, replay: Replay, *, limits: Limits
) -> Replay:
    for first, last in segment.reads_after(replay.version):
        compacted = read_compacted(store, first, last, limits=limits) if last > first else None
        if compacted is not None:
            replay.apply(compacted)
            continue
        for version in range(first, last + 1):
            try:
                replay.apply(read_commit(store, version, limits=limits))
            except ObjectNotFoundError as error:
                raise CorruptTableError(
                    f"Commit {version} vanished while the log was read.",
                    where=store.url,
                    remedy="Log clean-up ran meanwhile: read the table again.",
                ) from error
    return replay


def snapshot_of(replay: Replay) -> Snapshot:
    """The replay's state as a value."""
    protocol, metadata = replay.checked()
    return Snapshot(replay.version, protocol, metadata, dict(replay.markers), replay.files())
