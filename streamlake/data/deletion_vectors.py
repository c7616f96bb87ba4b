"""Deletion vectors: which rows of a data file are no longer the table's.

Implements PROTOCOL.md, "Deletion Vectors" and "Deletion Vector Format": vectors inline in the log,
in files below the table's root, and by absolute paths, which must lead below the root too.
"""

from __future__ import annotations

import re
import struct
import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from streamlake.data.limits import ReadLimits
from streamlake.errors import CorruptTableError, LimitExceededError, ObjectNotFoundError
from streamlake.protocol import AddFile, DeletionVector, resolve_path
from streamlake.storage import ObjectStore

_PORTABLE_MAGIC = 1681511377
"""Before a 64-bit bitmap in the format that all implementations share."""
_NATIVE_MAGIC = 1681511376
"""Before a list of 32-bit bitmaps with their sizes, the form of Delta's first implementation.

The protocol document's own example of an inline vector has it, with all framing big endian."""
_FILE_VERSION = b"\x01"
_FIRST_OFFSET = 1
_WORD_BYTES = 4
_UUID_CHARACTERS = 20

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_Z85_GROUP = 5
_UNSAFE_PREFIX = re.compile(r"[/\\\\\x00]|^\.+$")


@dataclass(frozen=True, slots=True)
class DeletedRows:
    """The deleted rows of one data file, by their places in it."""

    places: BitMap64

    @property
    def count(self) -> int:
        """How many rows are deleted."""
        return len(self.places)

    def place_of(self, row: int, rows: int) -> int:
        """Where in a file of ``rows`` the ``row``-th one left stands; ``rows`` past the last."""
        low, high = row, rows
        while low < high:
            middle = (low + high) // 2
            left_until = middle + 1 - self.places.rank(middle)
            low, high = (low, middle) if left_until > row else (middle + 1, high)
        return low

    def left(self, table: pa.Table, start: int) -> pa.Table:
        """The rows of ``table`` that are not deleted; its first one stands at ``start``."""
        stop = start + table.num_rows
        window = BitMap64(range(start, stop))
        if not table.num_columns:
            return table.slice(0, len(window) - window.intersection_cardinality(self.places))
        if not window.intersect(self.places):
            return table
        kept = (window - self.places).to_array()
        places: pa.Array[Any] = pa.Array.from_buffers(
            pa.uint64(), len(kept), [None, pa.py_buffer(kept)]
        )
        return table.take(pc.subtract(places, pa.scalar(start, pa.uint64())))


def read_deleted_rows(store: ObjectStore, add: AddFile, *, limits: ReadLimits) -> DeletedRows:
    """The deletion vector of a file that has one: a request where it is not inline.

    Args:
        store: Rooted at the table.
        add: The file.
        limits: How many bytes a vector may have.

    Raises:
        CorruptTableError: It is missing, torn, garbled, or contradicts the log.
        LimitExceededError: It is larger than the limit.
        UnsafePathError: Its path leaves the table.
    """
    vector = add.deletion_vector
    if vector is None:
        return DeletedRows(BitMap64())
    where = f"{store.url.rstrip('/')}, the deletion vector of {add.path}"
    if not 0 <= vector.size_in_bytes <= limits.deletion_vector_bytes:
        raise _over_limit(vector, where, limits)
    try:
        inline = vector.storage_type == "i"
        places = decode_bitmap(_inline_bytes(vector) if inline else _stored_bytes(store, vector))
    except ObjectNotFoundError as error:
        raise _corrupt("its file is gone; a vacuum may have removed it", where) from error
    except (ValueError, struct.error) as error:
        raise _corrupt(str(error), where) from error
    if len(places) != vector.cardinality:
        raise _corrupt(f"{len(places)} rows; the log says {vector.cardinality}", where)
    return DeletedRows(places)


def decode_bitmap(data: bytes) -> BitMap64:
    """The numbers of a serialized RoaringBitmapArray, magic number included.

    Raises:
        ValueError: It is none.
    """
    if len(data) < _WORD_BYTES:
        raise ValueError("a bitmap too short for its magic number")
    magic, body = data[:_WORD_BYTES], data[_WORD_BYTES:]
    if magic == struct.pack(">I", _NATIVE_MAGIC):
        body = _reframed(body, ">i")
    elif magic == struct.pack("<I", _NATIVE_MAGIC):
        body = _reframed(body, "<i")
    elif magic != struct.pack("<I", _PORTABLE_MAGIC):
        raise ValueError(f"a bitmap that begins with {magic.hex()}")
    try:
        return BitMap64.deserialize(body)
    except (IndexError, OverflowError, MemoryError) as error:
        raise ValueError(f"a garbled bitmap ({error})") from error


def _reframed(data: bytes, integer: str) -> bytes:
    """A native list of bitmaps as the portable format has it: each after its high word."""
    (count,) = struct.unpack_from(integer, data)
    if not 0 <= count <= len(data):
        raise ValueError(f"{count} bitmaps in {len(data)} bytes")
    parts = [struct.pack("<Q", count)]
    at = _WORD_BYTES
    for high in range(count):
        (size,) = struct.unpack_from(integer, data, at)
        at += _WORD_BYTES
        if not 0 < size <= len(data) - at:
            raise ValueError(f"a bitmap of {size} bytes where {len(data) - at} are left")
        parts += [struct.pack("<I", high), data[at : at + size]]
        at += size
    return b"".join(parts)


def _inline_bytes(vector: DeletionVector) -> bytes:
    if vector.offset is not None:
        raise ValueError(f"an inline vector with the offset {vector.offset}")
    data = decode_z85(vector.path_or_inline_dv)
    if not 0 <= len(data) - vector.size_in_bytes < _WORD_BYTES:
        raise ValueError(f"{len(data)} bytes inline, not {vector.size_in_bytes} as in the log")
    return data[: vector.size_in_bytes]


def _stored_bytes(store: ObjectStore, vector: DeletionVector) -> bytes:
    """The vector's bytes out of its file, checked against size and checksum."""
    path = vector_path(vector, root_url=store.url)
    size = vector.size_in_bytes
    # A file begins with its version, and the first vector stands right behind.
    start = max(vector.offset or 0, _FIRST_OFFSET)
    before = _FIRST_OFFSET if start == _FIRST_OFFSET else 0
    data = store.get_range(path, start - before, before + size + 2 * _WORD_BYTES)
    if before and data[:before] != _FILE_VERSION:
        raise ValueError(f"its file is of the version {data[:before]!r}")
    data = data[before:]
    if len(data) < size + 2 * _WORD_BYTES:
        raise ValueError(f"its file ends {len(data)} bytes after byte {start}; {size} + 8 wanted")
    (stored_size,) = struct.unpack_from(">i", data)
    body = bytes(data[_WORD_BYTES : _WORD_BYTES + size])
    (checksum,) = struct.unpack_from(">I", data, _WORD_BYTES + size)
    if stored_size != size:
        raise ValueError(f"{stored_size} bytes in its file, not {size} as in the log")
    if zlib.crc32(body) != checksum:
        raise ValueError("its checksum is wrong")
    return body


def vector_path(vector: DeletionVector, *, root_url: str) -> str:
    """Where the file of a vector is in the store, relative to the table's root.

    Raises:
        ValueError: The descriptor names no file.
        UnsafePathError: The file lies outside of the table.
        CorruptTableError: An absolute path that is no URI reference.
    """
    text = vector.path_or_inline_dv
    if vector.storage_type == "p":
        return resolve_path(text, root_url=root_url)
    if vector.storage_type != "u" or len(text) < _UUID_CHARACTERS:
        raise ValueError(f"a vector of the type {vector.storage_type!r} at {text[:80]!r}")
    prefix, encoded = text[:-_UUID_CHARACTERS], text[-_UUID_CHARACTERS:]
    if _UNSAFE_PREFIX.search(prefix):
        raise ValueError(f"a folder {prefix[:80]!r}")
    digits = decode_z85(encoded).hex()
    parts = digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]
    name = f"deletion_vector_{'-'.join(parts)}.bin"
    return f"{prefix}/{name}" if prefix else name


@lru_cache(maxsize=1)
def _z85_values() -> dict[str, int]:
    return {character: value for value, character in enumerate(_Z85)}


def decode_z85(text: str) -> bytes:
    """The bytes of a text in Z85 (https://rfc.zeromq.org/spec/32/).

    Raises:
        ValueError: A character of another alphabet, or a length that is not a multiple of five.
    """
    if len(text) % _Z85_GROUP:
        raise ValueError(f"{len(text)} characters of Z85")
    values = _z85_values()
    words: list[int] = []
    for start in range(0, len(text), _Z85_GROUP):
        word = 0
        for character in text[start : start + _Z85_GROUP]:
            if character not in values:
                raise ValueError(f"{character!r} is not of Z85")
            word = word * len(_Z85) + values[character]
        if word >> 32:
            raise ValueError("a group of Z85 past 32 bits")
        words.append(word)
    return struct.pack(f">{len(words)}I", *words)


def _over_limit(
    vector: DeletionVector, where: str, limits: ReadLimits
) -> LimitExceededError | CorruptTableError:
    if vector.size_in_bytes < 0:
        return _corrupt(f"{vector.size_in_bytes} bytes", where)
    return LimitExceededError(
        "A deletion vector is larger than the limit.",
        where=where,
        found=f"{vector.size_in_bytes} bytes; ReadLimits.deletion_vector_bytes is "
        f"{limits.deletion_vector_bytes}",
        remedy="Raise the limit if you trust the table's writer, or have it purge the table "
        "(REORG TABLE ... APPLY (PURGE)).",
    )


def _corrupt(found: str, where: str) -> CorruptTableError:
    return CorruptTableError(
        "A deletion vector is missing, garbled or contradicts the log.",
        where=where,
        found=found,
        remedy="Restore its file from a copy; without it nobody knows which rows are deleted.",
    )
