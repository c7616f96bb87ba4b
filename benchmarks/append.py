"""Appends of 100 rows with a marker, commit by commit beside delta-rs on the same disk.

streamlake syncs file and folder to disk before it answers; delta-rs, through one DeltaTable handle,
does not. The two take turns in blocks, so that both meet the same noise; between blocks the disk
is synced, or the one that syncs would pay for the writes of the one that does not. Nothing is left
out: checkpoints are written by the commits that cross the interval.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import deltalake
import pyarrow as pa

import streamlake as sl
from benchmarks.figures import ratio, row

COMMITS = 1_100
BLOCK = 50
ROWS = 100
SPANS = {"commits 1-50": (1, 51), "commits 951-1050": (951, 1_051)}


def batch(number: int) -> pa.Table:
    """One commit's rows."""
    ids = pa.array(range(number * ROWS, (number + 1) * ROWS), pa.int64())
    names = pa.array([f"customer-{i}" for i in range(ROWS)])
    amounts = pa.array([i * 1.25 for i in range(ROWS)])
    times = pa.array([1_750_000_000_000_000 + i for i in range(ROWS)], pa.timestamp("us", "UTC"))
    return pa.table({"id": ids, "name": names, "amount": amounts, "at": times})


def ours(table: sl.Table, data: pa.Table, version: int) -> float:
    """Seconds for one append of ours."""
    start = time.perf_counter()
    table.append(data, txn=sl.SetTransaction("bench", version))
    return time.perf_counter() - start


def theirs(table: deltalake.DeltaTable, data: pa.Table, version: int) -> float:
    """Seconds for one append of delta-rs."""
    start = time.perf_counter()
    properties = deltalake.CommitProperties(
        app_transactions=[deltalake.Transaction("bench", version)]
    )
    deltalake.write_deltalake(table, data, mode="append", commit_properties=properties)
    return time.perf_counter() - start


def run(append: Callable[[int], float], numbers: range) -> list[float]:
    """A block of appends on a disk that has nothing else to write."""
    os.sync()
    return [append(number) for number in numbers]


def main() -> None:
    """Measure and print."""
    print(f"append: {ROWS} rows with a marker, local disk, {COMMITS} commits, taking turns")
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        table = sl.Table.create(f"{folder}/streamlake", schema=batch(0).schema)
        peer = deltalake.DeltaTable.create(f"{folder}/deltalake", schema=batch(0).schema)
        warm = sl.Table.create(f"{folder}/warm", schema=batch(0).schema)
        run(lambda number: ours(warm, batch(number), number), range(5))
        mine, others = [0.0], [0.0]
        for first in range(1, COMMITS, BLOCK):
            block = range(first, min(first + BLOCK, COMMITS))
            mine += run(lambda number: ours(table, batch(number), number), block)
            others += run(lambda number: theirs(peer, batch(number), number), block)
    for label, (start, stop) in SPANS.items():
        print(row(f"  streamlake, {label}", mine[start:stop]))
        print(row(f"  delta-rs,   {label}", others[start:stop]))
        times = ratio(others[start:stop], mine[start:stop])
        print(f"    delta-rs / streamlake, medians: {times:.1f}")
    print(row("  streamlake, all with checkpoints", mine[1:]))
    print(row("  delta-rs,   all", others[1:]))
    flat = ratio(mine[951:1_051], mine[1:51])
    print(f"    streamlake, commits 951-1050 / 1-50, medians: {flat:.2f}")
