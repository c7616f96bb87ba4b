"""Local disk when it is full, closed, raced for, or when the writer is killed."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import pytest

from storage.processes import DEADLINE_S, FORK, answer_of, run_mounted, start
from streamlake.errors import ObjectExistsError
from streamlake.storage import LocalStore

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
NOBODY = 65534
RACING_PROCESSES = 16
RACES = 60


def files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


@pytest.mark.parametrize("method", ["put", "put_if_absent"])
def test_a_limit_on_file_size_refuses_the_write_and_leaves_nothing(tmp_path, method):
    store = LocalStore(tmp_path)

    def act() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        getattr(store, method)("log/0", b"x" * 1001)

    answer = answer_of(act)
    assert answer.startswith("WriteRefusedError")
    assert "EFBIG" in answer
    assert "ulimit" in answer
    assert files(tmp_path) == []


def test_a_limit_on_open_files_refuses_the_write(tmp_path):
    store = LocalStore(tmp_path)
    store.put("log/0", b"x")

    def act() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
        store.put_if_absent("log/1", b"x")

    assert answer_of(act).startswith("WriteRefusedError")
    assert files(tmp_path) == ["log/0"]


FULL_DISK = """
    import os, sys
    from streamlake.errors import WriteRefusedError
    from streamlake.storage import LocalStore
    store = LocalStore(sys.argv[1])
    store.put("log/0", b"old")
    for put, path in ((store.put, "log/0"), (store.put_if_absent, "log/1")):
        try:
            put(path, bytes(1_000_000))
        except WriteRefusedError as error:
            print(error.found, "|", error.remedy)
    print(sorted(os.listdir(os.path.join(sys.argv[1], "log"))), store.get("log/0"))
    store.put_if_absent("log/1", b"small")
    print(store.get("log/1"))
"""


def test_a_full_disk_refuses_the_write_keeps_the_old_object_and_leaves_nothing(tmp_path):
    told = run_mounted("-t tmpfs -o size=128k none", tmp_path / "disk", FULL_DISK)
    refused = "No space left on device (ENOSPC) | Free space on the disk, then try again."
    assert told.splitlines() == [refused, refused, "['0'] b'old'", "b'small'"]


READ_ONLY_DISK = """
    import os, subprocess, sys
    from streamlake.errors import WriteRefusedError
    from streamlake.storage import LocalStore
    store = LocalStore(sys.argv[1])
    store.put("log/0", b"old")
    subprocess.run(["mount", "-o", "remount,ro", sys.argv[1]], check=True)
    for put, path in ((store.put, "log/0"), (store.put_if_absent, "new/1")):
        try:
            put(path, b"new")
        except WriteRefusedError as error:
            print(error.remedy)
    print(store.get("log/0"))
"""


def test_a_read_only_disk_refuses_the_write(tmp_path):
    told = run_mounted("-t tmpfs none", tmp_path / "disk", READ_ONLY_DISK)
    remedy = "Mount the file system for writing."
    assert told.splitlines() == [remedy, remedy, "b'old'"]


WITHOUT_HARD_LINKS = """
    import os, sys
    from streamlake.errors import ConditionalPutUnsupportedError
    from streamlake.storage.local_writing import publish_by_link
    staged, target = (os.path.join(sys.argv[1], name) for name in ("staged", "target"))
    os.close(os.open(staged, os.O_WRONLY | os.O_CREAT))
    try:
        publish_by_link(staged, target)
    except ConditionalPutUnsupportedError as error:
        print(error.remedy)
    print(os.listdir(sys.argv[1]))
"""


def test_a_file_system_without_hard_links_is_told_as_such(tmp_path):
    told = run_mounted("-t mqueue none", tmp_path / "queues", WITHOUT_HARD_LINKS)
    assert "single_writer=True" in told
    assert told.splitlines()[-1] == "[]"


def as_nobody(act: Callable[[], object]) -> Callable[[], object]:
    """The same, without the rights of root."""

    def run() -> None:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
        act()

    return run


@pytest.fixture
def passable() -> Iterator[Path]:
    """A folder that any user may pass through and nobody may list; in it "root", open to all."""
    with TemporaryDirectory() as name:
        (Path(name) / "root").mkdir()
        (Path(name) / "root").chmod(0o777)
        Path(name).chmod(0o311)
        yield Path(name)
        Path(name).chmod(0o700)


def test_a_root_in_a_folder_that_may_not_be_listed_can_be_written(passable):
    store = LocalStore(passable / "root")
    assert answer_of(as_nobody(lambda: store.put_if_absent("log/0", b"x"))) == "written"
    assert store.get("log/0") == b"x"


@pytest.mark.parametrize("method", ["put", "put_if_absent"])
def test_a_folder_without_the_right_to_write_refuses_for_certain(passable, method):
    store = LocalStore(passable / "root")
    (passable / "root").chmod(0o555)
    answer = answer_of(as_nobody(lambda: getattr(store, method)("0", b"x")))
    assert answer.startswith("WriteRefusedError")
    assert "right to write" in answer


def test_what_may_not_be_read_is_not_called_missing(passable):
    store = LocalStore(passable / "root")
    store.put("log/0", b"x")
    (passable / "root" / "log").chmod(0o000)
    for ask in (lambda: store.get("log/0"), lambda: list(store.list_from("log/"))):
        assert "EACCES" in answer_of(as_nobody(ask))


def test_of_sixteen_racing_processes_one_wins_each_name(tmp_path):
    gate = FORK.Barrier(RACING_PROCESSES)
    racers = [
        start(partial(race, LocalStore(tmp_path), racer, gate)) for racer in range(RACING_PROCESSES)
    ]
    winners: dict[int, list[int]] = {number: [] for number in range(RACES)}
    for racer, (child, wins) in enumerate(racers):
        assert wins.poll(DEADLINE_S)
        for number in wins.recv():
            winners[number].append(racer)
        child.join(DEADLINE_S)
    store = LocalStore(tmp_path)
    assert [len(won) for won in winners.values()] == [1] * RACES
    for number, [racer] in winners.items():
        assert store.get(f"log/{number:04d}") == content(racer)
    assert len(files(tmp_path)) == RACES


def race(store: LocalStore, racer: int, gate: Barrier, wins: Connection) -> None:
    won = []
    gate.wait(DEADLINE_S)
    for number in range(RACES):
        with suppress(ObjectExistsError):
            store.put_if_absent(f"log/{number:04d}", content(racer))
            won.append(number)
    wins.send(won)


def content(number: int) -> bytes:
    """Telling of its writer, and of a length of its own."""
    return f"{number:08d}".encode() * (5000 + number)


@pytest.mark.parametrize("method", ["put", "put_if_absent"])
@pytest.mark.parametrize("acknowledged", [1, 2, 5, 9, 14])
def test_a_writer_killed_at_any_moment_leaves_whole_objects_only(tmp_path, method, acknowledged):
    child, answers = start(lambda sink: write_on(LocalStore(tmp_path), method, sink))
    for _ in range(acknowledged):
        assert answers.poll(DEADLINE_S)
        last = answers.recv()
    child.kill()
    child.join(DEADLINE_S)
    store = LocalStore(tmp_path)
    listed = [meta.path for meta in store.list_from("")]
    assert listed[: last + 1] == [f"log/{number:04d}" for number in range(last + 1)]
    assert [store.get(path) for path in listed] == [content(n) for n in range(len(listed))]
    assert len(files(tmp_path)) <= len(listed) + 1
    store.put_if_absent(f"log/{len(listed):04d}", b"the next one")


def write_on(store: LocalStore, method: str, sink: Connection) -> None:
    """Write objects without end, and tell of each that was answered."""
    for number in range(10_000):
        getattr(store, method)(f"log/{number:04d}", content(number))
        sink.send(number)


def calls_of(act: Callable[[], object]) -> list[str]:
    """The calls into the operating system that change or sync something, in order."""
    changing = {"write", "fsync", "link", "rename", "mkdir", "unlink"}
    calls: list[str] = []

    def note(_: FrameType, event: str, called: Any) -> None:
        if event == "c_call" and called.__module__ == "posix" and called.__name__ in changing:
            calls.append(called.__name__)

    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.skipif(sys.platform != "linux", reason="other systems sync by other calls")
def test_a_put_is_answered_after_file_and_folder_are_synced(tmp_path):
    store = LocalStore(tmp_path)
    store.put("log/0", b"x")
    put = calls_of(lambda: store.put("log/1", b"x"))
    put_if_absent = calls_of(lambda: store.put_if_absent("log/2", b"x"))
    assert put == ["write", "fsync", "rename", "fsync"]
    assert put_if_absent == ["write", "fsync", "link", "fsync", "unlink"]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems sync by other calls")
def test_a_folder_is_synced_into_its_own_once_by_each_process(tmp_path):
    first = calls_of(lambda: LocalStore(tmp_path / "root").put("a/b/0", b"x"))
    assert first.count("mkdir") == 3
    assert first.index("write") >= first.count("mkdir") * 2
    other_process = calls_of(lambda: LocalStore(tmp_path / "root").put("a/b/1", b"x"))
    assert other_process == ["fsync"] * 3 + ["write", "fsync", "rename", "fsync"]
