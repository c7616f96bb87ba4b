"""Commits and polls at version 100 and at version 100,000 of a log that nobody has cleaned up."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

import streamlake as sl
from benchmarks.figures import ratio, row
from benchmarks.logs import write_checkpoint, write_commits

VERSIONS = (100, 100_000)
BLOCKS = 8
PER_BLOCK = 50
DATA = pa.table({"id": pa.array([1], pa.int64()), "v": ["x"]})


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Durations in seconds."""

    commits: list[float] = field(default_factory=list)
    """Those that cross the checkpoint interval among them."""
    polls: list[float] = field(default_factory=list)
    """Each finds nothing new."""


def table_at(folder: Path, version: int) -> sl.Table:
    """A table at ``version``, with all commits since the first and a file of each."""
    log = folder / "_delta_log"
    write_commits(log, 0, version + 1)
    write_checkpoint(log, version, version)
    return sl.Table.open(folder)


def measure(table: sl.Table, costs: Costs) -> None:
    """A block of commits, then one of polls, on a disk that has nothing else to write."""
    os.sync()
    costs.commits.extend(timed(lambda: table.append(DATA)) for _ in range(PER_BLOCK))
    costs.polls.extend(timed(table.markers) for _ in range(PER_BLOCK))


def timed(act: Callable[[], object]) -> float:
    """Seconds that a call takes."""
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


def main() -> None:
    """Measure and print."""
    low, high = VERSIONS
    print(f"flat: commits and polls at version {low:,} and {high:,}, local disk, taking turns")
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        tables = {version: table_at(Path(folder, str(version)), version) for version in VERSIONS}
        found = {version: Costs() for version in VERSIONS}
        for _ in range(BLOCKS):
            for version, table in tables.items():
                measure(table, found[version])
        for version, table in tables.items():
            print(row(f"  commit at {version:,}", found[version].commits))
            print(row(f"  poll at {version:,}", found[version].polls))
            print(row(f"  checkpoint at {version:,}", [timed(table.checkpoint)]))
    print(
        f"    {high:,} / {low:,}: commits {ratio(found[high].commits, found[low].commits):.2f}, "
        f"polls {ratio(found[high].polls, found[low].polls):.2f}"
    )
