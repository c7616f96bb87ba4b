"""A store that fails as object stores fail, where a plan says so."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

from streamlake.errors import (
    InvalidInputError,
    ObjectExistsError,
    StorageError,
    WriteRefusedError,
)
from streamlake.storage import ObjectMeta, ObjectStore

_T = TypeVar("_T")
FaultKind: TypeAlias = Literal[
    "lost_after", "lost_before", "conflict", "refused", "late", "stale", "duplicated"
]
"""How a request goes wrong; see Fault."""
Method: TypeAlias = Literal[
    "get", "get_range", "put", "put_if_absent", "list_from", "stat", "delete"
]
_WRITES = frozenset({"put", "put_if_absent"})
_METHODS_OF: dict[str, frozenset[str]] = {
    "conflict": _WRITES,
    "refused": _WRITES,
    "late": _WRITES,
    "stale": frozenset({"list_from"}),
    "duplicated": frozenset({"list_from"}),
}
"""The methods of the kinds that do not fit every method."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What goes wrong, and when: at requests ``nth`` to ``nth + times - 1`` of those that match."""

    kind: FaultKind
    """One of

    - ``lost_before``: raises StorageError; the request was not carried out. - ``lost_after``: is
    carried out, then raises StorageError. A put_if_absent that is refused says so.
      A listing breaks off half way.
    - ``conflict``: raises a StorageError that speaks of a 409; nothing was written. - ``refused``:
    raises WriteRefusedError; nothing was written. - ``late``: raises StorageError; the write lands
    later, see ``after`` and FaultyStore.land_pending. - ``stale``: the listing leaves out the
    ``entries`` objects that were written last. - ``duplicated``: the listing gives every entry
    twice.
    """
    method: Method = "put_if_absent"
    path: str = ""
    """Matches the requests whose path (of a listing: prefix) holds this text; all if empty."""
    nth: int = 1
    """The first of the matching requests that goes wrong; 1 is the first one."""
    times: int | None = 1
    """How many in a row go wrong; None: all from there on."""
    after: int | None = None
    """Of ``late``: lands before that many-th later request of any kind; None: when told to."""
    entries: int = 1
    """Of ``stale``: how many entries are left out."""

    def __post_init__(self) -> None:
        if self.method not in _METHODS_OF.get(self.kind, {self.method}):
            raise InvalidInputError(
                f"A fault of the kind {self.kind!r} can't happen to {self.method!r}.",
                remedy=f"Give one of {', '.join(sorted(_METHODS_OF[self.kind]))}.",
            )
        if self.nth < 1 or (self.times is not None and self.times < 1) or self.entries < 0:
            raise InvalidInputError("A fault counts from 1.", found=repr(self))


@dataclass(slots=True)
class _Pending:
    """A write that was given up on and is still under way."""

    method: Method
    path: str
    data: bytes
    countdown: int | None


class FaultyStore:
    """Passes requests on to another store, and lets those go wrong that the plan names.

    With an empty plan it is as good as the store inside. Safe between threads: each request is
    counted in one step, so that of many racing puts exactly the nth goes wrong. A request that
    several faults match meets the first of them; the others count it too. Unpickled, the plan
    begins anew.
    """

    def __init__(self, inner: ObjectStore, faults: Iterable[Fault] = ()) -> None:
        self.inner = inner
        """The store that does the work."""
        self.faults = tuple(faults)
        """The plan."""
        self.fired: list[tuple[FaultKind, str, str]] = []
        """(kind, method, path) of every request that went wrong, in order."""
        self._seen = [0] * len(self.faults)
        self._pending: list[_Pending] = []
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[FaultyStore], tuple[ObjectStore, tuple[Fault, ...]]]:
        return FaultyStore, (self.inner, self.faults)

    @property
    def url(self) -> str:
        """The URL of the store inside."""
        return self.inner.url

    @property
    def pending(self) -> tuple[str, ...]:
        """Paths of the late writes that have not landed yet, oldest first."""
        with self._lock:
            return tuple(write.path for write in self._pending)

    def land_pending(self) -> int:
        """Carry out the late writes; says how many. One whose name is taken by now is dropped."""
        with self._lock:
            landing, self._pending = self._pending, []
        self._land(landing)
        return len(landing)

    def get(self, path: str) -> bytes:
        """The whole object."""
        return self._ask("get", path, lambda: self.inner.get(path))

    def get_range(self, path: str, start: int, length: int) -> bytes:
        """``length`` bytes from byte ``start``; fewer where the object ends before."""
        return self._ask("get_range", path, lambda: self.inner.get_range(path, start, length))

    def put(self, path: str, data: bytes | memoryview) -> None:
        """Write, or replace, an object."""
        self._write("put", path, data)

    def put_if_absent(self, path: str, data: bytes | memoryview) -> None:
        """Write an object that must not exist yet."""
        self._write("put_if_absent", path, data)

    def list_from(self, prefix: str, start_after: str = "") -> Iterator[ObjectMeta]:
        """Objects whose path begins with ``prefix`` and sorts after ``start_after``."""
        fault = self._meet("list_from", prefix)
        if fault is not None and fault.kind == "lost_before":
            raise self._lost("list_from", prefix)
        listed = self.inner.list_from(prefix, start_after)
        if fault is None:
            return listed
        if fault.kind == "stale":
            return _without_newest(listed, fault.entries)
        if fault.kind == "duplicated":
            return (entry for entry in listed for _ in range(2))
        return _torn(listed, self._lost("list_from", prefix))

    def stat(self, path: str) -> ObjectMeta:
        """Size and time of one object."""
        return self._ask("stat", path, lambda: self.inner.stat(path))

    def delete(self, path: str) -> None:
        """Remove an object."""
        self._ask("delete", path, lambda: self.inner.delete(path))

    def _write(self, method: Method, path: str, data: bytes | memoryview) -> None:
        fault = self._meet(method, path)
        if fault is None or fault.kind == "lost_after":
            self._carry_out(method, path, data)
        if fault is not None:
            raise self._write_failure(fault, path, data)

    def _write_failure(self, fault: Fault, path: str, data: bytes | memoryview) -> StorageError:
        where = self._where(path)
        if fault.kind == "refused":
            return WriteRefusedError("The store refused the write (planned).", where=where)
        if fault.kind == "conflict":
            return StorageError(
                "A conflicting operation is under way (planned).",
                where=where,
                found="409 ConditionalRequestConflict",
            )
        if fault.kind == "late":
            with self._lock:
                self._pending.append(_Pending(fault.method, path, bytes(data), fault.after))
        return self._lost(fault.method, path)

    def _carry_out(self, method: Method, path: str, data: bytes | memoryview) -> None:
        if method == "put":
            self.inner.put(path, data)
        else:
            self.inner.put_if_absent(path, data)

    def _ask(self, method: Method, path: str, ask: Callable[[], _T]) -> _T:
        fault = self._meet(method, path)
        if fault is None:
            return ask()
        if fault.kind == "lost_after":
            ask()
        raise self._lost(method, path)

    def _meet(self, method: Method, path: str) -> Fault | None:
        """Count a request; gives the fault that it meets."""
        met = None
        with self._lock:
            landing = [write for write in self._pending if _counted_down(write)]
            self._pending = [write for write in self._pending if write not in landing]
            for index, fault in enumerate(self.faults):
                if fault.method != method or fault.path not in path:
                    continue
                self._seen[index] += 1
                if met is None and _due(fault, self._seen[index]):
                    met = fault
            if met is not None:
                self.fired.append((met.kind, method, path))
        self._land(landing)
        return met

    def _land(self, writes: Iterable[_Pending]) -> None:
        for write in writes:
            with contextlib.suppress(ObjectExistsError):
                self._carry_out(write.method, write.path, write.data)

    def _lost(self, method: str, path: str) -> StorageError:
        return StorageError(
            f"The answer to a {method} was lost (planned).",
            where=self._where(path),
            found="time-out",
            remedy="The outcome is unknown: look before trying again.",
        )

    def _where(self, path: str) -> str:
        return f"{self.url}/{path}"


def _due(fault: Fault, seen: int) -> bool:
    return seen >= fault.nth and (fault.times is None or seen < fault.nth + fault.times)


def _counted_down(write: _Pending) -> bool:
    if write.countdown is None:
        return False
    write.countdown -= 1
    return write.countdown <= 0


def _without_newest(listed: Iterator[ObjectMeta], entries: int) -> Iterator[ObjectMeta]:
    found = list(listed)
    newest = sorted(found, key=lambda entry: (entry.modified_ms, entry.path))
    hidden = {entry.path for entry in newest[len(newest) - entries :]} if entries else set()
    return (entry for entry in found if entry.path not in hidden)


def _torn(listed: Iterator[ObjectMeta], error: StorageError) -> Iterator[ObjectMeta]:
    """The first half of a listing, then the error."""
    found = list(listed)
    yield from found[: len(found) // 2]
    raise error
