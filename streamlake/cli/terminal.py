"""What the commands say: results on stdout, everything else on stderr.

On a terminal with colours, tables and moving bars; in a pipe as plain lines. ``NO_COLOR`` is
honoured.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec
import pyarrow as pa
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table

from streamlake.errors import StreamlakeError
from streamlake.log import utc_text

KIBI = 1024


def stdout() -> Console:
    """The console of results."""
    return Console(highlight=False, soft_wrap=True)


def stderr() -> Console:
    """The console of notes, progress and errors."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def say(text: str) -> None:
    """One line of result."""
    stdout().print(text, markup=False)


def note(text: str, *, style: str = "dim") -> None:
    """One line beside the result, for whoever watches."""
    stderr().print(text, markup=False, style=style)


def say_good(text: str) -> None:
    """One line of good news."""
    stdout().print(text, markup=False, style="bold green")


def say_bad(text: str) -> None:
    """One line of bad news."""
    stdout().print(text, markup=False, style="bold red")


def say_json(value: object) -> None:
    """One line of JSON as the result."""
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
    sys.stdout.flush()


def say_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Rows under headings: a drawn table on a terminal, tab-separated lines in a pipe."""
    console = stdout()
    if not console.is_terminal:
        lines = ["\t".join(row) + "\n" for row in (headings, *rows)]
        sys.stdout.write("".join(lines))  # a console would expand the tabs
        return
    table = Table(*headings, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*(escape(cell) for cell in row))
    console.print(table)


def say_error(error: StreamlakeError) -> None:
    """An error's message: what in red, then where, what was found and what to do."""
    what, *details = str(error).split("\n")
    console = stderr()
    console.print(f"error: {what}", markup=False, style="bold red")
    for detail in details:
        console.print(detail, markup=False)


def say_columns(schema: pa.Schema) -> None:
    """A table's columns, one a line."""
    width = max((len(field.name) for field in schema), default=0)
    for field in schema:
        required = "" if field.nullable else "  NOT NULL"
        say(f"  {field.name:<{width}}  {field.type}{required}")


def utc(timestamp_ms: int) -> str:
    """A time in milliseconds since the Unix epoch as ISO 8601."""
    return utc_text(timestamp_ms)


def size(count_bytes: int) -> str:
    """A number of bytes, for reading."""
    amount = float(count_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < KIBI:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= KIBI
    return f"{amount:.1f} TiB"


class Bar:
    """A moving bar on a terminal; without one it shows nothing."""

    def __init__(self, progress: Progress | None, task: TaskID) -> None:
        self._progress = progress
        self._task = task

    def advance(self, more: int) -> None:
        """So much more is done."""
        if self._progress is not None:
            self._progress.advance(self._task, more)

    def set(self, done: int, total: int) -> None:
        """So much of so much is done."""
        if self._progress is not None:
            self._progress.update(self._task, completed=done, total=total)


@contextmanager
def progress(title: str, *, total: int | None = None, in_bytes: bool = False) -> Iterator[Bar]:
    """A bar on stderr while the block runs, where stderr is a terminal.

    Args:
        title: What is done.
        total: How much there is to do; None where it is not known, or not yet.
        in_bytes: Whether the amounts are bytes.
    """
    console = stderr()
    if not console.is_terminal:
        yield Bar(None, TaskID(0))
        return
    amount = DownloadColumn(binary_units=True) if in_bytes else MofNCompleteColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), amount, TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as shown:
        yield Bar(shown, shown.add_task(title, total=total))
