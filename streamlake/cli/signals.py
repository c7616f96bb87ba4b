"""What the signals that end a program do to a command."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

EXIT_TERMINATED = 143


@contextmanager
def closing_on_sigterm() -> Iterator[None]:
    """Within the block SIGTERM ends the command as an error would: everything is closed first."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _exit)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _exit(_number: int, _frame: FrameType | None) -> None:
    raise SystemExit(EXIT_TERMINATED)
