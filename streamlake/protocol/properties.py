"""Table properties by Delta's names, with their defaults (PROTOCOL.md, "Table Properties")."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import TypeAlias

from streamlake.errors import InvalidInputError

Configuration: TypeAlias = Mapping[str, str]

CHECKPOINT_INTERVAL = "delta.checkpointInterval"
DATA_SKIPPING_NUM_INDEXED_COLS = "delta.dataSkippingNumIndexedCols"
DATA_SKIPPING_STATS_COLUMNS = "delta.dataSkippingStatsColumns"
APPEND_ONLY = "delta.appendOnly"
LOG_RETENTION = "delta.logRetentionDuration"
DELETED_FILE_RETENTION = "delta.deletedFileRetentionDuration"
SET_TRANSACTION_RETENTION = "delta.setTransactionRetentionDuration"
ISOLATION_LEVEL = "delta.isolationLevel"

DEFAULT_INDEXED_COLS = 32
DAY_MS = 24 * 60 * 60 * 1000
DEFAULT_LOG_RETENTION_MS = 30 * DAY_MS
DEFAULT_DELETED_FILE_RETENTION_MS = 7 * DAY_MS

_UNITS_MS = {
    "millisecond": 1,
    "second": 1000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": DAY_MS,
    "week": 7 * DAY_MS,
}
_PART = re.compile(r"(\d+)\s*([a-z]+?)s?\b", re.ASCII)


def checkpoint_interval(configuration: Configuration) -> int | None:
    """Commits between two checkpoints; None where the table leaves it to the writer."""
    return _integer(configuration, CHECKPOINT_INTERVAL, least=1)


def data_skipping_num_indexed_cols(configuration: Configuration) -> int:
    """How many leaf columns have statistics; -1 for all."""
    found = _integer(configuration, DATA_SKIPPING_NUM_INDEXED_COLS, least=-1)
    return DEFAULT_INDEXED_COLS if found is None else found


def data_skipping_stats_columns(configuration: Configuration) -> tuple[str, ...] | None:
    """The columns that have statistics, where the table names them."""
    text = configuration.get(DATA_SKIPPING_STATS_COLUMNS)
    return None if text is None else tuple(name.strip(" `") for name in text.split(","))


def append_only(configuration: Configuration) -> bool:
    """Whether rows may not be removed."""
    return configuration.get(APPEND_ONLY, "false").lower() == "true"


def isolation_level(configuration: Configuration) -> str:
    """``WriteSerializable`` or ``Serializable``."""
    found = configuration.get(ISOLATION_LEVEL, "WriteSerializable")
    if found not in {"WriteSerializable", "Serializable"}:
        raise _bad(ISOLATION_LEVEL, found, "WriteSerializable or Serializable")
    return found


def log_retention_ms(configuration: Configuration) -> int:
    """How long log entries are kept, in milliseconds."""
    found = _duration_ms(configuration, LOG_RETENTION)
    return DEFAULT_LOG_RETENTION_MS if found is None else found


def deleted_file_retention_ms(configuration: Configuration) -> int:
    """How long removed files are kept, in milliseconds."""
    found = _duration_ms(configuration, DELETED_FILE_RETENTION)
    return DEFAULT_DELETED_FILE_RETENTION_MS if found is None else found


def set_transaction_retention_ms(configuration: Configuration) -> int | None:
    """After how many milliseconds an idle marker may be forgotten; None for never."""
    return _duration_ms(configuration, SET_TRANSACTION_RETENTION)


def check_properties(configuration: Configuration) -> None:
    """Read every property that is known.

    Raises:
        InvalidInputError: One has a value that it can't have.
    """
    checkpoint_interval(configuration)
    data_skipping_num_indexed_cols(configuration)
    isolation_level(configuration)
    log_retention_ms(configuration)
    deleted_file_retention_ms(configuration)
    set_transaction_retention_ms(configuration)


def _integer(configuration: Configuration, name: str, *, least: int) -> int | None:
    text = configuration.get(name)
    if text is None:
        return None
    if not re.fullmatch(r"-?\d{1,18}", text.strip(), re.ASCII) or int(text) < least:
        raise _bad(name, text, f"a whole number from {least}")
    return int(text)


def _duration_ms(configuration: Configuration, name: str) -> int | None:
    text = configuration.get(name)
    if text is None:
        return None
    found = _parsed_ms(text)
    if found is None:
        raise _bad(name, text, 'an interval like "interval 30 days"')
    return found


@functools.lru_cache(maxsize=64)
def _parsed_ms(text: str) -> int | None:
    bare = text.strip().lower().removeprefix("interval").strip()
    parts = _PART.findall(bare)
    if not parts or _PART.sub("", bare).strip():
        return None
    if any(unit not in _UNITS_MS for _, unit in parts):
        return None
    return sum(int(count) * _UNITS_MS[unit] for count, unit in parts)


def _bad(name: str, value: str, allowed: str) -> InvalidInputError:
    return InvalidInputError(
        f"The table property {name} has a value that it can't have.",
        found=repr(value),
        remedy=f"Set it to {allowed}.",
    )
