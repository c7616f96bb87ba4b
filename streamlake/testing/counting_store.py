"""A store that notes every request."""

from __future__ import annotations

from collections.abc import Iterator

from streamlake.storage import ObjectMeta, ObjectStore


class CountingStore:
    """Passes everything on to another store and remembers what it was asked, in order.

    Equal to the store inside in every answer, its URL included.
    """

    def __init__(self, inner: ObjectStore) -> None:
        self.inner = inner
        """The store that does the work."""
        self.requests: list[tuple[str, str]] = []
        """(method, path) of each request, also of those that failed; of a listing, its prefix.
        Clear it at will."""

    @property
    def url(self) -> str:
        """The URL of the store inside."""
        return self.inner.url

    def count(self, method: str) -> int:
        """How many requests of one method were made."""
        return sum(1 for made, _ in self.requests if made == method)

    def get(self, path: str) -> bytes:
        """Counted, passed on."""
        self.requests.append(("get", path))
        return self.inner.get(path)

    def get_range(self, path: str, start: int, length: int) -> bytes:
        """Counted, passed on."""
        self.requests.append(("get_range", path))
        return self.inner.get_range(path, start, length)

    def put(self, path: str, data: bytes | memoryview) -> None:
        """Counted, passed on."""
        self.requests.append(("put", path))
        self.inner.put(path, data)

    def put_if_absent(self, path: str, data: bytes | memoryview) -> None:
        """Counted, passed on."""
        self.requests.append(("put_if_absent", path))
        self.inner.put_if_absent(path, data)

    def list_from(self, prefix: str, start_after: str = "") -> Iterator[ObjectMeta]:
        """Counted once, when it is called; passed on."""
        self.requests.append(("list_from", prefix))
        return self.inner.list_from(prefix, start_after)

    def stat(self, path: str) -> ObjectMeta:
        """Counted, passed on."""
        self.requests.append(("stat", path))
        return self.inner.stat(path)

    def delete(self, path: str) -> None:
        """Counted, passed on."""
        self.requests.append(("delete", path))
        self.inner.delete(path)
