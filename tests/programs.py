"""The command line as its users have it: the real program in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, Any

import msgspec

COMMAND = (sys.executable, "-W", "error", "-m", "streamlake.cli")
TIMEOUT_S = 240


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> list[dict[str, Any]]:
        """The JSON lines it printed."""
        return [msgspec.json.decode(line) for line in self.out.splitlines()]


def streamlake(*arguments: object, stdin: str | bytes = b"", code: int = 0) -> Done:
    """Run a command to its end, which must be with exit code ``code``."""
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)],
        input=stdin.encode() if isinstance(stdin, str) else stdin,
        capture_output=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == code, done.stderr.decode()
    return Done(code=done.returncode, out=done.stdout.decode(), err=done.stderr.decode())


@contextmanager
def running(
    *arguments: object, stderr: IO[bytes] | int = subprocess.DEVNULL
) -> Iterator[subprocess.Popen[bytes]]:
    """A command that runs while the block does, in a process group of its own; then killed."""
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=stderr,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """``kill -9`` a process and those it started. Idempotent."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
