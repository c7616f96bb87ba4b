"""Ending with the reader of a pipe: ``streamlake tail ... | head -1`` ends, though idle."""

from __future__ import annotations

import select
import signal
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import UnsupportedOperation
from os import fstat
from types import FrameType
from typing import NoReturn

POLL_MS = 200


@contextmanager
def ending_with_reader() -> Iterator[None]:
    """Within the block BrokenPipeError is raised as soon as the reader of stdout has gone.

    A write would find out by itself; a command that waits for rows does not write. Where
    stdout is no pipe, or the caller is not the main thread, nothing happens.
    """
    main = threading.current_thread()
    descriptor = _pipe()
    if descriptor is None or main is not threading.main_thread():
        yield
        return
    done = threading.Event()
    watcher = threading.Thread(
        target=_watch, args=(descriptor, done, main.ident), name="pipe", daemon=True
    )
    before = signal.signal(signal.SIGPIPE, _raise)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
        signal.signal(signal.SIGPIPE, before)


def _pipe() -> int | None:
    """The file descriptor of stdout, if that is a pipe."""
    try:
        descriptor = sys.stdout.fileno()
    except (UnsupportedOperation, AttributeError):
        return None
    mode = fstat(descriptor).st_mode
    return descriptor if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) else None


def _watch(descriptor: int, done: threading.Event, main: int) -> None:
    poll = select.poll()
    poll.register(descriptor, 0)  # errors and hang-ups are told unasked
    while not done.is_set():
        if poll.poll(POLL_MS):
            signal.pthread_kill(main, signal.SIGPIPE)
            return


def _raise(_number: int, _frame: FrameType | None) -> NoReturn:
    raise BrokenPipeError
