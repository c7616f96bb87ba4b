"""Local disk: names, links, folders that come and go, listings."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlake.errors import (
    InvalidInputError,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
    WriteRefusedError,
)
from streamlake.storage import LocalStore, MemoryStore


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture
def store(root: Path) -> LocalStore:
    return LocalStore(root)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder beside the root, whose name begins as the root's does, with a file in it."""
    folder = tmp_path / "root-of-another"
    folder.mkdir()
    (folder / "secret").write_bytes(b"not ours")
    return folder


def paths(store: LocalStore | MemoryStore, prefix: str = "", start_after: str = "") -> list[str]:
    return [meta.path for meta in store.list_from(prefix, start_after)]


def hidden_files(root: Path) -> list[str]:
    return [path.name for path in root.rglob(".*")]


def test_nothing_is_created_before_the_first_put(store, root):
    with pytest.raises(ObjectNotFoundError):
        store.get("a")
    assert paths(store) == []
    assert not root.exists()


def test_objects_are_plain_files_and_nothing_else_stays(store, root):
    store.put("a/b", b"1")
    store.put("a/b", b"2")
    store.put_if_absent("a/c", b"3")
    with pytest.raises(ObjectExistsError):
        store.put_if_absent("a/c", b"4")
    files = {str(file.relative_to(root)): file.read_bytes() for file in root.rglob("*")
             if file.is_file()}  # fmt: skip
    assert files == {"a/b": b"2", "a/c": b"3"}


def test_files_have_the_rights_that_the_umask_leaves(store, root):
    before = os.umask(0o027)
    try:
        store.put("a", b"x")
        store.put_if_absent("b", b"x")
    finally:
        os.umask(before)
    assert [(root / name).stat().st_mode & 0o777 for name in "ab"] == [0o640, 0o640]


def test_a_folder_removed_under_the_store_is_made_again(store, root):
    store.put("log/a", b"x")
    (root / "log" / "a").unlink()
    (root / "log").rmdir()
    root.rmdir()
    store.put_if_absent("log/a", b"y")
    assert store.get("log/a") == b"y"


def test_folders_made_and_removed_by_others_meanwhile_stop_no_put(store, root):
    done = threading.Event()

    def remove() -> None:
        while not done.is_set():
            try:
                (root / "log").rmdir()
            except OSError:
                continue

    remover = threading.Thread(target=remove)
    remover.start()
    try:
        outcomes = [put_or_refused(store, f"log/{number}") for number in range(50)]
    finally:
        done.set()
        remover.join()
    assert paths(store) == sorted(f"log/{n}" for n, put in enumerate(outcomes) if put)
    assert hidden_files(root) == []


def put_or_refused(store: LocalStore, path: str) -> bool:
    try:
        store.put_if_absent(path, b"x")
    except WriteRefusedError:
        return False
    return True


def test_what_a_killed_writer_left_is_not_listed(store, root):
    store.put("log/0", b"x")
    (root / "log" / ".1.3f2a.tmp").write_bytes(b"half")
    assert paths(store) == ["log/0"]


@pytest.mark.parametrize("method", ["put", "put_if_absent"])
def test_names_of_temporary_files_are_refused(store, root, method):
    with pytest.raises(StorageError, match="temporary"):
        getattr(store, method)("log/.x.tmp", b"x")
    assert not root.exists()


def test_a_name_as_long_as_the_file_system_allows_can_be_written(store):
    name = "é" * 127
    store.put_if_absent(name, b"x")
    assert paths(store) == [name]


def test_a_longer_name_is_refused_for_certain(store, root):
    with pytest.raises(WriteRefusedError, match="shorter path"):
        store.put_if_absent("n" * 300, b"x")
    assert hidden_files(root) == []


def test_a_file_in_place_of_a_folder_refuses_the_write(store):
    store.put("a", b"x")
    for method in (store.put, store.put_if_absent):
        with pytest.raises(WriteRefusedError, match="file stands where a folder"):
            method("a/b", b"x")


def test_a_folder_in_place_of_an_object_is_never_overwritten(store, root):
    store.put("a/b", b"x")
    with pytest.raises(WriteRefusedError):
        store.put("a", b"x")
    with pytest.raises(ObjectExistsError):
        store.put_if_absent("a", b"x")
    assert paths(store) == ["a/b"]
    assert hidden_files(root) == []


def test_a_link_to_a_file_outside_is_never_read(store, root, outside):
    root.mkdir()
    (root / "link").symlink_to(outside / "secret")
    for ask in (store.get, store.stat, lambda path: store.get_range(path, 0, 1)):
        with pytest.raises(StorageError, match="outside") as raised:
            ask("link")
        assert not isinstance(raised.value, ObjectNotFoundError)


def test_a_folder_that_links_outside_is_used_by_no_method(store, root, outside):
    root.mkdir()
    (root / "day=1").symlink_to(outside)
    for method in (store.get, store.stat, store.delete):
        with pytest.raises(StorageError, match="symbolic link"):
            method("day=1/secret")
    for put in (store.put, store.put_if_absent):
        with pytest.raises(StorageError, match="symbolic link"):
            put("day=1/new", b"x")
    with pytest.raises(StorageError, match="symbolic link"):
        store.list_from("day=1/")
    assert [file.name for file in outside.iterdir()] == ["secret"]


def test_a_folder_swapped_for_a_link_after_its_first_use_is_noticed(store, root, outside):
    store.put("log/secret", b"ours")
    (root / "log").rename(root / "moved")
    (root / "log").symlink_to(outside)
    with pytest.raises(StorageError, match="symbolic link"):
        store.get("log/secret")
    with pytest.raises(StorageError, match="symbolic link"):
        store.put("log/new", b"x")


def test_putting_and_deleting_replace_a_link_and_not_what_it_leads_to(store, root, outside):
    root.mkdir()
    for name in ("put", "delete", "absent"):
        (root / name).symlink_to(outside / "secret")
    store.put("put", b"ours")
    store.delete("delete")
    with pytest.raises(ObjectExistsError):
        store.put_if_absent("absent", b"x")
    assert store.get("put") == b"ours"
    assert (outside / "secret").read_bytes() == b"not ours"


def test_a_link_to_a_file_inside_is_read(store, root):
    store.put("real/a", b"12345")
    (root / "link").symlink_to("real/a")
    (root / "dangling").symlink_to("nowhere")
    assert store.get("link") == b"12345"
    assert [(meta.path, meta.size_bytes) for meta in store.list_from("")] == [
        ("link", 5),
        ("real/a", 5),
    ]
    with pytest.raises(ObjectNotFoundError):
        store.get("dangling")


def test_a_loop_of_links_ends_no_listing_and_no_read(store, root):
    store.put("a/b", b"x")
    (root / "a" / "up").symlink_to(root)
    (root / "self").symlink_to("self")
    assert paths(store) == ["a/b"]
    with pytest.raises(StorageError):
        store.get("self")


def test_a_pipe_is_no_object_and_blocks_nothing(store, root):
    root.mkdir()
    os.mkfifo(root / "pipe")
    with pytest.raises(ObjectNotFoundError):
        store.get("pipe")
    assert paths(store) == []


def test_an_object_that_vanishes_during_a_listing_is_passed_over(store):
    for name in "abc":
        store.put(name, b"x")
    listing = store.list_from("")
    assert next(listing).path == "a"
    store.delete("b")
    assert [meta.path for meta in listing] == ["c"]


def test_a_folder_that_vanishes_during_a_listing_is_passed_over(store, root):
    for path in ("a", "b/c", "d"):
        store.put(path, b"x")
    listing = store.list_from("")
    assert next(listing).path == "a"
    store.delete("b/c")
    (root / "b").rmdir()
    assert [meta.path for meta in listing] == ["d"]


def test_a_listing_reads_no_folder_that_ends_before_its_bound(store, root):
    for path in ("day=1/a", "day=2/a", "day=3/a"):
        store.put(path, b"x")
    os.utime(root / "day=1", (0, 0))
    assert paths(store, "", "day=2/a") == ["day=3/a"]
    assert (root / "day=1").stat().st_atime == 0
    assert len(paths(store)) == 3
    if (root / "day=1").stat().st_atime == 0:
        pytest.skip("this file system does not note when a folder is read")


def test_a_file_name_that_is_no_utf_8_is_listed_read_and_deleted(store, root):
    root.mkdir()
    Path(os.fsdecode(os.fsencode(root) + b"/\xff\xfe")).write_bytes(b"x")
    [path] = paths(store)
    assert store.get(path) == b"x"
    store.delete(path)
    assert paths(store) == []


def test_folders_nested_deeper_than_python_recurses_are_listed(store, root):
    path = "d/" * 1500 + "end"
    try:
        store.put(path, b"x")
        assert paths(store) == [path]
    finally:
        subprocess.run(["rm", "-rf", root], check=True)  # pytest's own removal recurses


NAMES = st.lists(
    st.lists(st.text("ab.-/!~é\U0001f600\uffff ", min_size=1, max_size=3), min_size=1, max_size=3)
    .map("/".join)
    .filter(lambda path: all(part not in ("", ".", "..") for part in path.split("/"))),
    max_size=8,
)


@given(names=NAMES, prefix=st.text("ab./é", max_size=3), after=st.text("ab.-/é~", max_size=4))
def test_listings_of_disk_and_memory_agree(tmp_path_factory, names, prefix, after):
    disk, memory = LocalStore(tmp_path_factory.mktemp("t")), MemoryStore()
    for name in names:
        if put_or_refused_by_a_folder(disk, name):
            memory.put(name, b"x")
    assert listed(disk, prefix, after) == listed(memory, prefix, after)


def put_or_refused_by_a_folder(store: LocalStore, path: str) -> bool:
    try:
        store.put(path, b"x")
    except WriteRefusedError:
        return False
    return True


def listed(store: LocalStore | MemoryStore, prefix: str, after: str) -> list[str] | str:
    try:
        return paths(store, prefix, after)
    except StorageError as error:
        return error.what


@pytest.mark.parametrize("root", ["", "/", "a\0b", "//"])
def test_a_root_that_is_no_folder_of_its_own_is_refused(root):
    with pytest.raises(InvalidInputError, match="folder"):
        LocalStore(root)


def test_a_relative_root_is_the_same_folder_after_a_change_of_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = LocalStore("table")
    monkeypatch.chdir("/")
    store.put("a", b"x")
    assert (tmp_path / "table" / "a").read_bytes() == b"x"
