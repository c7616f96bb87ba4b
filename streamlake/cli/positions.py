"""Where a tail starts, as it is typed, and the file that remembers where it got to."""

from __future__ import annotations

import os
from pathlib import Path

from streamlake import InvalidInputError, Offset


def parse_start(text: str) -> str | Offset:
    """What ``--from`` says: the Offset that a file of that name holds, or what a tail takes.

    Raises:
        InvalidInputError: The file can't be read, or holds no Offset.
    """
    is_file = text.endswith(".json") or Path(text).is_file()
    return _read_offset(Path(text)) if is_file else text


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
    except InvalidInputError as error:
        error.where = str(path)
        error.remedy = "Give a file that holds an Offset, as --position writes it, or remove it."
        raise
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
