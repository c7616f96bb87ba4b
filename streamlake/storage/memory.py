"""An object store in the memory of this process: for tests, demos and short-lived tables."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from weakref import WeakValueDictionary

from streamlake.clock import SYSTEM_CLOCK, Clock
from streamlake.errors import (
    InvalidInputError,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
)
from streamlake.storage.paths import check_path, check_prefix, check_range, path_key
from streamlake.storage.store import ObjectMeta

_LISTING_CHUNK = 1000
"""How many names a listing takes at a time; what is put meanwhile behind them is seen."""


class MemoryStore:
    """Objects in a dictionary; they live as long as the store does.

    Every promise of ObjectStore, within one process. A pickled store finds itself again in the
    process that made it; in another one unpickling is a StorageError, for the objects are not
    there. After a fork each process goes on with a copy of its own.
    """

    def __init__(self, *, name: str = "", clock: Clock = SYSTEM_CLOCK) -> None:
        """An empty store.

        Args:
            name: Its name in the URL; a fresh one if empty. See ``memory_store`` for stores shared
                by name.
            clock: Gives the time of each put.

        Raises:
            InvalidInputError: A store of that name lives in this process.
        """
        self._name = name or clock.new_id()
        self._clock = clock
        self._lock = threading.Lock()
        self._objects: dict[str, tuple[bytes, int]] = {}
        self._order: list[bytes] = []
        with _registry_lock:
            if self._name in _alive:
                raise InvalidInputError(
                    "There is a memory store of that name in this process.",
                    where=self.url,
                    remedy="Open it by its URL, or take another name.",
                )
            _alive[self._name] = self

    def __repr__(self) -> str:
        return f"MemoryStore(name={self._name!r})"

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return _revive, (self._name,)

    @property
    def url(self) -> str:
        """``memory://<name>``."""
        return f"memory://{self._name}"

    def get(self, path: str) -> bytes:
        """The whole object."""
        return self._find(path)[0]

    def get_range(self, path: str, start: int, length: int) -> bytes:
        """``length`` bytes from byte ``start``; fewer where the object ends before."""
        check_range(start, length, path=path)
        return self._find(path)[0][start : start + length]

    def put(self, path: str, data: bytes | memoryview) -> None:
        """Write, or replace, an object."""
        self._put(path, bytes(data), replace=True)

    def put_if_absent(self, path: str, data: bytes | memoryview) -> None:
        """Write an object that must not exist yet.

        Raises:
            ObjectExistsError: The name is taken.
        """
        self._put(path, bytes(data), replace=False)

    def list_from(self, prefix: str, start_after: str = "") -> Iterator[ObjectMeta]:
        """Objects that begin with ``prefix`` and sort after ``start_after``, in byte order."""
        check_prefix(prefix, start_after, url=self.url)
        return self._list(path_key(prefix), path_key(start_after))

    def stat(self, path: str) -> ObjectMeta:
        """Size and time of one object."""
        data, modified_ms = self._find(path)
        return ObjectMeta(path=path, size_bytes=len(data), modified_ms=modified_ms)

    def delete(self, path: str) -> None:
        """Remove an object; removing one that is not there is no error."""
        check_path(path, url=self.url)
        with self._lock:
            if self._objects.pop(path, None) is not None:
                del self._order[bisect_left(self._order, path_key(path))]

    def _put(self, path: str, data: bytes, *, replace: bool) -> None:
        check_path(path, url=self.url)
        now_ms = self._clock.now_ms()
        with self._lock:
            taken = path in self._objects
            if taken and not replace:
                raise ObjectExistsError("The name is taken.", where=f"{self.url}/{path}")
            self._objects[path] = (data, now_ms)
            if not taken:
                insort(self._order, path_key(path))

    def _find(self, path: str) -> tuple[bytes, int]:
        found = self._objects.get(path)
        if found is None:
            check_path(path, url=self.url)
            raise ObjectNotFoundError("There is no such object.", where=f"{self.url}/{path}")
        return found

    def _list(self, prefix: bytes, after: bytes) -> Iterator[ObjectMeta]:
        while chunk := self._chunk(prefix, after):
            yield from chunk
            after = path_key(chunk[-1].path)

    def _chunk(self, prefix: bytes, after: bytes) -> list[ObjectMeta]:
        with self._lock:
            keys = self._order
            start = bisect_left(keys, prefix) if after < prefix else bisect_right(keys, after)
            return [
                self.stat(key.decode("utf-8", "surrogateescape"))
                for key in keys[start : start + _LISTING_CHUNK]
                if key.startswith(prefix)
            ]


def memory_store(name: str) -> MemoryStore:
    """The store of that name, made at the first call; it lives as long as the process."""
    with _naming_lock:
        if name not in _kept:
            _kept[name] = _alive.get(name) or MemoryStore(name=name)
        return _kept[name]


def _revive(name: str) -> MemoryStore:
    found = _alive.get(name)
    if found is None:
        raise StorageError(
            "A memory store can't be handed to another process.",
            where=f"memory://{name}",
            found="no store of that name lives in this process",
            remedy="Use a folder or an object store for a table that several processes share.",
        )
    return found


_naming_lock = threading.Lock()
_registry_lock = threading.Lock()
_alive: WeakValueDictionary[str, MemoryStore] = WeakValueDictionary()
_kept: dict[str, MemoryStore] = {}
