"""Dates and times that Spark wrote by the calendar that changed in 1582.

Spark before 3.0, and later ones when told to, stored days before 1582-10-15 by the Julian calendar,
and times before 1900 by other offsets of time zones. Such a file says so in its footer. What its
values mean can't be told without the writer's time zone, so that they are refused; later ones are
the same in both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streamlake.data.bounds import Column
from streamlake.errors import UnsupportedFeatureError

_VERSION = b"org.apache.spark.version"
_MARK = b"org.apache.spark.legacyDateTime"
_MARK_OF_INT96 = b"org.apache.spark.legacyINT96"
_FIRST_VERSION = (3, 0)
"""The first version of Spark that writes the calendar of today where it is not told otherwise."""
_FIRST_VERSION_OF_INT96 = (3, 1)
_FIRST_DAY = date(1582, 10, 15)
_FIRST_INSTANT = datetime(1900, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class LegacyCalendar:
    """Whether a file may hold values of the old calendar, and the refusal of those."""

    to_dates: bool
    to_times: bool
    where: str

    @classmethod
    def of(cls, footer: Mapping[bytes, bytes] | None, *, where: str) -> LegacyCalendar:
        """What the key-value metadata of a Parquet file says."""
        found = footer or {}
        match = re.match(rb"([0-9]+)\.([0-9]+)", found.get(_VERSION, b""))
        version = (int(match[1]), int(match[2])) if match else _FIRST_VERSION_OF_INT96
        is_old = version < _FIRST_VERSION or _MARK in found
        of_int96 = version < _FIRST_VERSION_OF_INT96 or _MARK_OF_INT96 in found
        return cls(is_old, is_old or of_int96, where)

    def check(self, column: Column, name: str) -> None:
        """Refuse a column of the file with values that the calendars disagree on.

        Raises:
            UnsupportedFeatureError: It has some.
        """
        if not self.to_times:
            return
        for chunk in column.chunks:
            for leaf in _leaves(chunk):
                if pa.types.is_date(leaf.type) and not self.to_dates:
                    continue
                oldest: Any = pc.min(leaf).as_py()
                if oldest is not None and oldest < _bound(leaf.type):
                    raise self._refusal(name, oldest)

    def _refusal(self, name: str, oldest: object) -> UnsupportedFeatureError:
        return UnsupportedFeatureError(
            f"Column {name!r} has dates or times by the calendar before 1582.",
            where=self.where,
            found=f"{oldest} as stored, in a file that says it follows Spark's legacy calendar",
            remedy="Rewrite the table's files with Spark 3 or later and "
            "spark.sql.parquet.datetimeRebaseModeInWrite=CORRECTED.",
        )


def _bound(kind: pa.DataType) -> Any:  # noqa: ANN401 - as the type has it
    if pa.types.is_date(kind):
        return _FIRST_DAY
    has_zone = isinstance(kind, pa.TimestampType) and kind.tz is not None
    return _FIRST_INSTANT if has_zone else _FIRST_INSTANT.replace(tzinfo=None)


def _leaves(array: Any) -> list[Any]:  # noqa: ANN401 - arrays of any type
    """The arrays of dates and timestamps in an array, also inside of nested ones."""
    kind = array.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return [array]
    if isinstance(kind, pa.StructType):
        return [leaf for inner in array.flatten() for leaf in _leaves(inner)]
    if isinstance(kind, pa.MapType):
        start, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
        return _leaves(array.keys[start:end]) + _leaves(array.items[start:end])
    if isinstance(kind, pa.ListType | pa.LargeListType):
        return _leaves(array.flatten())
    return []
