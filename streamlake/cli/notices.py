"""Warnings that the library logs, told on the terminal."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from streamlake.cli import terminal

LOGGERS = (
    "streamlake",
    "streamlake_kafka",
    "pyspark_streamlake",
    "pyspark_streamlake_kafka",
)

Tell: TypeAlias = Callable[[str], None]


def tell_warnings() -> None:
    """From now on warnings of ours are notes on stderr, unless a block hears them. Idempotent."""
    for name in LOGGERS:
        logger = logging.getLogger(name)
        if _handler not in logger.handlers:
            logger.addHandler(_handler)
            logger.propagate = False


@contextmanager
def heard_by(tell: Tell) -> Iterator[None]:
    """Within the block ``tell`` is told of warnings, on whatever thread they are logged."""
    before, _handler.tell = _handler.tell, tell
    try:
        yield
    finally:
        _handler.tell = before


class _Handler(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.tell: Tell = _note
        self.addFilter(_is_ours)

    def emit(self, record: logging.LogRecord) -> None:
        self.tell(record.getMessage())


def _is_ours(record: logging.LogRecord) -> bool:
    """Not one of the lines that librdkafka writes at each try of a lost connection."""
    return not record.name.endswith(".librdkafka")


def _note(text: str) -> None:
    terminal.note(f"warning: {text}", style="yellow")


_handler = _Handler()
