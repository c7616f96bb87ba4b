"""What every ObjectStore has to do, as tests: one suite over all of them.

In a test module of yours:

    import pytest
    from streamlake.testing import StoreConformance

    class TestMyStore(StoreConformance):
        @pytest.fixture
        def store(self):
            return MyStore(...)          # empty, for each test anew

A failure is an AssertionError that names the promise. pytest is not imported here.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice

from streamlake.clock import SYSTEM_CLOCK
from streamlake.errors import ObjectExistsError, ObjectNotFoundError, StorageError
from streamlake.storage import ObjectStore, prove_put_if_absent

AWKWARD_PATHS: tuple[str, ...] = (
    "!first",
    "%20",
    "%2F/x",
    "..a/b",
    ".hidden",
    "_delta_log/00000000000000000000.json",
    "_delta_log/00000000000000000001.json",
    "a b",
    "a!b/c",
    "a%20b/c%2Fd",
    "a-b",
    "a.b",
    "a/.x",
    "a/b",
    "a/b-c",
    "a/b.c",
    "a0",
    "a=1/b=%3A%25/c",
    "a\"'`|\\<>^{}[]",
    "a#b",
    "a&b",
    "a+b",
    "a:b",
    "a?b",
    "a~b",
    "day=2024-01-01 00%3A00%3A00/part-0.parquet",
    "é/ü",
    "e\u0301",
    "日本語/ファイル",
    "\ue000private",
    "\ufffdlast of the plane",
    "😀/🚕.parquet",
    "z/" + "deep/" * 20 + "end",
    "z" * 200,
)
"""Paths that stores, URLs and sort orders get wrong."""
UNSAFE_PATHS: tuple[str, ...] = (
    "",
    "/",
    "/etc/passwd",
    "..",
    "../outside",
    "a/../../outside",
    "a/..",
    ".",
    "./a",
    "a/./b",
    "a//b",
    "a/",
    "a\0b",
    "a\ud800b",
)
"""Paths that no store may take."""
_RACERS = 8
_RACES = 20
_LARGE_BYTES = 20_000_000
_TOLD_CHARACTERS = 2000
_THIS_CENTURY_MS = range(946_684_800_000, 4_102_444_800_000)


class StoreConformance:
    """The promises of ObjectStore; subclass it with a fixture ``store``: an empty store."""

    def test_an_object_reads_back_as_it_was_put(self, store: ObjectStore) -> None:
        """Whole, as bytes, whatever they are."""
        data = bytes(range(256)) * 9
        store.put("a/b", data)
        _same(store.get("a/b"), data, "get gives the bytes of the put")
        _same(type(store.get("a/b")), bytes, "get gives bytes")

    def test_an_empty_object_exists(self, store: ObjectStore) -> None:
        """Zero bytes are an object too."""
        store.put("put", b"")
        store.put_if_absent("put_if_absent", b"")
        _same((store.get("put"), store.stat("put").size_bytes), (b"", 0), "an object may be empty")
        _same(_paths(store), ["put", "put_if_absent"], "a listing shows empty objects")
        _refused(ObjectExistsError, store.put_if_absent, "put", b"x")

    def test_a_memoryview_is_put_like_bytes(self, store: ObjectStore) -> None:
        """Of any item size; only its bytes count."""
        store.put("put", memoryview(b"0123456789")[2:5])
        store.put_if_absent("put_if_absent", memoryview(b"01234567").cast("i"))
        _same(store.get("put"), b"234", "a part of a buffer can be put")
        _same(store.get("put_if_absent"), b"01234567", "a buffer of integers is its bytes")

    def test_put_replaces_the_whole_object(self, store: ObjectStore) -> None:
        """Nothing of a longer predecessor shows behind it."""
        store.put("a", b"a long predecessor")
        store.put("a", b"short")
        _same(store.get("a"), b"short", "put replaces the whole object")
        _same(store.stat("a").size_bytes, 5, "stat tells the size of the newest put")

    def test_put_if_absent_takes_a_name_once(self, store: ObjectStore) -> None:
        """However the name was taken; the object stays as it was."""
        store.put_if_absent("log/0", b"first")
        store.put("log/1", b"put")
        for path in ("log/0", "log/1"):
            _refused(ObjectExistsError, store.put_if_absent, path, b"second")
        _same(store.get("log/0"), b"first", "a refused put changes nothing")
        _same(store.get("log/1"), b"put", "a refused put changes nothing")

    def test_a_name_is_free_again_after_delete(self, store: ObjectStore) -> None:
        """A deleted object is gone from every method."""
        store.put("a/b", b"old")
        store.delete("a/b")
        _refused(ObjectNotFoundError, store.get, "a/b")
        _same(_paths(store), [], "a listing does not show what was deleted before")
        store.put_if_absent("a/b", b"new")
        _same(store.get("a/b"), b"new", "a deleted name can be taken again")

    def test_deleting_what_is_missing_is_no_error(self, store: ObjectStore) -> None:
        """Also below folders that never were, and below an object."""
        store.put("object", b"x")
        for path in ("missing", "no/such/folder/a", "object/below"):
            store.delete(path)
        _same(_paths(store), ["object"], "delete removes nothing else")

    def test_what_is_missing_is_told_by_its_own_error(self, store: ObjectStore) -> None:
        """By every method that reads; the part of a path that is no object is missing too."""
        store.put("folder/a", b"x")
        for path in ("missing", "folder", "folder/b", "folder/a/b", "no/such/folder/a"):
            _refused(ObjectNotFoundError, store.get, path)
            _refused(ObjectNotFoundError, store.get_range, path, 0, 1)
            _refused(ObjectNotFoundError, store.get_range, path, 0, 0)
            _refused(ObjectNotFoundError, store.stat, path)

    def test_a_range_ends_where_the_object_ends(self, store: ObjectStore) -> None:
        """Ranges at, over and behind the end, and empty ones, are no errors."""
        store.put("a", b"0123456789")
        store.put("empty", b"")
        for start, length in ((0, 10), (0, 3), (7, 3), (7, 100), (10, 1), (11, 5), (4, 0), (10, 0)):
            expected = b"0123456789"[start : start + length]
            _same(store.get_range("a", start, length), expected, f"range {start}, {length}")
        _same(store.get_range("empty", 0, 5), b"", "a range of an empty object")
        _refused(StorageError, store.get_range, "a", -1, 1)
        _refused(StorageError, store.get_range, "a", 0, -1)

    def test_large_objects_are_whole(self, store: ObjectStore) -> None:
        """Larger than a client sends in one part, or a system call takes."""
        data = bytes(range(250)) * (_LARGE_BYTES // 250)
        store.put("put", data)
        store.put_if_absent("put_if_absent", data)
        for path in ("put", "put_if_absent"):
            _same(store.get(path), data, f"a large object of {path} reads back")
            _same(store.stat(path).size_bytes, len(data), f"size of a large object of {path}")
        tail = store.get_range("put", len(data) - 1000, 1000)
        _same(tail, data[-1000:], "the tail of a large object")

    def test_awkward_names_are_kept(self, store: ObjectStore) -> None:
        """Space, percent, quotes, Unicode: a name finds what was put under it."""
        for path in AWKWARD_PATHS:
            store.put_if_absent(path, path.encode())
        for path in AWKWARD_PATHS:
            _same(store.get(path), path.encode(), f"get of {path!r}")
            _same(store.stat(path).path, path, f"stat of {path!r} names it")
            _same(_paths(store, path)[:1], [path], f"a listing from {path!r} begins with it")
        for path in AWKWARD_PATHS:
            store.delete(path)
        _same(_paths(store), [], "every name can be deleted")

    def test_a_listing_has_the_order_of_the_bytes(self, store: ObjectStore) -> None:
        """Of whole paths: "a-b" before "a/b" before "a0"; folders below are included."""
        for path in reversed(AWKWARD_PATHS):
            store.put(path, b"x")
        _same(
            _paths(store), _in_order(AWKWARD_PATHS), "a listing is in the order of the UTF-8 bytes"
        )

    def test_a_listing_begins_after_any_text(self, store: ObjectStore) -> None:
        """``start_after`` need not be an object, and is left out where it is one."""
        for path in AWKWARD_PATHS:
            store.put(path, b"x")
        for after in (
            *AWKWARD_PATHS,
            "a",
            "a/",
            "a/b/",
            "a/c",
            "b",
            "_delta_log/00000000000000000000",
        ):
            expected = [path for path in _in_order(AWKWARD_PATHS) if path.encode() > after.encode()]
            _same(_paths(store, "", after), expected, f"a listing that starts after {after!r}")

    def test_a_prefix_is_the_beginning_of_a_path(self, store: ObjectStore) -> None:
        """Not only a folder's name; together with ``start_after`` the later bound counts."""
        for path in AWKWARD_PATHS:
            store.put(path, b"x")
        for prefix in (
            "a",
            "a/",
            "a/b",
            "_delta_log/",
            "_delta_log/0000",
            "..",
            "z",
            "日",
            "none/",
        ):
            for after in ("", "a/b", "_delta_log/00000000000000000000.json", "zzz"):
                expected = [
                    path
                    for path in _in_order(AWKWARD_PATHS)
                    if path.startswith(prefix) and path.encode() > after.encode()
                ]
                _same(_paths(store, prefix, after), expected, f"prefix {prefix!r} after {after!r}")

    def test_a_long_listing_is_complete(self, store: ObjectStore) -> None:
        """Longer than a page of any store; each object once; also from its middle."""
        paths = [f"log/{number:020d}.json" for number in range(1100)]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda path: store.put(path, b"x"), paths))
        _same(_paths(store, "log/"), paths, "a listing over several pages")
        _same(_paths(store, "log/", paths[1049]), paths[1050:], "a listing from the middle")

    def test_a_listing_can_be_left_half_way(self, store: ObjectStore) -> None:
        """It is lazy, and independent of others."""
        for path in ("a", "b", "c"):
            store.put(path, b"x")
        first, second = store.list_from(""), store.list_from("")
        _same([entry.path for entry in islice(first, 2)], ["a", "b"], "the first two of a listing")
        _same(next(iter(second)).path, "a", "a second listing begins anew")

    def test_a_listing_tells_size_and_time(self, store: ObjectStore) -> None:
        """The same as stat does."""
        store.put("a", b"1234")
        store.put("b/c", b"")
        listed = list(store.list_from(""))
        _same(listed, [store.stat("a"), store.stat("b/c")], "a listing tells what stat tells")
        _same([entry.size_bytes for entry in listed], [4, 0], "sizes in a listing")

    def test_times_do_not_go_back(self, store: ObjectStore) -> None:
        """The store's own clock: milliseconds since the epoch, in this century."""
        times = []
        for number in range(3):
            store.put(f"a{number}", b"x")
            times.append(store.stat(f"a{number}").modified_ms)
        _same(times, sorted(times), "a later put has no earlier time")
        _same(
            [time for time in times if time not in _THIS_CENTURY_MS],
            [],
            "times are in milliseconds",
        )

    def test_unsafe_paths_are_refused(self, store: ObjectStore) -> None:
        """On reading, writing and deleting; a prefix with such a folder too."""
        for path in UNSAFE_PATHS:
            _refused(StorageError, store.get, path)
            _refused(StorageError, store.get_range, path, 0, 1)
            _refused(StorageError, store.stat, path)
            _refused(StorageError, store.put, path, b"x")
            _refused(StorageError, store.put_if_absent, path, b"x")
            _refused(StorageError, store.delete, path)
        for prefix in ("/", "../", "../x", "a/../b", "a//b", "./a", "a\0"):
            _refused(StorageError, _paths, store, prefix)
        _same(_paths(store), [], "nothing was written")

    def test_of_racing_puts_exactly_one_wins(self, store: ObjectStore) -> None:
        """The winner's bytes are there, whole; all others are told that the name is taken."""
        for race in range(_RACES):
            path = f"race/{race}"
            won = _race(partial(_put_of_racer, store, path))
            _same(len(won), 1, f"winners of race {race}")
            _same(store.get(path), _racer_bytes(won[0]), "the winner's bytes are there")

    def test_readers_see_an_object_whole_or_not_at_all(self, store: ObjectStore) -> None:
        """While it is put for the first time, and while it is replaced."""
        contents = [_racer_bytes(racer) for racer in range(4)]
        done = threading.Event()

        def write() -> None:
            for number in range(40):
                store.put("object", contents[number % len(contents)])
            done.set()

        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(write)
            while not done.is_set() and not writing.done():
                _same(_torn(store, "object", contents), None, "an object is seen whole")
            writing.result()

    def test_a_listing_shows_what_was_put_before_it(self, store: ObjectStore) -> None:
        """At once, from every thread."""
        for number in range(20):
            store.put_if_absent(f"log/{number:04d}", b"x")
            _same(len(_paths(store, "log/")), number + 1, "a listing shows every answered put")

    def test_a_pickled_store_sees_the_same_objects(self, store: ObjectStore) -> None:
        """Stores travel to other processes by their configuration."""
        store.put("a", b"here")
        copy: ObjectStore = pickle.loads(pickle.dumps(store))  # noqa: S301 - pickled a moment ago
        _same(copy.get("a"), b"here", "an unpickled store reads what the store wrote")
        _same(copy.url, store.url, "an unpickled store has the same URL")

    def test_the_store_proves_put_if_absent(self, store: ObjectStore) -> None:
        """The probe that guards every table passes, and cleans up."""
        prove_put_if_absent(store, SYSTEM_CLOCK)
        _same(_paths(store), [], "the probe leaves nothing behind")

    def test_the_url_names_the_root(self, store: ObjectStore) -> None:
        """With a scheme and without a slash at the end, so that "url/path" reads well."""
        _same(store.url.partition("://")[1], "://", f"a URL has a scheme: {store.url}")
        _same(store.url, store.url.rstrip("/"), "a URL does not end in a slash")


def _same(found: object, expected: object, promise: str) -> None:
    if found != expected:
        told = f"  expected {_cut(expected)}\n  found    {_cut(found)}"
        raise AssertionError(f"{promise}:\n{told}")


def _cut(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _TOLD_CHARACTERS else f"{text[:_TOLD_CHARACTERS]}... ({len(text)})"


def _refused(kind: type[StorageError], ask: Callable[..., object], *arguments: object) -> None:
    try:
        answer = ask(*arguments)
    except kind:
        return
    raise AssertionError(f"{kind.__name__} was due, found the answer {_cut(answer)}")


def _paths(store: ObjectStore, prefix: str = "", start_after: str = "") -> list[str]:
    return [entry.path for entry in store.list_from(prefix, start_after)]


def _in_order(paths: Iterable[str]) -> list[str]:
    return sorted(paths, key=str.encode)


def _racer_bytes(racer: int) -> bytes:
    return bytes([racer]) * (1000 + 50_000 * racer)


def _put_of_racer(store: ObjectStore, path: str, racer: int) -> None:
    store.put_if_absent(path, _racer_bytes(racer))


def _race(put: Callable[[int], None]) -> Sequence[int]:
    """Let racers put at the same moment; gives those that won."""
    start = threading.Barrier(_RACERS)

    def run(racer: int) -> bool:
        start.wait()
        try:
            put(racer)
        except ObjectExistsError:
            return False
        return True

    with ThreadPoolExecutor(_RACERS) as pool:
        won = list(pool.map(run, range(_RACERS)))
    return [racer for racer, first in enumerate(won) if first]


def _torn(store: ObjectStore, path: str, contents: Sequence[bytes]) -> bytes | None:
    """What is there now, unless it is nothing or one of ``contents``."""
    try:
        found = store.get(path)
    except ObjectNotFoundError:
        return None
    return None if found in contents else found
