"""Where a tail starts, as it is typed, and the file that remembers where it got to."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from streamlake import InvalidInputError, Offset

NAMED_STARTS = ("earliest", "latest", "snapshot")


def parse_start(text: str) -> str | int | datetime | Offset:
    """``earliest | latest | snapshot``, a version, an ISO 8601 time, or an Offset or a file of one.

    A time without a zone is UTC.

    Raises:
        InvalidInputError: It is none of these.
    """
    if text in NAMED_STARTS:
        return text
    if text.isdecimal() and text.isascii():
        return int(text)
    if text.lstrip().startswith("{"):
        return Offset.from_json(text)
    if text.endswith(".json") or Path(text).is_file():
        return _read_offset(Path(text))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidInputError(
            "--from does not say where to start.",
            found=repr(text),
            remedy="Give earliest, latest, snapshot, a version, a time as 2026-01-31T12:00:00Z, or "
            "a file that holds an Offset.",
        ) from error
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


class PositionFile:
    """Remembers an Offset in a file that is replaced whole, so that it is never half-written."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> Offset | None:
        """The Offset saved last; None where there is no file yet."""
        return _read_offset(self._path) if self._path.exists() else None

    def save(self, offset: Offset) -> None:
        """Replace what is remembered; durable when it returns."""
        fresh = self._path.with_name(f".{self._path.name}.new")
        try:
            with fresh.open("w") as file:
                file.write(offset.to_json() + "\n")
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self._path)
            _sync_folder(self._path.parent)
        except OSError as error:
            raise InvalidInputError(
                "The position can't be saved; the rows printed last will be printed again.",
                where=str(self._path),
                found=str(error),
                remedy="Give --position a file in a folder that can be written.",
            ) from error


def _read_offset(path: Path) -> Offset:
    try:
        return Offset.from_json(path.read_bytes())
    except OSError as error:
        raise InvalidInputError(
            "The Offset's file can't be read.",
            where=str(path),
            found=os.strerror(error.errno) if error.errno else str(error),
            remedy="Give a file that holds an Offset, as --position writes it.",
        ) from error


def _sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
