"""A position in the stream of a table's rows: Delta's own JSON, and one integer for a marker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from streamlake.errors import InvalidInputError
from streamlake.protocol import MAX_INT64

SOURCE_VERSION = 1
"""The version of Delta's format of offsets that is read and written."""
SCHEMA_CHANGE_SOURCE_VERSION = 3
"""Delta's version of an offset that stands at a change of metadata; refused."""
BEFORE_FIRST_FILE = -1
"""The index of a position before every file of its version."""

_KEYS = ("sourceVersion", "reservoirId", "reservoirVersion", "index", "isStartingVersion")
_ROWS_KEY = "rowsDone"

_INDEX_BITS = 24
_MAX_MARKER_INDEX = 2**_INDEX_BITS - 2
_MAX_MARKER_VERSION = 2 ** (63 - _INDEX_BITS - 1) - 1
_REMEDY = 'Pass the JSON of a Batch\'s offset unchanged, or start="earliest" or "snapshot".'


@dataclass(frozen=True, slots=True, kw_only=True)
class Offset:
    """A position in a table's stream: everything up to it was consumed.

    A version's files are the ``add`` actions with ``dataChange=true`` of its commit, in the order
    of the commit, counted from 0; of an initial snapshot all files, ordered by (modificationTime,
    path). Positions of one table are ordered; comparing those of two tables raises
    InvalidInputError.

    The JSON is that of Delta's Spark source, so that a position can be handed from one to the
    other. The field ``rowsDone`` is our own: an offset that has it stands inside a file, and Delta
    would read that file again.
    """

    reservoir_id: str
    """The table's id (``metaData.id``)."""
    reservoir_version: int
    """The version that the position lies in; versions below were consumed whole."""
    index: int = BEFORE_FIRST_FILE
    """The last file of that version that was consumed; -1 before the first."""
    is_starting_version: bool = False
    """Whether the position lies in the initial snapshot of that version, not in its commit."""
    rows_done: int = 0
    """Rows consumed of the file after ``index``, counted as the file stores them."""

    def __post_init__(self) -> None:
        if not isinstance(self.reservoir_id, str) or not self.reservoir_id:
            raise _invalid("reservoirId must be a table's id", self.reservoir_id)
        _check_int("reservoirVersion", self.reservoir_version, least=0)
        _check_int("index", self.index, least=BEFORE_FIRST_FILE)
        _check_int(_ROWS_KEY, self.rows_done, least=0)
        if not isinstance(self.is_starting_version, bool):
            raise _invalid("isStartingVersion must be true or false", self.is_starting_version)

    @classmethod
    def after_version(cls, version: int, table_id: str) -> Offset:
        """The position after the whole of ``version``: before the first file of the next one."""
        return cls(reservoir_id=table_id, reservoir_version=version + 1)

    def to_json(self) -> str:
        """Delta's JSON, byte for byte; ``rowsDone`` follows where it is not 0."""
        fields = self._fields()
        return msgspec.json.encode(fields).decode()

    @classmethod
    def from_json(cls, text: str | bytes | Mapping[str, Any]) -> Offset:
        """Read a position from its JSON, or from the object that the JSON stands for.

        An unknown key is refused: it may move the position, as ``rowsDone`` does.

        Raises:
            InvalidInputError: No JSON of an offset, or of a kind of offset that is not supported.
        """
        fields = _decoded(text)
        _check_source_version(fields)
        unknown = [key for key in fields if key not in _KEYS and key != _ROWS_KEY]
        missing = [key for key in _KEYS if key not in fields]
        if unknown or missing:
            what = f"unknown key {unknown[0]!r}" if unknown else f"no {missing[0]!r}"
            raise _invalid(
                f"An offset has the keys {', '.join(_KEYS)}; this one has {what}", fields
            )
        return cls(
            reservoir_id=fields["reservoirId"],
            reservoir_version=fields["reservoirVersion"],
            index=fields["index"],
            is_starting_version=fields["isStartingVersion"],
            rows_done=fields.get(_ROWS_KEY, 0),
        )

    def to_marker(self) -> int:
        """The position as the version of an exactly-once marker; later positions give larger ones.

        ``((reservoirVersion << 24) | (index + 1)) << 1 | isStartingVersion``.

        Raises:
            InvalidInputError: The position lies inside a file, or does not fit 63 bits.
        """
        if self.rows_done:
            raise _invalid("A marker stands at the end of a file, not inside one", self.to_json())
        if self.index > _MAX_MARKER_INDEX or self.reservoir_version > _MAX_MARKER_VERSION:
            raise _invalid(
                f"A marker holds versions up to {_MAX_MARKER_VERSION} and file indexes up to "
                f"{_MAX_MARKER_INDEX}",
                self.to_json(),
            )
        place = (self.reservoir_version << _INDEX_BITS) | (self.index + 1)
        return place << 1 | self.is_starting_version

    @classmethod
    def from_marker(cls, marker: int, table_id: str) -> Offset:
        """The position that ``to_marker`` made a marker of.

        Raises:
            InvalidInputError: A negative marker, or one beyond 63 bits.
        """
        _check_int("marker", marker, least=0)
        place = marker >> 1
        return cls(
            reservoir_id=table_id,
            reservoir_version=place >> _INDEX_BITS,
            index=(place & (2**_INDEX_BITS - 1)) - 1,
            is_starting_version=bool(marker & 1),
        )

    def _fields(self) -> dict[str, Any]:
        values = (
            SOURCE_VERSION,
            self.reservoir_id,
            self.reservoir_version,
            self.index,
            self.is_starting_version,
        )
        fields: dict[str, Any] = dict(zip(_KEYS, values, strict=True))
        return fields | {_ROWS_KEY: self.rows_done} if self.rows_done else fields

    def _order(self, other: Offset) -> tuple[tuple[int, ...], tuple[int, ...]]:
        if self.reservoir_id != other.reservoir_id:
            raise _invalid("Positions of two tables have no order", other.to_json())
        left, right = (
            (one.reservoir_version, one.index, one.is_starting_version, one.rows_done)
            for one in (self, other)
        )
        return left, right

    def __lt__(self, other: Offset) -> bool:
        left, right = self._order(other)
        return left < right

    def __le__(self, other: Offset) -> bool:
        left, right = self._order(other)
        return left <= right

    def __gt__(self, other: Offset) -> bool:
        return other < self

    def __ge__(self, other: Offset) -> bool:
        return other <= self


def _decoded(text: str | bytes | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(text, Mapping):
        return dict(text)
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError, TypeError) as error:
        raise _invalid(f"No JSON of an offset ({error})", text) from error


def _check_source_version(fields: Mapping[str, Any]) -> None:
    version = fields.get("sourceVersion")
    if type(version) is not int:
        raise _invalid("An offset has sourceVersion 1", fields)
    if version == SCHEMA_CHANGE_SOURCE_VERSION:
        raise InvalidInputError(
            "The offset stands at a change of the table's schema (sourceVersion 3), which is not "
            "supported.",
            found=str(dict(fields)),
            remedy="Let Delta's Spark source pass the change, or start at the version itself: "
            "start=<reservoirVersion>.",
        )
    if version != SOURCE_VERSION:
        raise _invalid("An offset has sourceVersion 1", fields)


def _check_int(name: str, value: int, *, least: int) -> None:
    if type(value) is not int or not least <= value <= MAX_INT64:
        raise _invalid(f"{name} must be an integer from {least} to {MAX_INT64}", value)


def _invalid(what: str, found: object) -> InvalidInputError:
    text = found if isinstance(found, str) else repr(found)
    return InvalidInputError(f"{what}.", found=text[:300], remedy=_REMEDY)
