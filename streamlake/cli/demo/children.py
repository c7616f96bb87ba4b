"""The demo's child processes: started, killed and stopped by their pid."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

STOP_TIMEOUT_S = 10
SHOWN_LINES = 20

# A child in its own session is not reached by Ctrl-C; the kernel ends it should the demo be killed.
_DIE_WITH_PARENT = """\
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""


class Child:
    """A Python program in a process group of its own, which can be killed and started again."""

    def __init__(self, name: str, arguments: Sequence[str], *, log: Path) -> None:
        self.name = name
        self._command = [sys.executable, *arguments]
        if sys.platform == "linux":
            guard = [sys.executable, "-c", _DIE_WITH_PARENT, str(os.getpid())]
            self._command = [*guard, *self._command]
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; its output is added to its log file."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def kill(self) -> None:
        """``kill -9`` it and what it started, without a word of warning."""
        if self._process is not None:
            self._signal_group(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """Ask it to end, and kill what does not. Idempotent."""
        if self._process is None:
            return
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_TIMEOUT_S)
        self.kill()

    def died(self) -> str | None:
        """Why it ended of itself, in the words of its log; None while it runs."""
        if self._process is None or self._process.poll() is None:
            return None
        lines = self._log.read_text(errors="replace").splitlines()
        return "\n".join([f"exit code {self._process.returncode}", *lines[-SHOWN_LINES:]])

    def _signal_group(self, number: int) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
