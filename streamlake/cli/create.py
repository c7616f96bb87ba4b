"""``streamlake create``: a new, empty table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

from streamlake import InvalidInputError, Table
from streamlake.cli import terminal
from streamlake.cli.ddl import parse_columns
from streamlake.cli.infer import infer_schema
from streamlake.cli.options import AsJson, StorageOptions, TableUrl, key_values
from streamlake.cli.readers import open_input
from streamlake.protocol import schema_from_json


def create(
    table: TableUrl,
    *,
    schema: Annotated[
        str | None,
        typer.Option(
            help='The columns: "id long not null, name string", or a file that holds that or a '
            "Delta schema in JSON.",
            show_default=False,
        ),
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Take the columns that a Parquet, CSV or NDJSON file shows.",
            show_default=False,
        ),
    ] = None,
    partition_by: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="May be repeated.", show_default=False),
    ] = None,
    property_: Annotated[
        list[str] | None,
        typer.Option(
            "--property",
            metavar="KEY=VALUE",
            help="A table property by Delta's name, as delta.appendOnly=true; may be repeated.",
            show_default=False,
        ),
    ] = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Create an empty table.

    Example: `streamlake create /data/orders --schema "id long not null, item string"`
    """
    created = Table.create(
        table,
        schema=_columns(schema, like),
        partition_by=partition_by or (),
        properties=key_values(property_, option="--property"),
        storage_options=key_values(storage_option, option="--storage-option"),
    )
    if as_json:
        terminal.say_json({"table": created.url, "id": created.id, "version": created.version})
    else:
        terminal.say(f"Created {created.url}")
        terminal.say_columns(created.schema)


def _columns(schema: str | None, like: str | None) -> pa.Schema:
    if (schema is None) == (like is None):
        raise typer.BadParameter("Give the columns with either --schema or --like.")
    if like is not None:
        with open_input(like, None) as source:
            return infer_schema(source)[0]
    text = _file_text(str(schema))
    return schema_from_json(text) if text.lstrip().startswith("{") else parse_columns(text)


def _file_text(given: str) -> str:
    """What the file of that name holds, or the text itself where it names no file."""
    try:
        return Path(given).read_text(encoding="utf-8") if Path(given).is_file() else given
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(
            "The schema's file can't be read.",
            where=given,
            found=str(error),
            remedy="Give a text file of columns, or the columns themselves.",
        ) from error
