"""The demo's tailer: a program that follows a table and writes down what it is handed."""

from __future__ import annotations

import sys
from pathlib import Path

from streamlake import SYSTEM_CLOCK, Table
from streamlake.cli.demo.delivery import DeliveryLog, delivered


def follow(table_url: str, path: Path) -> None:
    """Follow the table from where the file of deliveries ends, until killed."""
    log = DeliveryLog(path)
    for batch in Table.open(table_url).tail(start=log.offset or "earliest"):
        log.write(delivered(batch, SYSTEM_CLOCK.now_ms()))


if __name__ == "__main__":
    follow(sys.argv[1], Path(sys.argv[2]))
