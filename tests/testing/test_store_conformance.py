"""The suite itself: stores that break a promise fail it, by name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from streamlake.errors import ConditionalPutUnsupportedError, ObjectExistsError
from streamlake.storage import MemoryStore, ObjectMeta
from streamlake.testing import StoreConformance


class LastWins(MemoryStore):
    def put_if_absent(self, path: str, data: bytes | memoryview) -> None:
        self.put(path, data)


class LooksBeforeItPuts(MemoryStore):
    """The check and the put are two steps, as with a rename."""

    def put_if_absent(self, path: str, data: bytes | memoryview) -> None:
        if any(True for _ in self.list_from(path)):
            raise ObjectExistsError("The name is taken.")
        self._clock.sleep(0.001)
        self.put(path, data)


class ListsByLength(MemoryStore):
    def list_from(self, prefix: str, start_after: str = "") -> Iterator[ObjectMeta]:
        return iter(sorted(super().list_from(prefix, start_after), key=lambda meta: len(meta.path)))


class IncludesTheBound(MemoryStore):
    def list_from(self, prefix: str, start_after: str = "") -> Iterator[ObjectMeta]:
        listed = super().list_from(prefix)
        return (meta for meta in listed if meta.path >= start_after)


class TakesAnyPath(MemoryStore):
    def delete(self, path: str) -> None:
        self._objects.pop(path, None)


class ShortReads(MemoryStore):
    def get(self, path: str) -> bytes:
        return super().get(path)[:1_000_000]


@pytest.mark.parametrize(
    ("kind", "test"),
    [
        (LastWins, "test_put_if_absent_takes_a_name_once"),
        (LastWins, "test_the_store_proves_put_if_absent"),
        (LastWins, "test_of_racing_puts_exactly_one_wins"),
        (LooksBeforeItPuts, "test_of_racing_puts_exactly_one_wins"),
        (ListsByLength, "test_a_listing_has_the_order_of_the_bytes"),
        (IncludesTheBound, "test_a_listing_begins_after_any_text"),
        (TakesAnyPath, "test_unsafe_paths_are_refused"),
        (ShortReads, "test_large_objects_are_whole"),
    ],
)
def test_a_store_that_breaks_a_promise_fails_its_test(kind, test):
    run = getattr(StoreConformance(), test)
    run(MemoryStore())
    with pytest.raises((AssertionError, ConditionalPutUnsupportedError)):
        run(kind())
