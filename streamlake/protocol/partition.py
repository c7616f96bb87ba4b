"""Partition values as strings, and the folders named after them.

PROTOCOL.md, "Partition Value Serialization".
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from streamlake.errors import CorruptTableError

NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_ESCAPED = frozenset("\"#%'*/:=?\\{}[]^\x7f") | {chr(c) for c in range(0x20)}


def encode_partition_value(value: Any, kind: pa.DataType) -> str | None:  # noqa: ANN401, PLR0911
    """The string of a partition value; None for null, the empty string and empty bytes."""
    if value is None or value in ("", b""):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, dt.datetime):
        fraction = f".{value.microsecond:06d}" if value.microsecond else ""
        if pa.types.is_timestamp(kind) and kind.tz is not None:
            utc = value.astimezone(dt.UTC).replace(tzinfo=None)
            return f"{utc.isoformat(timespec='microseconds')}Z"
        return f"{value.isoformat(sep=' ', timespec='seconds').split('.')[0]}{fraction}"
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return f"{value:f}"
    if isinstance(value, float):
        return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}.get(str(value), repr(value))
    return str(value)


def decode_partition_value(text: str | None, kind: pa.DataType) -> Any:  # noqa: ANN401
    """The value of a partition string; null for None and the empty string.

    Raises:
        CorruptTableError: The string is none of the type.
    """
    if text is None or text == "":
        return None
    try:
        return _decode(text, kind)
    except (ValueError, KeyError, decimal.InvalidOperation) as error:
        raise CorruptTableError(
            f"A partition value is no {kind}.", found=repr(text), remedy="The log is damaged."
        ) from error


def _decode(text: str, kind: pa.DataType) -> Any:  # noqa: ANN401, PLR0911
    if pa.types.is_string(kind):
        return text
    if pa.types.is_boolean(kind):
        return {"true": True, "false": False}[text.lower()]
    if pa.types.is_integer(kind):
        return int(text)
    if pa.types.is_floating(kind):
        return float(text)
    if pa.types.is_decimal(kind):
        return decimal.Decimal(text)
    if pa.types.is_date(kind):
        return dt.date.fromisoformat(text)
    if pa.types.is_timestamp(kind):
        parsed = dt.datetime.fromisoformat(text)
        if kind.tz is None:
            return parsed
        return parsed.replace(tzinfo=dt.UTC) if parsed.tzinfo is None else parsed.astimezone(dt.UTC)
    return text.encode("latin-1")


def partition_path(columns: Sequence[str], values: Mapping[str, str | None]) -> str:
    """The folder of a partition: ``a=1/b=x/``, escaped as Hive does; empty without columns."""
    return "".join(f"{_escape(column)}={_folder(values[column])}/" for column in columns)


def _folder(value: str | None) -> str:
    return NULL_FOLDER if value is None else _escape(value)


def _escape(text: str) -> str:
    return "".join(f"%{ord(c):02X}" if c in _ESCAPED else c for c in text)
