"""A table of 1,000,000 files behind a checkpoint: open it and list its files."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.listing import compare
from benchmarks.logs import commit, write_checkpoint

FILES = 1_000_000
VERSION = 1_000


def main() -> None:
    """Measure and print."""
    print(f"snapshot: {FILES:,} files behind a checkpoint, each reader in a fresh process")
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        log = Path(folder) / "_delta_log"
        write_checkpoint(log, VERSION, FILES)
        (log / f"{VERSION + 1:020d}.json").write_text(commit(VERSION + 1, "new.parquet", "{}"))
        compare(Path(folder))
