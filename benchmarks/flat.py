"""Commits and polls at version 100 and at version 100,000 of a log that nobody has cleaned up."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

import streamlake as sl
from benchmarks.figures import ratio, row
from benchmarks.logs import write_checkpoint, write_commits
from streamlake.log.checkpoint.policy import interval_of

VERSIONS = (100, 100_000)
BLOCKS = 8
PER_BLOCK = 50
DATA = pa.table({"id": pa.array([1], pa.int64()), "v": ["x"]})


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Durations in seconds."""

    commits: list[float] = field(default_factory=list)
    """The median leaves out those that cross the checkpoint interval."""
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
        means = {version: report(version, tables[version], found[version]) for version in VERSIONS}
    print(
        f"    {high:,} / {low:,}: commits {ratio(found[high].commits, found[low].commits):.2f}, "
        f"polls {ratio(found[high].polls, found[low].polls):.2f}, "
        f"commits with checkpoints {means[high] / means[low]:.2f}"
    )


def report(version: int, table: sl.Table, costs: Costs) -> float:
    """Print the figures of a table; returns what a commit costs with its part of a checkpoint."""
    interval = interval_of(table.log.head)
    checkpoint_s = timed(table.checkpoint)
    with_checkpoints_s = statistics.median(costs.commits) + checkpoint_s / interval
    print(row(f"  commit at {version:,}", costs.commits))
    print(row(f"  poll at {version:,}", costs.polls))
    print(
        f"  checkpoint at {version:,}: {checkpoint_s * 1e3:.1f} ms, one in {interval:,} commits; "
        f"commit with its part of it {with_checkpoints_s * 1e3:.3f} ms"
    )
    return with_checkpoints_s
