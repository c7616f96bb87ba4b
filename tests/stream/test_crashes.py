"""Processes that die at any moment, and two that run under one name."""

import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

import streamlake as sl
from stream.builders import SCHEMA, rows, stored

HERE = Path(__file__).parent
COMMITS = 6


def carry(source: sl.Table, target: sl.Table, *moment: str, start: str = "earliest") -> int:
    """Run the carrier; its exit code."""
    program = [sys.executable, str(HERE / "carrier.py"), source.url, target.url, start, *moment]
    return subprocess.run(program, check=False, timeout=60, stdout=subprocess.PIPE).returncode


@pytest.fixture
def source(tmp_path) -> sl.Table:
    table = sl.Table.create(tmp_path / "source", schema=SCHEMA)
    for number in range(COMMITS):
        table.append(rows(2 * number, 2 * number + 1))
    return table


@pytest.fixture
def target(tmp_path) -> sl.Table:
    return sl.Table.create(tmp_path / "target", schema=SCHEMA)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_pipeline_that_is_killed_again_and_again_loses_and_repeats_nothing(
    source, target, moment
):
    deaths = 0
    while carry(source, target, moment, "2") == -signal.SIGKILL:
        deaths += 1
        assert deaths <= COMMITS
    assert deaths >= 2
    assert stored(target) == list(range(2 * COMMITS))


def test_a_pipeline_that_is_killed_while_it_follows_goes_on(source, target):
    assert carry(source, target, "after", "3") == -signal.SIGKILL
    assert stored(target) == list(range(6))
    source.optimize()
    source.append(rows(100))
    assert carry(source, target, "never", "0") == 0
    assert stored(target) == [*range(2 * COMMITS), 100]


def test_where_the_latest_was_outlasts_kills_before_the_first_row_is_stored(source, target):
    assert carry(source, target, "after", "1", start="latest") == -signal.SIGKILL
    source.append(rows(100))
    assert carry(source, target, "before", "1", start="latest") == -signal.SIGKILL
    source.append(rows(101))
    assert carry(source, target, "never", "0", start="latest") == 0
    assert stored(target) == [100, 101]


class Owner:
    """A process with a sink that is open."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        assert self._answer() == "open"

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def write(self, number: int) -> str:
        assert self._process.stdin is not None
        print(number, file=self._process.stdin, flush=True)
        return self._answer()


@contextmanager
def owner(table: sl.Table):
    program = [sys.executable, str(HERE / "owner.py"), table.url]
    with subprocess.Popen(
        program, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            yield Owner(process)
        finally:
            process.kill()


def test_of_two_owners_the_first_to_commit_goes_on_and_the_other_is_fenced(target):
    with owner(target) as first, owner(target) as second:
        assert second.write(0) == "1"
        assert first.write(0) == "FencedError"
        assert second.write(1) == "2"
        assert first.write(5) == "FencedError"
    assert stored(target) == [0, 1]


def test_an_owner_that_comes_later_fences_the_zombie(target):
    with owner(target) as zombie:
        assert zombie.write(0) == "1"
        with owner(target) as heir:
            assert heir.write(1) == "2"
            assert zombie.write(1) == "FencedError"
            assert heir.write(2) == "3"
    assert stored(target) == [0, 1, 2]
