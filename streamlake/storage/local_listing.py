"""The files below a folder in the byte order of their paths, read as far as the caller goes."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from stat import S_ISLNK, S_ISREG

from streamlake.errors import StorageError
from streamlake.storage.store import ObjectMeta

TEMPORARY_SUFFIX = ".tmp"
"""Files that begin with "." and end like this are being written, or were left by a writer that was
killed."""
_TEMPORARY_SUFFIX = TEMPORARY_SUFFIX.encode()


def list_folder(root: str, prefix: str, start_after: str) -> Iterator[ObjectMeta]:
    """Objects below ``root`` whose path begins with ``prefix`` and sorts after ``start_after``.

    A folder sorts as its name with "/" behind it, so that the order is that of whole paths. One
    folder a level is held in memory, as its names.

    Raises:
        StorageError: A folder can't be read.
    """
    top, wanted, after = os.fsencode(root) + b"/", os.fsencode(prefix), os.fsencode(start_after)
    levels = [iter(_names(top, wanted[: wanted.rfind(b"/") + 1], wanted, after))]
    while levels:
        path = next(levels[-1], None)
        if path is None:
            levels.pop()
        elif path.endswith(b"/"):
            levels.append(iter(_names(top, path, wanted, after)))
        elif (meta := _meta(top, path)) is not None:
            yield meta


def _names(top: bytes, folder: bytes, wanted: bytes, after: bytes) -> list[bytes]:
    """Sorted paths of what the listing wants of a folder; those of folders end in "/"."""
    names = []
    try:
        with os.scandir(top + folder) as entries:
            for entry in entries:
                path = folder + entry.name
                if entry.is_dir(follow_symlinks=False):
                    path += b"/"
                    if path <= after and not after.startswith(path):
                        continue
                elif path <= after or _is_temporary(entry.name):
                    continue
                if path.startswith(wanted):
                    names.append(path)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise _unreadable(error, top + folder) from error
    names.sort()
    return names


def _is_temporary(name: bytes) -> bool:
    return name.endswith(_TEMPORARY_SUFFIX) and name.startswith(b".")


def _meta(top: bytes, path: bytes) -> ObjectMeta | None:
    """What there is at ``path`` now, or None where that is no file (any more)."""
    try:
        status = os.lstat(top + path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _unreadable(error, top + path) from error
    if S_ISLNK(status.st_mode):
        try:
            status = os.stat(top + path)  # noqa: PTH116 - whether it may be read, the read decides
        except OSError:
            return None
    if not S_ISREG(status.st_mode):
        return None
    return ObjectMeta(
        path=os.fsdecode(path),
        size_bytes=status.st_size,
        modified_ms=status.st_mtime_ns // 1_000_000,
    )


def _unreadable(error: OSError, where: bytes) -> StorageError:
    return StorageError(
        "The file system failed, or refused, while listing.",
        where=os.fsdecode(where),
        found=f"{error.strerror} ({errno.errorcode.get(error.errno or 0, error.errno)})",
        remedy="Give this user the right to read there, or check the disk.",
    )
