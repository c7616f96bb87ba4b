"""``streamlake tail``: a table's rows on stdout, as they are committed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer

from streamlake import Batch, Offset, Table, TailOptions
from streamlake.cli.json_text import BinaryText
from streamlake.cli.options import StorageOptions, TableUrl, Until, key_values
from streamlake.cli.pipes import ending_with_reader
from streamlake.cli.positions import PositionFile, parse_start
from streamlake.cli.printers import OutputFormat, printer


class OnRemoved(StrEnum):
    """What to do at a commit that removes data; the names are those of Delta's options."""

    FAIL = "fail"
    IGNORE_DELETES = "ignore_deletes"
    IGNORE_CHANGES = "ignore_changes"
    SKIP_CHANGE_COMMITS = "skip_change_commits"


class OnLost(StrEnum):
    """What to do where log clean-up removed versions that were not read yet."""

    FAIL = "fail"
    EARLIEST = "earliest"
    LATEST = "latest"
    RESNAPSHOT = "resnapshot"


def tail(
    table: TableUrl,
    *,
    start: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="START",
            help="earliest, latest, snapshot (all rows there are, then what comes), a version, a "
            "time as 2026-01-31T12:00:00Z, or a file that holds an Offset.",
        ),
    ] = "latest",
    until: Annotated[
        Until, typer.Option(help="End at what is the latest version now, or go on forever.")
    ] = Until.FOREVER,
    max_rows: Annotated[
        int | None, typer.Option(min=1, help="End after so many rows.", show_default=False)
    ] = None,
    format_: Annotated[
        OutputFormat, typer.Option("--format", help="How rows are printed.")
    ] = OutputFormat.JSONL,
    columns: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="Print these columns only.", show_default=False),
    ] = None,
    binary: Annotated[
        BinaryText,
        typer.Option(
            help="Binary values as text where they are UTF-8 and base64:... elsewhere, or all as "
            "base64."
        ),
    ] = BinaryText.AUTO,
    position: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Remember in this file how far rows were printed, and go on from there the next "
            "time; --from is for the first.",
            show_default=False,
        ),
    ] = None,
    on_removed: Annotated[
        OnRemoved, typer.Option(help="What to do at a commit that removes data.")
    ] = OnRemoved.FAIL,
    on_lost: Annotated[
        OnLost, typer.Option(help="What to do where the log was cleaned up before it was read.")
    ] = OnLost.FAIL,
    storage_option: StorageOptions = None,
) -> None:
    """Print a table's rows as they are committed, in order.

    Example: `streamlake tail /data/orders --from earliest --until latest | jq .item`

    Rows are printed at least once: what was printed after the position saved last is printed again
    after a crash.
    """
    begin: str | Offset = parse_start(start)
    remembered = None if position is None else PositionFile(position)
    if remembered is not None:
        begin = remembered.load() or begin
    options = TailOptions(
        columns=None if columns is None else [name.strip() for name in columns.split(",")],
        on_removed=on_removed.value,
        on_lost=on_lost.value,
    )
    opened = Table.open(
        table, storage_options=key_values(storage_option, option="--storage-option")
    )
    out = printer(format_, binary)
    with ending_with_reader():
        for batch in _batches(opened, begin, until, options, max_rows):
            out.print(batch.data)
            if remembered is not None and batch.offset is not None:
                remembered.save(batch.offset)


def _batches(
    table: Table, start: str | Offset, until: Until, options: TailOptions, max_rows: int | None
) -> Iterator[Batch]:
    """The table's batches; with ``max_rows`` exactly so many rows, if they come.

    The last batch may not be cut here, for its Offset stands at its end; the tail is begun anew
    where the last whole batch ended, with smaller batches.
    """
    stop: Literal["latest"] | None = "latest" if until is Until.LATEST else None
    left = max_rows
    if left is not None:
        options = replace(options, max_rows=min(options.max_rows, left))
    with closing(table.tail(start=start, stop=stop, options=options)) as batches:
        for batch in batches:
            if left is not None and batch.data.num_rows > left:
                break
            yield batch
            start = batch.offset or start
            left = left if left is None else left - batch.data.num_rows
            if left == 0:
                return
        else:
            return
    yield from _batches(table, start, until, options, left)
