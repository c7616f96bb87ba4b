import fcntl
import sys
import time

import pytest

from streamlake.cli.demo.children import Child

WAIT_S = 30


@pytest.fixture
def child(tmp_path):
    """A child that runs a piece of Python, gone when the test is."""
    children = []

    def make(code):
        children.append(Child("helper", ["-c", code], log=tmp_path / "helper.log"))
        return children[-1]

    yield make
    for each in children:
        each.kill()


def wait_for(condition):
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_free(path):
    """Whether nobody holds the lock of a file; a lock ends with its process."""
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def test_a_child_that_ends_of_itself_is_told_in_the_words_of_its_log(child):
    failing = child("print('broken'); raise SystemExit(3)")
    failing.start()
    wait_for(lambda: failing.died() is not None)
    assert failing.died() == "exit code 3\nbroken"


HOLD = """
import fcntl, sys, time
file = open(sys.argv[1], "ab")
fcntl.flock(file, fcntl.LOCK_EX)
time.sleep(60)
"""


def test_a_kill_takes_what_the_child_started_with_it(child, tmp_path):
    lock = tmp_path / "lock"
    command = [sys.executable, "-c", HOLD, str(lock)]
    parent = child(f"import subprocess; subprocess.run({command!r})")
    parent.start()
    wait_for(lambda: lock.exists() and not is_free(lock))
    parent.kill()
    wait_for(lambda: is_free(lock))


def test_a_child_is_started_again_and_stopped_more_than_once(child):
    sleeper = child("import time; time.sleep(60)")
    for _ in range(2):
        sleeper.start()
        assert sleeper.died() is None
        sleeper.stop()
        sleeper.stop()
