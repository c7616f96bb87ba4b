"""``streamlake history``: what was done to a table."""

from __future__ import annotations

from typing import Annotated

import typer

from streamlake import CommitRecord, Table
from streamlake.cli import terminal
from streamlake.cli.options import AsJson, StorageOptions, TableUrl, key_values

HEADINGS = ("version", "time (UTC)", "operation", "rows", "files", "isolation", "markers", "note")
SHOWN_MARKERS = 3


def history(
    table: TableUrl,
    *,
    limit: Annotated[int, typer.Option(min=1, help="How many commits, newest first.")] = 20,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Show a table's commits, newest first.

    Example: `streamlake history /data/orders --limit 5`
    """
    options = key_values(storage_option, option="--storage-option")
    records = Table.open(table, storage_options=options).history(limit=limit)
    if as_json:
        for record in records:
            terminal.say_json(_as_json(record))
    else:
        terminal.say_table(HEADINGS, [_as_row(record) for record in records])


def _as_json(record: CommitRecord) -> dict[str, object]:
    return {
        "version": record.version,
        "timestamp": terminal.utc(record.timestamp_ms),
        "operation": record.operation,
        "operationParameters": record.operation_parameters,
        "operationMetrics": record.operation_metrics,
        "isolationLevel": record.isolation_level,
        "readVersion": record.read_version,
        "isBlindAppend": record.is_blind_append,
        "rowsAdded": record.rows_added,
        "filesAdded": record.files_added,
        "filesRemoved": record.files_removed,
        "markers": {app_id: marker.version for app_id, marker in record.markers.items()},
        "userMetadata": record.user_metadata,
        "engineInfo": record.engine_info,
    }


def _as_row(record: CommitRecord) -> list[str]:
    markers = [f"{app_id} = {marker.version}" for app_id, marker in record.markers.items()]
    more = len(markers) - SHOWN_MARKERS
    return [
        str(record.version),
        terminal.utc(record.timestamp_ms),
        record.operation or "",
        "" if record.rows_added is None else f"{record.rows_added:,}",
        f"+{record.files_added} -{record.files_removed}",
        record.isolation_level or "",
        ", ".join(markers[:SHOWN_MARKERS]) + (f" and {more} more" if more > 0 else ""),
        " ".join((record.user_metadata or "").split()),
    ]
