"""Deletion vectors as writers make them, for tests."""

import struct
import zlib
from uuid import UUID

from pyroaring import BitMap, BitMap64

from streamlake.protocol import DeletionVector

Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
NAME = UUID("d2c639aa-8816-431a-aaf6-d3fe2512ff61")


def z85(data: bytes) -> str:
    text = ""
    for (word,) in struct.iter_unpack(">I", data + bytes(-len(data) % 4)):
        text += "".join(Z85[word // 85**place % 85] for place in (4, 3, 2, 1, 0))
    return text


def portable(rows) -> bytes:
    return struct.pack("<I", 1681511377) + BitMap64(rows).serialize()


def native(*bitmaps) -> bytes:
    """Of each high word in order its low words."""
    parts = [struct.pack("<Ii", 1681511376, len(bitmaps))]
    for rows in bitmaps:
        data = BitMap(rows).serialize()
        parts.append(struct.pack("<i", len(data)) + data)
    return b"".join(parts)


def inline(rows, data=None) -> DeletionVector:
    data = portable(rows) if data is None else data
    return DeletionVector("i", z85(data), len(data), len(BitMap64(rows)))


def framed(data: bytes) -> bytes:
    """As it stands in a file: its size, itself, its checksum."""
    return struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))


def stored(store, *vectors, folder="", kind="u"):
    """The descriptors of vectors that share a file, which is put into the store."""
    path = f"{folder}/deletion_vector_{NAME}.bin" if folder else f"deletion_vector_{NAME}.bin"
    content, found = b"\x01", []
    for rows in vectors:
        data = portable(rows)
        at = f"{store.url.rstrip('/')}/{path}" if kind == "p" else folder + z85(NAME.bytes)
        count = len(BitMap64(rows))
        found.append(DeletionVector(kind, at, len(data), count, offset=len(content)))
        content += framed(data)
    store.put(path, content)
    return found
