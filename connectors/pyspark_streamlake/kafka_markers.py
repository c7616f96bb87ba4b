"""Exactly once by Kafka's offsets: a marker a partition, ``<app_id>/<topic>/<partition>``.

The markers alone say what the table has; Spark's checkpoint folder may be lost, or behind. A batch
accounts for all offsets that it read, also where no row came of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import streamlake as sl
from pyspark_streamlake.query import KafkaRanges, Query, kafka_ranges
from pyspark_streamlake.staging import Window
from pyspark_streamlake.steps import Step, other_kind

NOTHING_STORED = -1


class Gaps(Protocol):
    """Who can tell whether Kafka holds a record between two offsets."""

    def first_record(self, tp: tuple[str, int], start: int, end: int) -> int | None:
        """The first offset in [start, end) at which Kafka still holds a record, if any."""


class KafkaMarkers:
    """The markers of one app_id, for one run of one query."""

    def __init__(self, table: sl.Table, app_id: str, *, gaps: Gaps, from_earliest: bool) -> None:
        """Read the markers.

        Args:
            table: Where they are.
            app_id: Whose they are.
            gaps: Asked where a query starts behind a marker.
            from_earliest: Whether a partition without a marker must begin with its first record.
        """
        self._table = table
        self._app_id = app_id
        self._gaps = gaps
        self._from_earliest = from_earliest
        self._markers = stored_markers(table, app_id)
        self._known = set(self._markers)
        self._checked: set[tuple[str, int]] = set()

    def step(self, query: Query, batch_id: int) -> Step | None:  # noqa: ARG002 (offsets tell more)
        """A commit of the offsets that the batch reads; None where the table has them all.

        Raises:
            InvalidInputError: The query reads no Kafka, or leaves out records.
        """
        ranges = kafka_ranges(query)
        self._check_start(ranges)
        windows = {tp: self._window(tp, *ranges[tp]) for tp in ranges}
        moved = {
            tp: window
            for tp, window in windows.items()
            if window.end - 1 > max(window.stored, window.first - 1)
        }
        if not moved:
            return None
        keys = {tp: marker_key(self._app_id, tp) for tp in moved}
        return Step(
            markers=tuple(sl.SetTransaction(keys[tp], moved[tp].end - 1) for tp in sorted(moved)),
            expect={keys[tp]: self._markers.get(tp) for tp in moved},
            windows=windows,
            commits_empty=True,
        )

    def committed(self, markers: Mapping[str, sl.SetTransaction]) -> None:
        """The batch has landed."""
        for key, marker in markers.items():
            self._markers[parse_key(self._app_id, key)] = marker

    def reread(self, error: sl.FencedError) -> None:  # noqa: ARG002 (it is answered)
        """Take over what another owner has stored; the next step trims it, and looks for gaps."""
        self._markers = stored_markers(self._table, self._app_id)
        self._known |= set(self._markers)
        self._checked.clear()

    def _window(self, tp: tuple[str, int], first: int | None, end: int) -> Window:
        return Window(first=first or 0, end=end, stored=self._stored(tp))

    def _stored(self, tp: tuple[str, int]) -> int:
        marker = self._markers.get(tp)
        return NOTHING_STORED if marker is None else marker.version

    def _check_start(self, ranges: KafkaRanges) -> None:
        """Look, where a partition is met first, whether records lie between marker and start."""
        for tp in sorted(ranges.keys() - self._checked):
            first, stored = ranges[tp][0], self._stored(tp)
            known = self._from_earliest or tp in self._known
            if first is not None and known and first > stored + 1:
                missed = self._gaps.first_record(tp, stored + 1, first)
                if missed is not None:
                    raise self._would_lose(tp, first, missed)
            self._checked.add(tp)

    def _would_lose(self, tp: tuple[str, int], first: int, missed: int) -> sl.InvalidInputError:
        return sl.InvalidInputError(
            f"The query starts behind records of {tp[0]}/{tp[1]} that the table does not have.",
            where=self._table.url,
            found=f"the table has offsets up to {self._stored(tp)}, the query starts at {first}, "
            f"and Kafka still holds {missed}",
            remedy="Start a fresh checkpoint folder from where the table is: "
            '.option("startingOffsets", sink.starting_offsets()).',
        )


def marker_key(app_id: str, tp: tuple[str, int]) -> str:
    """The marker's app_id in the log."""
    return f"{app_id}/{tp[0]}/{tp[1]}"


def parse_key(app_id: str, key: str) -> tuple[str, int]:
    """The topic and partition that ``marker_key`` was given.

    Raises:
        ValueError: It was made by something else.
    """
    topic, _, number = key.removeprefix(f"{app_id}/").rpartition("/")
    if not topic or "/" in topic:
        raise ValueError(key)
    return topic, int(number)


def stored_markers(table: sl.Table, app_id: str) -> dict[tuple[str, int], sl.SetTransaction]:
    """The Kafka markers of one app_id as the table has them now, by topic and partition.

    Raises:
        InvalidInputError: The app_id has markers of another kind.
    """
    markers = table.markers()
    if app_id in markers:
        raise other_kind(app_id, app_id, where=table.url)
    found: dict[tuple[str, int], sl.SetTransaction] = {}
    for key, marker in markers.items():
        if key.startswith(f"{app_id}/"):
            try:
                found[parse_key(app_id, key)] = marker
            except ValueError as error:
                raise other_kind(app_id, key, where=table.url) from error
    return found
