"""Appends of 100 rows with a marker, commit by commit beside delta-rs on the same disk.

streamlake syncs file and folder to disk before it answers; delta-rs, through one DeltaTable handle,
does not. The two take turns, so that both meet the same noise. Every figure but the mean of the last
row leaves out nothing: checkpoints are written by the commits that cross the interval.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import deltalake
import pyarrow as pa

import streamlake as sl
from benchmarks.figures import ratio, row

COMMITS = 1_100
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


def main() -> None:
    """Measure and print."""
    print(f"append: {ROWS} rows with a marker, local disk, {COMMITS} commits, taking turns")
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        table = sl.Table.create(f"{folder}/streamlake", schema=batch(0).schema)
        peer = deltalake.DeltaTable.create(f"{folder}/deltalake", schema=batch(0).schema)
        mine, others = [0.0], [0.0]
        for number in range(1, COMMITS):
            data = batch(number)
            mine.append(ours(table, data, number))
            others.append(theirs(peer, data, number))
    for label, (start, stop) in SPANS.items():
        print(row(f"  streamlake, {label}", mine[start:stop]))
        print(row(f"  delta-rs,   {label}", others[start:stop]))
        print(f"    delta-rs / streamlake, medians: {ratio(others[start:stop], mine[start:stop]):.1f}")
    print(row("  streamlake, all with checkpoints", mine[1:]))
    print(row("  delta-rs,   all", others[1:]))
    flat = ratio(mine[951:1_051], mine[1:51])
    print(f"    streamlake, commits 951-1050 / 1-50, medians: {flat:.2f}")
