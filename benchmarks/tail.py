"""From the call of append to the delivery in another process, 100 commits a second on local disk.

A follower built on delta-rs (update, then read the files that are new) sees the same writes in a
run of its own, right after.
"""

from __future__ import annotations

import multiprocessing as mp
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq

import streamlake as sl
from benchmarks.figures import ratio, row

COMMITS = 1_000
PER_SECOND = 100
SCHEMA = pa.schema([pa.field("called_ns", pa.int64()), pa.field("number", pa.int64())])


def follow_streamlake(url: str, pipe: Connection) -> None:
    """Deliver every row through ``Table.tail``."""
    table = sl.Table.open(url)
    tail = table.tail(start="latest")
    pipe.send("ready")
    delays: list[float] = []
    for batch in tail:
        now = time.monotonic_ns()
        delays += [(now - called) / 1e9 for called in batch.data["called_ns"].to_numpy()]
        if len(delays) >= COMMITS:
            break
    pipe.send(delays)


def follow_deltalake(url: str, pipe: Connection) -> None:
    """Deliver every row by polling a DeltaTable and reading the files that are new."""
    table = deltalake.DeltaTable(url)
    seen = set(table.file_uris())
    pipe.send("ready")
    delays: list[float] = []
    while len(delays) < COMMITS:
        version = table.version()
        table.update_incremental()
        if table.version() == version:
            time.sleep(0.001)
            continue
        for uri in [uri for uri in table.file_uris() if uri not in seen]:
            seen.add(uri)
            rows = pq.read_table(uri)
            now = time.monotonic_ns()
            delays += [(now - called) / 1e9 for called in rows["called_ns"].to_numpy()]
    pipe.send(delays)


def measure(folder: str, follow: Callable[[str, Connection], None]) -> list[float]:
    """Delays in seconds, one a commit."""
    url = f"{folder}/{follow.__name__}"
    table = sl.Table.create(url, schema=SCHEMA)
    table.append(SCHEMA.empty_table())
    here, there = mp.get_context("spawn").Pipe()
    follower = mp.get_context("spawn").Process(target=follow, args=(url, there), daemon=True)
    follower.start()
    here.recv()
    time.sleep(0.2)
    started = time.monotonic()
    for number in range(COMMITS):
        time.sleep(max(0.0, started + number / PER_SECOND - time.monotonic()))
        called = pa.array([time.monotonic_ns()], pa.int64())
        table.append(pa.table([called, pa.array([number], pa.int64())], schema=SCHEMA))
    delays: list[float] = here.recv()
    follower.join()
    return delays


def main() -> None:
    """Measure and print."""
    print(f"tail: call to delivery in another process, {PER_SECOND} commits a second, local disk")
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        mine = measure(folder, follow_streamlake)
        others = measure(folder, follow_deltalake)
    print(row("  streamlake, Table.tail", mine))
    print(row("  delta-rs, polled", others))
    print(f"    delta-rs / streamlake, medians: {ratio(others, mine):.1f}")
