"""A folder of this machine as an object store: durable, atomic, and safe between processes."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import PurePosixPath
from stat import S_ISLNK, S_ISREG

from streamlake.clock import SYSTEM_CLOCK
from streamlake.errors import InvalidInputError, ObjectNotFoundError, StorageError
from streamlake.storage.local_listing import TEMPORARY_SUFFIX, list_folder
from streamlake.storage.local_writing import FolderSync, publish_by_link, publish_by_rename, stage
from streamlake.storage.paths import check_path, check_prefix, check_range
from streamlake.storage.store import ObjectMeta, check_whole

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
_READ_BYTES_MAX = 2**30
"""The most that one system call is asked to read."""
_NAME_IN_TEMPORARY = 32
"""How much of an object's name its temporary file carries: names may be as long as the file system
allows."""


class LocalStore:
    """Objects as files below a folder.

    A put writes a hidden temporary file (``.<name>.<id>.tmp``) beside the object, syncs it, gives
    it its name in one step (a rename, or for ``put_if_absent`` a hard link, which fails if the name
    is taken) and syncs the folder; new folders are synced into theirs. So a process that is killed
    leaves at most a hidden file, and what was answered survives a loss of power. Temporary files
    are not listed, and no object may have such a name.

    Symbolic links: the root may be one. Below it, a link is read only if it leads to a file inside
    the root, and a folder that is a link is refused. Listings pass over folders that are links.

    Safe between threads, processes and forks; needs a file system with hard links for
    ``put_if_absent``. ``delete`` leaves empty folders, and may be undone by a loss of power.
    """

    __slots__ = ("_root", "_sync", "_url")

    def __init__(self, root: str | os.PathLike[str]) -> None:
        """A store over ``root``, which need not exist yet.

        A relative one is resolved against the working folder now.

        Raises:
            InvalidInputError: The root is empty, holds NUL, or is the root of the file system.
        """
        given = os.fspath(root)
        # Two slashes at the beginning stay two in a normal path; one is meant.
        absolute = os.path.abspath(given).lstrip("/")  # noqa: PTH100 - plain strings, for speed
        self._root = f"/{absolute}"
        if not given or not absolute or "\0" in given:
            raise InvalidInputError(
                "The root of a local store must be a folder, and not the whole file system.",
                found=repr(given),
                remedy="Give the path of a folder; it is created at the first put.",
            )
        self._url = PurePosixPath(self._root).as_uri()
        self._sync = FolderSync(self._root)

    def __repr__(self) -> str:
        return f"LocalStore({self._root!r})"

    def __reduce__(self) -> tuple[type[LocalStore], tuple[str]]:
        return LocalStore, (self._root,)

    @property
    def url(self) -> str:
        """The root as a ``file://`` URL, percent-encoded."""
        return self._url

    @property
    def root(self) -> str:
        """The absolute path of the folder."""
        return self._root

    def get(self, path: str) -> bytes:
        """The whole object: one open, one read."""
        descriptor, size = self._open(path)
        try:
            check_whole(size, where=f"{self._url}/{path}")
            data = os.read(descriptor, min(size, _READ_BYTES_MAX))
            if len(data) == size:
                return data
            return data + self._read_on(descriptor, len(data), size)
        except OSError as error:
            raise self._failure(error, path) from error
        finally:
            os.close(descriptor)

    def get_range(self, path: str, start: int, length: int) -> bytes:
        """``length`` bytes from byte ``start``; fewer where the object ends before."""
        check_range(start, length, path=path)
        descriptor, size = self._open(path)
        try:
            return self._read_on(descriptor, start, min(start + length, size))
        except OSError as error:
            raise self._failure(error, path) from error
        finally:
            os.close(descriptor)

    def put(self, path: str, data: bytes | memoryview) -> None:
        """Write, or replace, an object. Durable when it returns.

        Raises:
            WriteRefusedError: Refused before a byte became visible.
            StorageError: It may have been written, but perhaps not durably.
        """
        target, temporary = self._names(path)
        stage(temporary, data, sync=self._sync, where=target)
        publish_by_rename(temporary, target)

    def put_if_absent(self, path: str, data: bytes | memoryview) -> None:
        """Write an object that must not exist yet. Durable when it returns.

        Raises:
            ObjectExistsError: The name is taken.
            WriteRefusedError: Refused before a byte became visible; certainly not written.
            ConditionalPutUnsupportedError: The file system has no hard links; certainly not
                written.
            StorageError: It may have been written, but perhaps not durably.
        """
        target, temporary = self._names(path)
        stage(temporary, data, sync=self._sync, where=target)
        publish_by_link(temporary, target)

    def list_from(self, prefix: str, start_after: str = "") -> Iterator[ObjectMeta]:
        """Objects whose path begins with ``prefix`` and sorts after ``start_after``, in byte order.

        Each folder is read when the listing reaches it; folders that end before ``start_after`` are
        not read. An object that is deleted meanwhile may be left out.
        """
        check_prefix(prefix, start_after, url=self._url)
        self._sync.refuse_links(f"{self._root}/{prefix}".rpartition("/")[0])
        return list_folder(self._root, prefix, start_after)

    def stat(self, path: str) -> ObjectMeta:
        """Size and time of one object; the time is that of the file's last write."""
        check_path(path, url=self._url)
        full = f"{self._root}/{path}"
        try:
            status = os.lstat(full)
            if S_ISLNK(status.st_mode):
                status = os.lstat(self._inside(full))
        except OSError as error:
            raise self._failure(error, path) from None
        self._sync.refuse_links(full.rpartition("/")[0])
        if not S_ISREG(status.st_mode):
            raise self._missing(path)
        return ObjectMeta(
            path=path, size_bytes=status.st_size, modified_ms=status.st_mtime_ns // 1_000_000
        )

    def delete(self, path: str) -> None:
        """Remove an object; removing one that is not there is no error."""
        check_path(path, url=self._url)
        full = f"{self._root}/{path}"
        self._sync.refuse_links(full.rpartition("/")[0])
        try:
            os.unlink(full)  # noqa: PTH108
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return
        except OSError as error:
            raise self._failure(error, path) from error

    def _open(self, path: str) -> tuple[int, int]:
        """A descriptor of the object's file, and its size."""
        check_path(path, url=self._url)
        full = f"{self._root}/{path}"
        try:
            descriptor = os.open(full, _READ)
        except FileNotFoundError:
            raise self._missing(path) from None
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise self._failure(error, path) from None
            descriptor = self._open_link(full, path)
        try:
            self._sync.refuse_links(full.rpartition("/")[0])
            status = os.fstat(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        if S_ISREG(status.st_mode):
            return descriptor, status.st_size
        os.close(descriptor)
        raise self._missing(path)

    def _open_link(self, full: str, path: str) -> int:
        try:
            return os.open(self._inside(full), _READ)
        except OSError as error:
            raise self._failure(error, path) from None

    def _inside(self, link: str) -> str:
        """Where the link leads, if that is inside the root."""
        real = os.path.realpath(link)
        root = os.path.realpath(self._root)
        if not real.startswith(f"{root}/"):
            raise StorageError(
                "A symbolic link leads outside of the store's root; it was not followed.",
                where=link,
                found=f"it leads to {real}",
                remedy="Put a copy of the file in the link's place.",
            )
        return real

    def _names(self, path: str) -> tuple[str, str]:
        """The object's file, and a fresh temporary file beside it."""
        check_path(path, url=self._url)
        folder, slash, name = path.rpartition("/")
        if name[0] == "." and name.endswith(TEMPORARY_SUFFIX):
            raise StorageError(
                "Names of that form are kept for temporary files.",
                where=f"{self._root}/{path}",
                remedy=f'Let the name not begin with "." or not end in "{TEMPORARY_SUFFIX}".',
            )
        fresh = f".{name[:_NAME_IN_TEMPORARY]}.{SYSTEM_CLOCK.new_id()}{TEMPORARY_SUFFIX}"
        return f"{self._root}/{path}", f"{self._root}/{folder}{slash}{fresh}"

    @staticmethod
    def _read_on(descriptor: int, start: int, end: int) -> bytes:
        """Bytes ``start`` to ``end``, or to where the file ends by now."""
        pieces = []
        while start < end:
            piece = os.pread(descriptor, min(end - start, _READ_BYTES_MAX), start)
            if not piece:
                break
            pieces.append(piece)
            start += len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _missing(self, path: str) -> ObjectNotFoundError:
        return ObjectNotFoundError("There is no such object.", where=f"{self._root}/{path}")

    def _failure(self, error: OSError, path: str) -> StorageError:
        if isinstance(error, (FileNotFoundError, NotADirectoryError)):
            return self._missing(path)
        return StorageError(
            "The file system failed, or refused.",
            where=f"{self._root}/{path}",
            found=f"{error.strerror} ({errno.errorcode.get(error.errno or 0, '?')})",
            remedy="Check the permissions of the folder and the health of the disk.",
        )
