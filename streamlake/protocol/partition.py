r"""Values of partition columns as strings (PROTOCOL.md, "Partition Value Serialization").

=================  ========================================================================
Type               Written as
=================  ========================================================================
string             itself
whole numbers      digits
float, double      the shortest decimal that reads back the same; NaN, Infinity, -Infinity
decimal            digits with all of the scale's, never an exponent
boolean            true, false
date               1970-01-01
timestamp          1970-01-01T00:00:00.123456Z: ISO 8601 in UTC, always six digits
timestamp_ntz      1970-01-01 00:00:00, or with .123456
binary             the text of which the bytes are UTF-8; where they are none, \u00XX for each
=================  ========================================================================

Null is written as null, and so are the empty string and empty binary: to the protocol they are one.
Read is also what Spark and others write: timestamps with a blank in place of the T, with fewer
digits, with an offset, or without a zone. The last mean the zone of the session that wrote them,
which nobody noted down; they are taken as UTC.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation, localcontext
from typing import Any, TypeAlias

import pyarrow as pa

from streamlake.errors import CorruptTableError, InvalidInputError, LimitExceededError

Value: TypeAlias = Any
"""What ``pa.Scalar.as_py`` gives for the column's type."""

NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
"""What stands in a folder's name for null."""

_ESCAPED_IN_FOLDERS = re.compile(r"[\x00-\x1f\x7f\"#%'*/:=?\\{\[\]^]")
"""What Spark escapes, and NUL."""
_ESCAPED_BYTES = re.compile(r"(?:\\u00[0-9A-Fa-f]{2})+")
_INTEGER = re.compile(r"[+-]?[0-9]{1,20}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,5})?")
_NAMED_FLOAT = re.compile(r"([+-]?)(nan|inf|infinity)", re.IGNORECASE)
_DATE = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})")
_TIMESTAMP = re.compile(
    r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
    r"(?:[T ]([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:\.([0-9]{1,9}))?)?"
    r"(?: ?(Z|UTC|[+-][0-9]{2}:?[0-9]{2}(?::[0-9]{2})?))?"
)
_MAX_FLOAT32 = 3.4028234663852886e38
_DECIMAL_DIGITS = 76
MAX_PARTITION_VALUE_CHARS = 2**20
"""The longest string of a partition value in the log."""
_MAX_NUMBER_LENGTH = 400
"""Characters; longer than any number that a type holds."""


def encode_partition_value(value: Value, kind: pa.DataType) -> str | None:
    """The string that ``add.partitionValues`` holds for a value.

    Args:
        value: As ``pa.Scalar.as_py`` gives it; None for null.
        kind: The column's type: any that has a twin in Delta and holds no others.

    Raises:
        InvalidInputError: The value is none of the type, or the type can't partition a table.
    """
    codec = _codec(kind)
    if value is None:
        return None
    try:
        return codec.encode(value, kind) or None
    except (TypeError, ValueError, ArithmeticError, AttributeError, struct.error) as error:
        raise InvalidInputError(
            f"The value can't be one of a partition column of the type {kind}.",
            found=f"{value!r} ({error})",
            remedy="Give a value of the column's type.",
        ) from error


def decode_partition_value(text: str | None, kind: pa.DataType) -> Value:
    """The value of a string in ``partitionValues``, as ``pa.scalar(..., kind)`` takes it.

    Args:
        text: As the log has it; None and "" are null.
        kind: The column's type.

    Raises:
        CorruptTableError: The string spells no value of the type.
        InvalidInputError: The type can't partition a table.
        LimitExceededError: The string is longer than MAX_PARTITION_VALUE_CHARS.
    """
    codec = _codec(kind)
    if not text:
        return None
    if len(text) > MAX_PARTITION_VALUE_CHARS:
        raise LimitExceededError(
            "A partition value in the log is longer than MAX_PARTITION_VALUE_CHARS.",
            found=f"{len(text)} characters, beginning with {text[:40]!r}; the limit is "
            f"{MAX_PARTITION_VALUE_CHARS}",
            remedy="A faulty writer made the entry; have it write the file's partition again.",
        )
    try:
        return codec.decode(text, kind)
    except (ValueError, ArithmeticError, struct.error) as error:
        raise CorruptTableError(
            f"A partition value in the log is none of the type {kind}.",
            found=f"{text[:80]!r} ({error})",
            remedy="A faulty writer made the entry; have it write the file's partition again.",
        ) from error


def partition_path(columns: Sequence[str], values: Mapping[str, str | None]) -> str:
    """The folder of a partition's files, Hive style as Spark names them: ``"a=1/b=x%3Ay/"``.

    A name on the store, not URL-encoded; a reader never needs it, for the values are in the log.

    Args:
        columns: The partition columns in the table's order.
        values: Their encoded values.

    Returns:
        "" where there are no columns, else ending in "/".
    """
    return "".join(f"{_escape(name)}={_folder_value(values[name])}/" for name in columns)


def _folder_value(value: str | None) -> str:
    return _escape(value) if value else NULL_FOLDER


def _escape(name: str) -> str:
    return _ESCAPED_IN_FOLDERS.sub(lambda match: f"%{ord(match[0]):02X}", name)


# -------------------------------------------------------------------------------------------------
# One pair of functions for each kind of type


class _Codec:
    """How values of one kind of type are written and read."""

    def __init__(
        self,
        encode: Callable[[Value, Any], str],
        decode: Callable[[str, Any], Value],
    ) -> None:
        self.encode = encode
        self.decode = decode


def _encode_string(value: str, _: pa.DataType) -> str:
    value.encode()  # half a surrogate pair has no UTF-8
    return value


def _encode_integer(value: int, kind: pa.DataType) -> str:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"a {type(value).__name__} is no integer")
    return str(_in_range(value, kind))


def _decode_integer(text: str, kind: pa.DataType) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError("no integer")
    return _in_range(int(text), kind)


def _in_range(value: int, kind: pa.DataType) -> int:
    bound = 1 << (kind.bit_width - 1)
    if not -bound <= value < bound:
        raise ValueError(f"outside of {kind.bit_width} bits")
    return value


def _encode_float(value: float, kind: pa.DataType) -> str:
    value = _as_stored(value, kind)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if kind.bit_width == 64:  # noqa: PLR2004 - Python's own float
        return repr(value)
    return _shortest(value, kind)


def _shortest(value: float, kind: pa.DataType) -> str:
    """The fewest digits that a reader of 32 bits takes for the same value; nine always do."""
    for digits in range(1, 9):
        shorter = float(f"{value:.{digits}g}")
        if abs(shorter) <= _MAX_FLOAT32 and _as_stored(shorter, kind) == value:
            return repr(shorter)
    return repr(float(f"{value:.9g}"))


def _decode_float(text: str, kind: pa.DataType) -> float:
    if not _NAMED_FLOAT.fullmatch(text) and not _is_number(text):
        raise ValueError("no number")
    return _as_stored(float(text), kind)


def _as_stored(value: float, kind: pa.DataType) -> float:
    """The value that is left of a float when it is stored in the width of ``kind``."""
    form = "<d" if kind.bit_width == 64 else "<f"  # noqa: PLR2004 - Python's own float
    stored: float = struct.unpack(form, struct.pack(form, value))[0]
    return stored


def _encode_decimal(value: Decimal, kind: pa.Decimal128Type) -> str:
    return format(_rescale(value, kind), "f")


def _decode_decimal(text: str, kind: pa.Decimal128Type) -> Decimal:
    if not _is_number(text):
        raise ValueError("no number")
    return _rescale(Decimal(text), kind)


def _rescale(value: Decimal, kind: pa.Decimal128Type) -> Decimal:
    with localcontext(prec=_DECIMAL_DIGITS):
        try:
            scaled = value.quantize(Decimal(1).scaleb(-kind.scale))
        except InvalidOperation:
            raise ValueError(f"outside of {kind}") from None
        if scaled != value or abs(scaled.scaleb(kind.scale)) >= 10**kind.precision:
            raise ValueError(f"outside of {kind}")
        return scaled


def _is_number(text: str) -> bool:
    return len(text) <= _MAX_NUMBER_LENGTH and _NUMBER.fullmatch(text) is not None


def _encode_boolean(value: bool, _: pa.DataType) -> str:  # noqa: FBT001 - the value itself
    if not isinstance(value, bool):
        raise TypeError(f"a {type(value).__name__} is no boolean")
    return "true" if value else "false"


def _decode_boolean(text: str, _: pa.DataType) -> bool:
    folded = text.lower()
    if folded not in {"true", "false"}:
        raise ValueError("neither true nor false")
    return folded == "true"


def _encode_date(value: date, _: pa.DataType) -> str:
    if isinstance(value, datetime):
        raise TypeError("a datetime is no date")
    return value.isoformat()


def _decode_date(text: str, _: pa.DataType) -> date:
    match = _DATE.fullmatch(text)
    if match is None:
        raise ValueError("no date")
    return date(int(match[1]), int(match[2]), int(match[3]))


def _encode_timestamp(value: datetime, kind: pa.TimestampType) -> str:
    if (value.tzinfo is None) != (kind.tz is None):
        raise TypeError("a zone is needed" if kind.tz else "there may be no zone")
    if kind.tz is None:
        return value.isoformat(sep=" ")
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def _decode_timestamp(text: str, kind: pa.TimestampType) -> datetime:
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise ValueError("no timestamp")
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    fraction, zone = match[7] or "", match[8]
    if fraction[6:].strip("0"):
        raise ValueError("digits below a microsecond")
    microsecond = int(fraction[:6].ljust(6, "0"))
    value = datetime(year, month, day, hour, minute, second, microsecond, tzinfo=_zone(zone))
    if kind.tz is None:
        if zone is not None:
            raise ValueError("a zone where there is none")
        return value.replace(tzinfo=None)
    return value.astimezone(UTC)


def _zone(text: str | None) -> timezone:
    if text is None or text in {"Z", "UTC"}:
        return UTC
    digits = text[1:].replace(":", "")
    hours, minutes, seconds = int(digits[:2]), int(digits[2:4]), int(digits[4:] or 0)
    offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    return timezone(-offset if text[0] == "-" else offset)


def _encode_binary(value: bytes, _: pa.DataType) -> str:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = ""
    if value and (not text or _ESCAPED_BYTES.fullmatch(text)):
        return "".join(f"\\u{byte:04X}" for byte in value)
    return text


def _decode_binary(text: str, _: pa.DataType) -> bytes:
    if _ESCAPED_BYTES.fullmatch(text):
        return bytes(int(text[i + 4 : i + 6], 16) for i in range(0, len(text), 6))
    return text.encode()


def _encode_null(value: object, _: pa.DataType) -> str:
    raise TypeError(f"{value!r} is not null")


def _decode_null(text: str, _: pa.DataType) -> None:
    raise ValueError(f"{text!r} is not null")


_INTEGERS = _Codec(_encode_integer, _decode_integer)
_FLOATS = _Codec(_encode_float, _decode_float)
_TIMESTAMPS = _Codec(_encode_timestamp, _decode_timestamp)
_CODECS: dict[pa.DataType, _Codec] = {
    pa.string(): _Codec(_encode_string, lambda text, _: text),
    pa.int64(): _INTEGERS,
    pa.int32(): _INTEGERS,
    pa.int16(): _INTEGERS,
    pa.int8(): _INTEGERS,
    pa.float32(): _FLOATS,
    pa.float64(): _FLOATS,
    pa.bool_(): _Codec(_encode_boolean, _decode_boolean),
    pa.date32(): _Codec(_encode_date, _decode_date),
    pa.timestamp("us", "UTC"): _TIMESTAMPS,
    pa.timestamp("us"): _TIMESTAMPS,
    pa.binary(): _Codec(_encode_binary, _decode_binary),
    pa.null(): _Codec(_encode_null, _decode_null),
}
_DECIMALS = _Codec(_encode_decimal, _decode_decimal)


def _codec(kind: pa.DataType) -> _Codec:
    codec = _CODECS.get(kind)
    if codec is not None:
        return codec
    if pa.types.is_decimal128(kind):
        return _DECIMALS
    raise InvalidInputError(
        f"A column of the type {kind} can't partition a table.",
        found="partition values are single strings",
        remedy="Partition by a column of a primitive type.",
    )
