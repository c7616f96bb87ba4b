"""Table properties by Delta's names, with their defaults (PROTOCOL.md, "Table Properties").

Every getter takes ``metaData.configuration`` and raises InvalidInputError where the property has a
value that it can't have.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Literal, TypeAlias

from streamlake.arguments import check_text
from streamlake.errors import InvalidInputError
from streamlake.protocol.actions import MAX_INT64, MAX_READER_VERSION, MAX_WRITER_VERSION

Configuration: TypeAlias = Mapping[str, str]
"""``metaData.configuration``."""
IsolationLevel: TypeAlias = Literal["Serializable", "WriteSerializable"]
ColumnMappingMode: TypeAlias = Literal["none", "name", "id"]
ParquetCodec: TypeAlias = Literal["none", "snappy", "gzip", "lz4", "zstd"]
CheckpointPolicy: TypeAlias = Literal["classic", "v2"]

PREFIX = "delta."
CONSTRAINT_PREFIX = "delta.constraints."
"""A CHECK constraint's name follows (PROTOCOL.md, "CHECK Constraints"); see ``is_constraint``."""
FEATURE_PREFIX = "delta.feature."
"""A feature's name follows; "supported" asks for it when a table is created."""

APPEND_ONLY = "delta.appendOnly"
CHECKPOINT_INTERVAL = "delta.checkpointInterval"
COMMIT_COORDINATOR = "delta.coordinatedCommits.commitCoordinator-preview"
CHECKPOINT_POLICY = "delta.checkpointPolicy"
COLUMN_MAPPING_MODE = "delta.columnMapping.mode"
CHECKPOINT_STATS_AS_JSON = "delta.checkpoint.writeStatsAsJson"
CHECKPOINT_STATS_AS_STRUCT = "delta.checkpoint.writeStatsAsStruct"
DATA_SKIPPING_NUM_INDEXED_COLS = "delta.dataSkippingNumIndexedCols"
DATA_SKIPPING_STATS_COLUMNS = "delta.dataSkippingStatsColumns"
DELETED_FILE_RETENTION = "delta.deletedFileRetentionDuration"
ENABLE_CHANGE_DATA_FEED = "delta.enableChangeDataFeed"
ENABLE_DELETION_VECTORS = "delta.enableDeletionVectors"
ENABLE_EXPIRED_LOG_CLEANUP = "delta.enableExpiredLogCleanup"
ENABLE_ICEBERG_COMPAT_V1 = "delta.enableIcebergCompatV1"
ENABLE_ICEBERG_COMPAT_V2 = "delta.enableIcebergCompatV2"
ENABLE_IN_COMMIT_TIMESTAMPS = "delta.enableInCommitTimestamps"
ENABLE_ROW_TRACKING = "delta.enableRowTracking"
ENABLE_TYPE_WIDENING = "delta.enableTypeWidening"
ENABLE_VARIANT_SHREDDING = "delta.enableVariantShredding"
IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP = "delta.inCommitTimestampEnablementTimestamp"
IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION = "delta.inCommitTimestampEnablementVersion"
ISOLATION_LEVEL = "delta.isolationLevel"
MATERIALIZED_ROW_COMMIT_VERSION = "delta.rowTracking.materializedRowCommitVersionColumnName"
MATERIALIZED_ROW_ID = "delta.rowTracking.materializedRowIdColumnName"
MAX_COLUMN_ID = "delta.columnMapping.maxColumnId"
MIN_READER_VERSION = "delta.minReaderVersion"
MIN_WRITER_VERSION = "delta.minWriterVersion"
PARQUET_CODEC = "delta.parquet.compression.codec"
PARQUET_FORMAT_VERSION = "delta.parquet.format.version"
RANDOMIZE_FILE_PREFIXES = "delta.randomizeFilePrefixes"
RANDOM_PREFIX_LENGTH = "delta.randomPrefixLength"
LOG_RETENTION = "delta.logRetentionDuration"
ROW_TRACKING_SUSPENDED = "delta.rowTrackingSuspended"
SET_TRANSACTION_RETENTION = "delta.setTransactionRetentionDuration"

DAY_MS = 24 * 60 * 60 * 1000
DEFAULT_INDEXED_COLS = 32
DEFAULT_PARQUET_CODEC: ParquetCodec = "snappy"
DEFAULT_RANDOM_PREFIX_LENGTH = 2
MAX_RANDOM_PREFIX_LENGTH = 8
DEFAULT_LOG_RETENTION_MS = 30 * DAY_MS
DEFAULT_DELETED_FILE_RETENTION_MS = 7 * DAY_MS

_CODECS: dict[str, ParquetCodec] = {
    "uncompressed": "none",
    "none": "none",
    "snappy": "snappy",
    "gzip": "gzip",
    "lz4": "lz4",
    "lz4_raw": "lz4",
    "zstd": "zstd",
}
_MICROSECONDS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60 * 1_000_000,
    "hour": 3600 * 1_000_000,
    "day": DAY_MS * 1_000,
    "week": 7 * DAY_MS * 1_000,
}
_INTERVAL = re.compile(r"(?:interval\s+)?((?:[0-9]{1,18}\s+[a-z]+\s*)+)", re.IGNORECASE)
_INTERVAL_PART = re.compile(r"([0-9]+)\s+([a-z]+)")
_COLUMN_PART = re.compile(r"\s*(?:`((?:[^`]|``)+)`|([^`.,]+?))\s*([.,]|$)")


def append_only(configuration: Configuration) -> bool:
    """Whether rows may neither change nor go (PROTOCOL.md, "Append-only Tables")."""
    return flag(configuration, APPEND_ONLY)


def checkpoint_interval(configuration: Configuration) -> int | None:
    """Commits between two checkpoints; None where the table leaves it to the writer."""
    return _integer(configuration, CHECKPOINT_INTERVAL, least=1)


def checkpoint_policy(configuration: Configuration) -> CheckpointPolicy:
    """Which checkpoints the table asks for: classic unless set."""
    found = configuration.get(CHECKPOINT_POLICY, "classic")
    match found:
        case "classic" | "v2":
            return found
        case _:
            raise _bad(CHECKPOINT_POLICY, found, "classic or v2")


def cleans_log(configuration: Configuration) -> bool:
    """Whether old log entries go as part of other work; they do unless it is switched off."""
    return flag({ENABLE_EXPIRED_LOG_CLEANUP: "true", **configuration}, ENABLE_EXPIRED_LOG_CLEANUP)


def writes_stats_as_json(configuration: Configuration) -> bool:
    """Whether checkpoints hold statistics as JSON; they do unless it is switched off."""
    return flag({CHECKPOINT_STATS_AS_JSON: "true", **configuration}, CHECKPOINT_STATS_AS_JSON)


def writes_stats_as_struct(configuration: Configuration) -> bool:
    """Whether checkpoints hold statistics and partition values typed."""
    return flag(configuration, CHECKPOINT_STATS_AS_STRUCT)


def data_skipping_num_indexed_cols(configuration: Configuration) -> int:
    """How many leaf columns, from the left, have statistics; -1 for all."""
    found = _integer(configuration, DATA_SKIPPING_NUM_INDEXED_COLS, least=-1)
    return DEFAULT_INDEXED_COLS if found is None else found


def data_skipping_stats_columns(
    configuration: Configuration,
) -> tuple[tuple[str, ...], ...] | None:
    """The paths of the columns that have statistics, or None where the table names none.

    ``"a, b.c, `d.e`"`` is ``(("a",), ("b", "c"), ("d.e",))``.
    """
    text = configuration.get(DATA_SKIPPING_STATS_COLUMNS)
    return None if text is None else _column_paths(text)


def deleted_file_retention_ms(configuration: Configuration) -> int:
    """How long removed files are kept, in milliseconds; a week unless set."""
    found = _duration_ms(configuration, DELETED_FILE_RETENTION)
    return DEFAULT_DELETED_FILE_RETENTION_MS if found is None else found


def in_commit_timestamp_enablement(configuration: Configuration) -> tuple[int, int | None]:
    """The first version that tells its own time, and that time where it is told.

    (0, None) for a table whose every version does (PROTOCOL.md, "In-Commit Timestamps").
    """
    version = _integer(configuration, IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION, least=0)
    time_ms = _integer(configuration, IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP, least=0)
    return (0, None) if version is None else (version, time_ms)


def log_retention_ms(configuration: Configuration) -> int:
    """How long log entries are kept, in milliseconds; 30 days unless set."""
    found = _duration_ms(configuration, LOG_RETENTION)
    return DEFAULT_LOG_RETENTION_MS if found is None else found


def set_transaction_retention_ms(configuration: Configuration) -> int | None:
    """After how many milliseconds an idle marker may be forgotten; None, the default, for never."""
    return _duration_ms(configuration, SET_TRANSACTION_RETENTION)


def isolation_level(configuration: Configuration) -> IsolationLevel:
    """How much a commit's reads are guarded against concurrent appends."""
    found = configuration.get(ISOLATION_LEVEL, "WriteSerializable")
    match found.lower():
        case "serializable":
            return "Serializable"
        case "writeserializable":
            return "WriteSerializable"
        case _:
            raise _bad(ISOLATION_LEVEL, found, "WriteSerializable or Serializable")


def parquet_codec(configuration: Configuration) -> ParquetCodec:
    """How new data files are compressed."""
    text = configuration.get(PARQUET_CODEC)
    if text is None:
        return DEFAULT_PARQUET_CODEC
    found = _CODECS.get(text.strip().lower())
    if found is None:
        raise _bad(PARQUET_CODEC, text, f"one of {', '.join(_CODECS)}")
    return found


def parquet_pages(configuration: Configuration) -> Literal["1.0", "2.0"]:
    """The format of the data pages of new data files."""
    text = configuration.get(PARQUET_FORMAT_VERSION, "1.0.0")
    if text == "1.0.0":
        return "1.0"
    if not re.fullmatch(r"2\.[0-9]+\.[0-9]+", text):
        raise _bad(PARQUET_FORMAT_VERSION, text, "1.0.0 or 2.12.0")
    return "2.0"


def random_prefix_length(configuration: Configuration, *, mapped: bool = False) -> int | None:
    """How many random characters the folders of data files have as names.

    None where files lie at the root, or in folders named by partition values. With a column mapping
    (``mapped``) folders are always random: others would show names that may change.
    """
    length = _integer(configuration, RANDOM_PREFIX_LENGTH, least=1)
    if not (mapped or flag(configuration, RANDOMIZE_FILE_PREFIXES)):
        return None
    return min(length or DEFAULT_RANDOM_PREFIX_LENGTH, MAX_RANDOM_PREFIX_LENGTH)


def column_mapping_mode(configuration: Configuration) -> ColumnMappingMode:
    """How the property maps columns; it counts only where the protocol supports the feature."""
    found = configuration.get(COLUMN_MAPPING_MODE, "none").lower()
    match found:
        case "none" | "name" | "id":
            return found
        case _:
            raise _bad(COLUMN_MAPPING_MODE, found, "none, name or id")


def max_column_id(configuration: Configuration) -> int:
    """The highest id that a column of the table ever had; 0 where none had one."""
    return _integer(configuration, MAX_COLUMN_ID, least=0) or 0


def requested_reader_version(configuration: Configuration) -> int | None:
    """What ``delta.minReaderVersion`` asks for; features ask for the same by themselves."""
    return _integer(configuration, MIN_READER_VERSION, least=1, most=MAX_READER_VERSION)


def requested_writer_version(configuration: Configuration) -> int | None:
    """What ``delta.minWriterVersion`` asks for when a table is made or altered."""
    return _integer(configuration, MIN_WRITER_VERSION, least=1, most=MAX_WRITER_VERSION)


def flag(configuration: Configuration, name: str) -> bool:
    """A property that is true or false; false unless set."""
    text = configuration.get(name, "false")
    folded = text.strip().lower()
    if folded not in {"true", "false"}:
        raise _bad(name, text, "true or false")
    return folded == "true"


def check_properties(configuration: Configuration) -> None:
    """Refuse what a user should not set.

    Names that don't begin with ``delta.``, in whatever case, are the user's own and may have any
    value.

    Raises:
        InvalidInputError: A property of Delta's with a value that it can't have, a name under
            ``delta.`` that Delta does not have or spells otherwise, or one that only writers set.
    """
    for name, value in configuration.items():
        if not isinstance(value, str):
            raise _bad(name, value, "a string")
        if not _is_utf8(name + value):
            raise _bad(repr(name), value, "whole Unicode characters")
        if name in INTERNAL:
            raise InvalidInputError(
                f"The table property {name} is kept by writers and can't be set.",
                found=repr(value),
                remedy="Leave it out.",
            )
        known = _GETTERS.get(name)
        if known is not None:
            known(configuration)
        elif name.startswith(FEATURE_PREFIX):
            if value not in {"supported", "enabled"}:
                raise _bad(name, value, "supported")
        elif name.lower().startswith(PREFIX) and not (name in _OTHERS or is_constraint(name)):
            raise _unknown(name)


def spelt(properties: Mapping[str, object]) -> dict[str, str]:
    """Properties as the log has them: texts, and truth in small letters.

    Raises:
        InvalidInputError: No mapping of names to texts, numbers or truth.
    """
    if not isinstance(properties, Mapping):
        raise InvalidInputError(
            "Table properties must be a mapping of names to values.",
            found=repr(properties)[:200],
            remedy='Give a dictionary, such as {"delta.appendOnly": "true"}.',
        )
    for name, value in properties.items():
        if not isinstance(name, str) or not name.strip():
            raise InvalidInputError(
                "A table property needs a name.",
                found=repr(name),
                remedy='Name it by a string, such as "delta.appendOnly".',
            )
        if not isinstance(value, str | int | float):
            raise _bad(name, value, "a string")
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in properties.items()
    }


def kept_properties(configuration: Configuration) -> dict[str, str]:
    """Those that become part of the table's metadata; the others only ask for a protocol."""
    return {
        name: value
        for name, value in configuration.items()
        if name not in REQUESTS and not name.startswith(FEATURE_PREFIX)
    }


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_constraint(name: str) -> bool:
    """Whether a property is a CHECK constraint.

    Delta on Spark keeps those by whatever case of the prefix, and can be made to write any.
    """
    return len(name) > len(CONSTRAINT_PREFIX) and name.lower().startswith(CONSTRAINT_PREFIX)


def constraint_name(name: str) -> str:
    """What a CHECK constraint is called, by its property."""
    return name[len(CONSTRAINT_PREFIX) :]


def _flag_getter(name: str) -> Callable[[Configuration], object]:
    return lambda configuration: flag(configuration, name)


INTERNAL = frozenset(
    {
        IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP,
        IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION,
        MATERIALIZED_ROW_COMMIT_VERSION,
        MATERIALIZED_ROW_ID,
        MAX_COLUMN_ID,
    }
)
"""What writers note down for themselves."""
REQUESTS = frozenset({MIN_READER_VERSION, MIN_WRITER_VERSION})
"""What asks for a protocol, beside ``FEATURE_PREFIX``, and is not kept among the properties."""

_GETTERS: dict[str, Callable[[Configuration], object]] = {
    CHECKPOINT_INTERVAL: checkpoint_interval,
    CHECKPOINT_POLICY: checkpoint_policy,
    COLUMN_MAPPING_MODE: column_mapping_mode,
    DATA_SKIPPING_NUM_INDEXED_COLS: data_skipping_num_indexed_cols,
    DATA_SKIPPING_STATS_COLUMNS: data_skipping_stats_columns,
    DELETED_FILE_RETENTION: deleted_file_retention_ms,
    ISOLATION_LEVEL: isolation_level,
    LOG_RETENTION: log_retention_ms,
    MIN_READER_VERSION: requested_reader_version,
    MIN_WRITER_VERSION: requested_writer_version,
    PARQUET_CODEC: parquet_codec,
    PARQUET_FORMAT_VERSION: parquet_pages,
    RANDOM_PREFIX_LENGTH: random_prefix_length,
    SET_TRANSACTION_RETENTION: set_transaction_retention_ms,
} | {
    name: _flag_getter(name)
    for name in (
        APPEND_ONLY,
        ENABLE_CHANGE_DATA_FEED,
        ENABLE_DELETION_VECTORS,
        ENABLE_EXPIRED_LOG_CLEANUP,
        ENABLE_ICEBERG_COMPAT_V1,
        ENABLE_ICEBERG_COMPAT_V2,
        ENABLE_IN_COMMIT_TIMESTAMPS,
        ENABLE_ROW_TRACKING,
        ENABLE_TYPE_WIDENING,
        ENABLE_VARIANT_SHREDDING,
        RANDOMIZE_FILE_PREFIXES,
        CHECKPOINT_STATS_AS_JSON,
        CHECKPOINT_STATS_AS_STRUCT,
        ROW_TRACKING_SUSPENDED,
    )
}
_OTHERS = frozenset(
    {
        "delta.autoOptimize.autoCompact",
        "delta.autoOptimize.optimizeWrite",
        "delta.checkpointRetentionDuration",
        "delta.compatibility.symlinkFormatManifest.enabled",
        "delta.dropFeatureTruncateHistory.retentionDuration",
        "delta.enableFullRetentionRollback",
        "delta.requireCheckpointProtectionBeforeVersion",
        "delta.sampleRetentionDuration",
        "delta.targetFileSize",
        "delta.tuneFileSizesForRewrites",
        "delta.universalFormat.enabledFormats",
    }
)
"""Delta's names that mean something to others; kept as they are."""


def _integer(
    configuration: Configuration, name: str, *, least: int, most: int | None = None
) -> int | None:
    text = configuration.get(name)
    if text is None:
        return None
    is_number = re.fullmatch(r"-?[0-9]{1,18}", text.strip()) is not None
    if not is_number or int(text) < least or (most is not None and int(text) > most):
        end = "" if most is None else f" to {most}"
        raise _bad(name, text, f"a whole number from {least}{end}")
    return int(text)


def _duration_ms(configuration: Configuration, name: str) -> int | None:
    text = configuration.get(name)
    if text is None:
        return None
    found = _interval_ms(text)
    if found is None:
        raise _bad(name, text, 'an interval of weeks to microseconds, such as "interval 30 days"')
    return found


@lru_cache(maxsize=64)
def _interval_ms(text: str) -> int | None:
    match = _INTERVAL.fullmatch(text.strip())
    if match is None:
        return None
    total = 0
    for count, unit in _INTERVAL_PART.findall(match[1].lower()):
        microseconds = _MICROSECONDS.get(unit.removesuffix("s"))
        if microseconds is None:
            return None
        total += int(count) * microseconds
    return total // 1000 if total <= MAX_INT64 else None


def column_path(text: str) -> tuple[str, ...]:
    """The path that people write as names joined by dots, each in backticks where it holds one.

    Raises:
        InvalidInputError: It is no path, or several.
    """
    check_text("A column", text, remedy="Name it as in SQL: fields of structs after a dot.")
    paths = _paths_in(text) or ()
    if len(paths) != 1:
        raise InvalidInputError(
            f"{text!r} is no column.",
            found="a column is a name, or names joined by dots",
            remedy="Write names that hold a dot in backticks.",
        )
    return paths[0]


def _column_paths(text: str) -> tuple[tuple[str, ...], ...]:
    paths = _paths_in(text)
    if paths is None:
        raise _bad(DATA_SKIPPING_STATS_COLUMNS, text, "column names, joined by commas")
    return paths


@lru_cache(maxsize=64)
def _paths_in(text: str) -> tuple[tuple[str, ...], ...] | None:
    """Names by commas, their parts by dots, either in backticks; None for anything else."""
    paths: list[tuple[str, ...]] = []
    path: tuple[str, ...] = ()
    end = 0
    while text.strip():
        match = _COLUMN_PART.match(text, end)
        if match is None:
            return None
        path += (match[1].replace("``", "`") if match[1] else match[2],)
        end = match.end()
        if match[3] != ".":
            paths.append(path)
            path = ()
        if not match[3]:
            break
    return tuple(paths)


def _bad(name: str, value: object, allowed: str) -> InvalidInputError:
    return InvalidInputError(
        f"The table property {name} has a value that it can't have.",
        found=repr(value),
        remedy=f"Set it to {allowed}.",
    )


def _unknown(name: str) -> InvalidInputError:
    known = [*_GETTERS, *_OTHERS]
    close = [other for other in known if other.lower() == name.lower()]
    close = close or difflib.get_close_matches(name, known, n=1)
    meant = f"Did you mean {close[0]}?" if close else "Check its spelling and case."
    return InvalidInputError(
        f"There is no table property {name}.",
        found='a name under "delta.", which are Delta\'s own',
        remedy=f"{meant} Properties of your own need another prefix.",
    )
