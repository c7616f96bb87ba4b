"""``streamlake optimize``: many small files into few large ones."""

from __future__ import annotations

from typing import Annotated

import typer

from streamlake import Table
from streamlake.cli import terminal
from streamlake.cli.options import AsJson, StorageOptions, TableUrl, byte_size, key_values


def optimize(
    table: TableUrl,
    *,
    target_size: Annotated[
        str, typer.Option(metavar="SIZE", help="The size of a file to aim at, as 64mb or 1gb.")
    ] = "128mb",
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Pack a table's small files into large ones; who tails it sees nothing of it.

    Example: `streamlake optimize /data/orders --target-size 256mb`
    """
    target_bytes = byte_size(target_size, option="--target-size")
    opened = Table.open(
        table, storage_options=key_values(storage_option, option="--storage-option")
    )
    with terminal.progress("Packing files") as bar:
        result = opened.optimize(target_file_size_bytes=target_bytes, on_progress=bar.set)
    if as_json:
        terminal.say_json(
            {
                "version": result.version,
                "commits": result.commits,
                "filesRemoved": result.files_removed,
                "filesAdded": result.files_added,
                "bytesRemoved": result.bytes_removed,
                "bytesAdded": result.bytes_added,
            }
        )
    elif result.commits == 0:
        terminal.say("Nothing to do: no two small files lie together.")
    else:
        terminal.say(
            f"Packed {result.files_removed:,} files into {result.files_added:,} "
            f"({terminal.size(result.bytes_removed)} to {terminal.size(result.bytes_added)}), "
            f"version {result.version}."
        )
