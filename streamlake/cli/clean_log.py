"""``streamlake clean-log``: old log entries go."""

from __future__ import annotations

from typing import Annotated

import typer

from streamlake import Table
from streamlake.cli import terminal
from streamlake.cli.options import AsJson, StorageOptions, TableUrl, key_values


def clean_log(
    table: TableUrl,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would go.")] = False,
    keep_from: Annotated[
        int | None, typer.Option(min=0, help="Keep what this version and later ones need.")
    ] = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Remove log entries that the table's `delta.logRetentionDuration` has passed.

    Example: `streamlake clean-log /data/orders --dry-run`
    """
    options = key_values(storage_option, option="--storage-option")
    done = Table.open(table, storage_options=options).clean_log(
        dry_run=dry_run, keep_from=keep_from
    )
    if as_json:
        terminal.say_json(
            {
                "cutoff": terminal.utc(done.cutoff_ms),
                "firstVersion": done.first_version,
                "files": list(done.paths),
                "bytes": done.size_bytes,
                "isComplete": done.is_complete,
                "dryRun": done.dry_run,
            }
        )
        return
    if not done.paths:
        terminal.say(
            f"Nothing to do: no checkpoint serves what is older than "
            f"{terminal.utc(done.cutoff_ms)}, or nothing is."
        )
        return
    verb = "Would remove" if dry_run else "Removed"
    terminal.say(
        f"{verb} {len(done.paths):,} files ({terminal.size(done.size_bytes)}): "
        f"the log begins with version {done.first_version}."
    )
    if not done.is_complete:
        terminal.say("There is more: run it again.")
