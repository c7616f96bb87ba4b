"""Ending with the reader of a pipe: ``streamlake tail ... | head -1`` ends, though idle."""

from __future__ import annotations

import os
import select
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import UnsupportedOperation

EXIT_PIPE_CLOSED = 141
"""What a shell shows of a program whose reader went away, as of ``cat big | head``."""
POLL_MS = 200


@contextmanager
def ending_with_reader() -> Iterator[None]:
    """Within the block the process ends as soon as the reader of its stdout has gone.

    A write would find out by itself; a command that waits for rows does not write. The end is that
    of SIGPIPE: at once, without a word. (The signal itself stays ignored, for it would also come
    from a store's connection.) Where stdout is no pipe, nothing happens.
    """
    descriptor = _pipe()
    if descriptor is None:
        yield
        return
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(descriptor, done), name="pipe", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()  # not joined: it ends within a poll, and ends nothing any more


def _pipe() -> int | None:
    """The file descriptor of stdout, if that is a pipe."""
    try:
        descriptor = sys.stdout.fileno()
    except (UnsupportedOperation, AttributeError):
        return None
    mode = os.fstat(descriptor).st_mode
    return descriptor if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) else None


def _watch(descriptor: int, done: threading.Event) -> None:
    poll = select.poll()
    poll.register(descriptor, 0)  # errors and hang-ups are told unasked
    while not done.is_set():
        if poll.poll(POLL_MS) and not done.is_set():
            os._exit(EXIT_PIPE_CLOSED)
