"""The bytes of a data file, fetched whole or by the ranges that a reader asks for."""

from __future__ import annotations

import pyarrow as pa

from streamlake.data.limits import ReadLimits
from streamlake.errors import (
    CorruptTableError,
    LimitExceededError,
    ObjectNotFoundError,
    UnsupportedFeatureError,
)
from streamlake.storage.ranged_file import RangedFile
from streamlake.storage.store import ObjectStore

_MAGIC = b"PAR1"
_ENCRYPTED_MAGIC = b"PARE"
_END_BYTES = 8
"""The footer's length and the magic."""


def open_source(
    store: ObjectStore, path: str, size_bytes: int, limits: ReadLimits
) -> pa.NativeFile:
    """A data file, opened for random access, with a footer that is worth parsing.

    Small files take one request, here; of larger ones this fetches the end.

    Args:
        store: Rooted at the table.
        path: Relative to the root, not URL-encoded.
        size_bytes: As the log has it.
        limits: Of the footer, and what counts as small.

    Raises:
        CorruptTableError: The file is missing, or does not end as Parquet does.
        LimitExceededError: The footer is larger than the limit.
        UnsupportedFeatureError: The file is encrypted.
    """
    where = f"{store.url.rstrip('/')}/{path}"
    try:
        if size_bytes <= limits.whole_file_bytes:
            data = store.get(path)
            _check_end(data, len(data), where, limits)
            return pa.BufferReader(data)
        file = _DataFile(store, path, size_bytes, where)
        _check_end(file.tail, size_bytes, where, limits)
        return pa.PythonFile(file, mode="r")
    except ObjectNotFoundError as error:
        raise missing_file(where) from error


def missing_file(where: str) -> CorruptTableError:
    """What is raised for a data file that the log names and the store does not have."""
    return CorruptTableError(
        "A data file of the table is missing.",
        where=where,
        found="no such object",
        remedy="A vacuum may have removed it: read a newer version, or restore the file. Keep "
        "delta.deletedFileRetentionDuration longer than your slowest reader is behind.",
    )


def _check_end(tail: bytes, size_bytes: int, where: str, limits: ReadLimits) -> None:
    magic = tail[-4:]
    if magic == _ENCRYPTED_MAGIC:
        raise UnsupportedFeatureError(
            "A data file is encrypted.",
            where=where,
            remedy="Read it with the engine that has the keys.",
        )
    footer_bytes = int.from_bytes(tail[-_END_BYTES:-4], "little")
    if magic != _MAGIC or footer_bytes + _END_BYTES + len(_MAGIC) > size_bytes:
        raise CorruptTableError(
            "A data file is torn or no Parquet file.",
            where=where,
            found=f"{size_bytes} bytes that end with {tail[-_END_BYTES:]!r}",
            remedy="Restore the file from a copy, or delete its rows from the table.",
        )
    if footer_bytes > limits.footer_bytes:
        raise LimitExceededError(
            "The footer of a data file is larger than the limit.",
            where=where,
            found=f"{footer_bytes} bytes; ReadLimits.footer_bytes is {limits.footer_bytes}",
            remedy="Raise the limit if you trust the file's writer.",
        )


class _DataFile(RangedFile):
    """A data file that objects where it is not what the log says."""

    def __init__(self, store: ObjectStore, path: str, size_bytes: int, where: str) -> None:
        self._where = where
        super().__init__(store, path, size_bytes)

    def fetch(self, start: int, length: int) -> bytes:
        try:
            data = super().fetch(start, length)
        except ObjectNotFoundError as error:
            raise missing_file(self._where) from error
        if len(data) != length:
            raise CorruptTableError(
                "A data file is shorter than the log says.",
                where=self._where,
                found=f"{len(data)} bytes from byte {start} on; the log says {self.size_bytes} "
                "in all",
                remedy="Restore the file from a copy, or delete its rows from the table.",
            )
        return data
