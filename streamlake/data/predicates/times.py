"""Parts of dates and timestamps; timestamps are taken in UTC."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

from streamlake.data.predicates.kernels import Values, pc

_UNITS: dict[str, str] = (
    dict.fromkeys(("year", "yyyy", "yy"), "year")
    | dict.fromkeys(("month", "mon", "mm"), "month")
    | {"quarter": "quarter", "week": "week"}
)
_TIME_UNITS: dict[str, str] = _UNITS | {
    "day": "day",
    "dd": "day",
    "hour": "hour",
    "minute": "minute",
    "second": "second",
    "millisecond": "millisecond",
    "microsecond": "microsecond",
}
_FORMAT = re.compile(r"(yyyy|MM|dd|HH|mm|ss)|([A-Za-z'\[\]{}#%]+)|(.)", re.DOTALL)
_FORMATS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}
_SUNDAY = 7


def year(values: Values) -> Values:
    """The year."""
    return _int(pc.year(values))


def quarter(values: Values) -> Values:
    """1 to 4."""
    return _int(pc.quarter(values))


def month(values: Values) -> Values:
    """1 to 12."""
    return _int(pc.month(values))


def day(values: Values) -> Values:
    """1 to 31."""
    return _int(pc.day(values))


def day_of_week(values: Values) -> Values:
    """1 for Sunday to 7 for Saturday."""
    return _int(pc.day_of_week(values, count_from_zero=False, week_start=_SUNDAY))


def day_of_year(values: Values) -> Values:
    """1 to 366."""
    return _int(pc.day_of_year(values))


def week_of_year(values: Values) -> Values:
    """1 to 53, as ISO 8601 counts."""
    return _int(pc.iso_week(values))


def hour(values: Values) -> Values:
    """0 to 23."""
    return _int(pc.hour(values))


def minute(values: Values) -> Values:
    """0 to 59."""
    return _int(pc.minute(values))


def second(values: Values) -> Values:
    """0 to 59."""
    return _int(pc.second(values))


def add_days(dates: Values, days: Values) -> Values:
    """The dates so many days later."""
    return pc.add_checked(_int(dates), days.cast(pa.int32())).cast(pa.date32())


def subtract_days(dates: Values, days: Values) -> Values:
    """The dates so many days earlier."""
    return pc.subtract_checked(_int(dates), days.cast(pa.int32())).cast(pa.date32())


def days_between(end: Values, start: Values) -> Values:
    """From the second to the first."""
    return pc.subtract_checked(_int(end), _int(start))


def truncated_date(dates: Values, unit: str) -> Values:
    """The first day of each date's year, quarter, month or week."""
    return pc.floor_temporal(dates, unit=_unit(unit, _UNITS)).cast(pa.date32())


def truncated_time(values: Values, unit: str) -> Values:
    """The first moment of each timestamp's unit."""
    return pc.floor_temporal(values, unit=_unit(unit, _TIME_UNITS)).cast(values.type)


def formatted(values: Values, pattern: str) -> Values:
    """As text; the pattern may hold yyyy, MM, dd, HH, mm, ss and punctuation."""
    seconds: Any = pc.floor_temporal(values, unit="second").cast(pa.timestamp("s", values.type.tz))
    return pc.strftime(seconds, format=_strftime(pattern))


def _strftime(pattern: str) -> str:
    found = ""
    for match in _FORMAT.finditer(pattern):
        if match[2]:
            raise pa.ArrowInvalid(f"the letters {match[2]!r} in the format {pattern!r}")
        found += _FORMATS[match[1]] if match[1] else match[3]
    return found


def _unit(name: str, units: dict[str, str]) -> str:
    found = units.get(name.lower())
    if found is None:
        raise pa.ArrowInvalid(f"{name!r} is none of {', '.join(sorted(units))}")
    return found


def _int(values: Values) -> Values:
    return values.cast(pa.int32())
