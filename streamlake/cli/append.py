"""``streamlake append``: rows from files or stdin into a table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

from streamlake import SetTransaction, Stager, Table, TableNotFoundError
from streamlake.cli import terminal
from streamlake.cli.appending import Appended, RowMarker, append_batches, append_whole
from streamlake.cli.infer import infer_schema
from streamlake.cli.options import AsJson, StorageOptions, TableUrl, key_values
from streamlake.cli.readers import Input, InputFormat, open_input


def append(
    table: TableUrl,
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Files to read in order; - is stdin.")
    ],
    *,
    format_: Annotated[
        InputFormat | None,
        typer.Option(
            "--format", help="Default: by the suffix; NDJSON for stdin.", show_default=False
        ),
    ] = None,
    create: Annotated[
        bool, typer.Option("--create", help="Create the table from the data if there is none.")
    ] = False,
    batch_rows: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Commit after so many rows. Default: one commit of everything.",
            show_default=False,
        ),
    ] = None,
    app_id: Annotated[
        str | None,
        typer.Option(
            help="Append exactly once: the table remembers how many rows of this input it has, and "
            "the same command again goes on after them.",
            show_default=False,
        ),
    ] = None,
    txn_version: Annotated[
        int | None,
        typer.Option(
            help="With --app-id: make one commit of this version; the same one again is skipped.",
            show_default=False,
        ),
    ] = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Append NDJSON, CSV or Parquet files, or stdin.

    Example: `my-producer | streamlake append /data/orders - --batch-rows 1000`

    Values must fit the table's types; a record that does not is told by file and line, and nothing
    of its commit is written.
    """
    if txn_version is not None and (app_id is None or batch_rows is not None):
        raise typer.BadParameter("--txn-version needs --app-id and rules out --batch-rows.")
    if app_id is not None and not app_id.strip():
        raise typer.BadParameter("--app-id needs a name.")
    options = key_values(storage_option, option="--storage-option")
    with ExitStack() as opened:
        first = opened.enter_context(open_input(files[0], format_))
        if create:
            target, first = _open_or_create(table, first, options)
        else:
            target = Table.open(table, storage_options=options)
        bar = opened.enter_context(
            terminal.progress("Appending", total=_size_of(files), in_bytes=True)
        )
        rows = _rows(first, files[1:], format_, target.stager(), bar)
        commits = list(_commits(target, rows, batch_rows, app_id, txn_version, as_json=as_json))
    if not as_json:
        _say_summary(target, commits)


def _commits(
    table: Table,
    rows: Iterator[pa.Table],
    batch_rows: int | None,
    app_id: str | None,
    txn_version: int | None,
    *,
    as_json: bool,
) -> Iterator[Appended]:
    if txn_version is not None:
        made = append_whole(table, rows, txn=SetTransaction(str(app_id), txn_version))
    else:
        marker = None if app_id is None else RowMarker.of(table, app_id)
        if marker is not None:
            rows = marker.after_known(rows)
        if batch_rows is None:
            made = append_whole(table, rows, marker=marker)
        else:
            made = append_batches(table, rows, batch_rows=batch_rows, marker=marker)
    for commit in made:
        if as_json:
            terminal.say_json(commit.to_json())
        yield commit


def _rows(
    first: Input, more: list[str], given: InputFormat | None, stager: Stager, bar: terminal.Bar
) -> Iterator[pa.Table]:
    """The rows of all inputs in order, as the table has them."""
    yield from _conformed(first, stager, bar)
    for name in more:
        with open_input(name, given) as source:
            yield from _conformed(source, stager, bar)


def _conformed(source: Input, stager: Stager, bar: terminal.Bar) -> Iterator[pa.Table]:
    for chunk in source.chunks(stager.schema):
        yield from stager.conformed(chunk.rows)
        bar.advance(chunk.size_bytes)


def _open_or_create(url: str, first: Input, options: dict[str, str]) -> tuple[Table, Input]:
    try:
        return Table.open(url, storage_options=options), first
    except TableNotFoundError:
        schema, first = infer_schema(first)
        created = Table.create(url, schema=schema, storage_options=options)
        terminal.note(f"Created {created.url}: {', '.join(schema.names)}")
        return created, first


def _size_of(files: list[str]) -> int | None:
    """Bytes of all files; None where one is a pipe."""
    paths = [Path(name) for name in files]
    return sum(p.stat().st_size for p in paths) if all(p.is_file() for p in paths) else None


def _say_summary(table: Table, commits: list[Appended]) -> None:
    fresh = [commit for commit in commits if not commit.already_committed]
    if fresh:
        rows = sum(commit.rows for commit in fresh)
        count = "1 commit" if len(fresh) == 1 else f"{len(fresh):,} commits"
        terminal.say(f"Appended {rows:,} rows in {count}: version {fresh[-1].version}.")
    elif commits:
        terminal.say(f"Already committed: version {commits[-1].version}; nothing was written.")
    else:
        terminal.say(f"No new rows; the table stays at version {table.version}.")
