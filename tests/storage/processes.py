"""Children of a test: forked ones that answer, and one with file systems of its own."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import textwrap
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import ForkContext, ForkProcess
from pathlib import Path

import pytest

from streamlake.errors import StorageError

FORK: ForkContext = multiprocessing.get_context("fork")
DEADLINE_S = 120.0


def start(run: Callable[[Connection], None]) -> tuple[ForkProcess, Connection]:
    """Fork a child that runs ``run`` with one end of a pipe; gives the other end."""
    ours, theirs = FORK.Pipe()
    child = FORK.Process(target=run, args=(theirs,))
    child.start()
    theirs.close()
    return child, ours


def answer_of(act: Callable[[], object]) -> str:
    """Run ``act`` in a forked child: "written", or name and text of the error that it raised."""

    def run(answers: Connection) -> None:
        try:
            act()
        except StorageError as error:
            answers.send(f"{type(error).__name__}: {error}")
        else:
            answers.send("written")

    child, answers = start(run)
    assert answers.poll(DEADLINE_S)
    answer: str = answers.recv()
    child.join(DEADLINE_S)
    return answer


def run_mounted(mount: str, folder: Path, script: str) -> str:
    """Run a script in a namespace where ``mount`` (arguments of mount) lies over ``folder``.

    Gives what it prints; skips the test where this machine does not let a user mount.
    """
    folder.mkdir(parents=True, exist_ok=True)
    enter = ["unshare", "--user", "--map-root-user", "--mount", "--ipc", "sh", "-c"]
    mounting = f'mount {mount} "$0"'
    trial = subprocess.run([*enter, mounting, folder], capture_output=True, check=False)
    if trial.returncode:
        pytest.skip(f"no namespace with a mount of its own here: {trial.stderr.decode().strip()}")
    program = [sys.executable, "-c", textwrap.dedent(script), str(folder)]
    done = subprocess.run(
        [*enter, f'{mounting} && exec "$@"', folder, *program],
        capture_output=True,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
