"""A log of 20,000 commits without a checkpoint: open it and list its files."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.listing import compare
from benchmarks.logs import write_commits

COMMITS = 20_000


def main() -> None:
    """Measure and print."""
    print(f"replay: {COMMITS:,} commits and no checkpoint, each reader in a fresh process")
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        write_commits(Path(folder) / "_delta_log", 0, COMMITS)
        compare(Path(folder))
