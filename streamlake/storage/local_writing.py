"""How a file gets its bytes, its name and its durability on local disk.

Two stages with a sharp line between them. Up to the line nothing is visible, and every failure is
certain; from the link or rename on, a failure leaves it open whether the object is there for good.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from stat import S_ISLNK

from streamlake.errors import (
    ConditionalPutUnsupportedError,
    ObjectExistsError,
    StorageError,
    WriteRefusedError,
)

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
_FOLDER = os.O_RDONLY | os.O_DIRECTORY
_FOLDER_TRIES = 8
"""How often folders that vanish under a put are made again."""
_REMEDIES = {
    errno.ENOSPC: "Free space on the disk, then try again.",
    errno.EDQUOT: "Free space within the quota, or have it raised, then try again.",
    errno.EFBIG: "Raise the limit on the size of files (ulimit -f), or write smaller files.",
    errno.EACCES: "Give this user the right to write there.",
    errno.EPERM: "Give this user the right to write there.",
    errno.EROFS: "Mount the file system for writing.",
    errno.ENAMETOOLONG: "Use a shorter path.",
    errno.EMFILE: "Raise the limit on open files (ulimit -n).",
    errno.ENOTDIR: "A file stands where a folder is needed; move it away.",
}
_CERTAIN = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS, errno.ENOENT, errno.EISDIR}
    | {errno.ENOTDIR, errno.ENOTEMPTY, errno.ENAMETOOLONG, errno.EXDEV}
)
"""What a link or rename answers only if it changed nothing."""
_NO_HARD_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS})


if sys.platform == "darwin":
    import fcntl

    def sync_file(descriptor: int) -> None:
        """Bring a file's bytes to the medium; fsync stops at the disk's cache there."""
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
else:
    sync_file = os.fsync


class FolderSync:
    """Knows which folders below a root are entered in theirs for good."""

    __slots__ = ("_durable", "_root")

    def __init__(self, root: str) -> None:
        self._root = root
        self._durable: dict[str, tuple[int, int]] = {}

    def refuse_links(self, folder: str) -> None:
        """Refuse a folder that is, or is below, a link under the root; a missing one passes.

        Raises:
            StorageError: One of the folders is a link, or can't be looked at.
        """
        while len(folder) > len(self._root):
            try:
                status = os.lstat(folder)
            except (FileNotFoundError, NotADirectoryError):
                return
            except OSError as error:
                raise _failed(error, folder) from error
            if S_ISLNK(status.st_mode):
                raise _is_link(folder)
            folder = folder.rpartition("/")[0]

    def prepare(self, folder: str) -> None:
        """Make sure that ``folder`` is there, is no link, and stays there after a loss of power.

        Costs one lstat per level below the root, where this process did it before.

        Raises:
            FileNotFoundError: A folder is missing; ``make`` makes it.
            StorageError: One of the folders is a link.
        """
        at, known = folder, self._durable
        while len(at) > len(self._root):
            status = os.lstat(at)
            if S_ISLNK(status.st_mode):
                raise _is_link(at)
            if known.get(at) != (status.st_dev, status.st_ino):
                sync_folder(at.rpartition("/")[0])
                known[at] = (status.st_dev, status.st_ino)
            at = at.rpartition("/")[0]
        if at not in known:
            status = os.stat(at)  # noqa: PTH116 - the root may be a link
            _sync_above(at)
            known[at] = (status.st_dev, status.st_ino)

    def make(self, folder: str) -> None:
        """Make ``folder`` and what is missing above it, each synced into its parent."""
        missing = []
        while folder and not os.path.lexists(folder):
            missing.append(folder)
            folder = folder.rpartition("/")[0]
        for name in reversed(missing):
            with contextlib.suppress(FileExistsError):
                os.mkdir(name)  # noqa: PTH102
            _sync_above(name)


def stage(temporary: str, data: bytes | memoryview, *, sync: FolderSync, where: str) -> None:
    """Write ``data`` to a new file and sync it; make its folder if need be.

    Leaves no file behind where it fails.

    Raises:
        WriteRefusedError: Whatever the file system answered: nothing is visible yet.
        StorageError: A folder of the path is a symbolic link.
    """
    try:
        descriptor = _create(temporary, sync)
    except OSError as error:
        raise _refused(error, where) from error
    try:
        try:
            _write_all(descriptor, data)
            sync_file(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        _discard(temporary)
        raise _refused(error, where) from error
    except BaseException:
        _discard(temporary)
        raise


def publish_by_link(temporary: str, target: str) -> None:
    """Give a staged file its name unless that is taken; durable when it returns.

    Raises:
        ObjectExistsError: The name is taken.
        ConditionalPutUnsupportedError: The file system has no hard links.
        WriteRefusedError: Refused for certain.
        StorageError: The outcome is unknown.
    """
    try:
        os.link(temporary, target)
        _sync_entry(target)
    except FileExistsError:
        _sync_taken(target)
        raise ObjectExistsError("The name is taken.", where=target) from None
    except OSError as error:
        if error.errno in _NO_HARD_LINKS:
            raise ConditionalPutUnsupportedError(
                "This file system has no hard links, so it can't refuse a name that is taken.",
                where=target,
                found=f"link: {error.strerror}",
                remedy="Keep the table on another file system, or open it with single_writer=True.",
            ) from error
        raise _publish_failure(error, target) from error
    finally:
        _discard(temporary)


def publish_by_rename(temporary: str, target: str) -> None:
    """Give a staged file its name, in place of what had it; durable when it returns.

    Raises:
        WriteRefusedError: Refused for certain.
        StorageError: The outcome is unknown.
    """
    try:
        os.rename(temporary, target)  # noqa: PTH104
    except OSError as error:
        _discard(temporary)
        raise _publish_failure(error, target) from error
    _sync_entry(target)


def sync_folder(folder: str) -> None:
    """Bring a folder's entries to the disk."""
    descriptor = os.open(folder, _FOLDER)
    try:
        sync_file(descriptor)
    finally:
        os.close(descriptor)


def _sync_above(folder: str) -> None:
    """Sync the folder that holds ``folder``, unless this user may not read it."""
    with contextlib.suppress(PermissionError):
        sync_folder(folder.rpartition("/")[0] or "/")


def _create(temporary: str, sync: FolderSync) -> int:
    folder = temporary.rpartition("/")[0]
    for _ in range(_FOLDER_TRIES):
        try:
            sync.prepare(folder)
            return os.open(temporary, _CREATE, 0o666)
        except FileNotFoundError:
            sync.make(folder)
    return os.open(temporary, _CREATE, 0o666)


def _write_all(descriptor: int, data: bytes | memoryview) -> None:
    size = data.nbytes if isinstance(data, memoryview) else len(data)
    written = os.write(descriptor, data)
    if written < size:
        view = memoryview(data).cast("B")
        while written < size:
            written += os.write(descriptor, view[written:])


def _sync_taken(target: str) -> None:
    """Make what has the name durable: whoever put it there may have died before its last sync."""
    try:
        descriptor = os.open(target, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        sync_file(descriptor)
    except OSError as error:
        raise _failed(error, target) from error
    finally:
        os.close(descriptor)
    _sync_entry(target)


def _sync_entry(target: str) -> None:
    try:
        sync_folder(target.rpartition("/")[0])
    except OSError as error:
        raise StorageError(
            "The object was written, but its folder could not be synced: "
            "it may not survive a loss of power.",
            where=target,
            found=_told(error),
            remedy="Check the disk; then read the object back and write it again if it is missing.",
        ) from error


def _discard(temporary: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(temporary)  # noqa: PTH108


def _publish_failure(error: OSError, target: str) -> StorageError:
    return _refused(error, target) if error.errno in _CERTAIN else _failed(error, target)


def _refused(error: OSError, where: str) -> WriteRefusedError:
    return WriteRefusedError(
        "The file system refused the write; nothing was written.",
        where=where,
        found=_told(error),
        remedy=_REMEDIES.get(error.errno or 0, "Check the folder and the disk, then try again."),
    )


def _failed(error: OSError, where: str) -> StorageError:
    return StorageError(
        "The file system failed, or refused.",
        where=where,
        found=_told(error),
        remedy="Check the permissions of the folder and the health of the disk.",
    )


def _is_link(folder: str) -> StorageError:
    return StorageError(
        "A folder below the store's root is a symbolic link; it was not followed.",
        where=folder,
        found=f"it leads to {os.path.realpath(folder)}",
        remedy="Put the folder itself in the link's place, or open the store at its root.",
    )


def _told(error: OSError) -> str:
    return f"{error.strerror} ({errno.errorcode.get(error.errno or 0, error.errno)})"
