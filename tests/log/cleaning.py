"""Tables of one commit a day, for tests of log clean-up."""

import itertools

import streamlake as sl
from streamlake.log import Log
from streamlake.storage import MemoryStore
from streamlake.testing import ManualClock, TableBuilder

DAY_S = 24 * 60 * 60
MIDNIGHT_MS = 20_000 * DAY_S * 1000
RETENTION = {"delta.logRetentionDuration": "interval 3 days", "delta.checkpointInterval": "1000"}
BY_HAND = {**RETENTION, "delta.enableExpiredLogCleanup": "false"}
NAMES = itertools.count()


def daily(
    commits, *, checkpoints=(), compactions=(), store=None, clock=None, properties=BY_HAND
) -> sl.Table:
    """Version 0 on the day 0 at noon, then one a day; it is noon of the newest one's day."""
    clock = clock or ManualClock(now_ms=MIDNIGHT_MS + DAY_S * 500, seed=next(NAMES))
    store = MemoryStore(clock=clock, name=f"clean-{next(NAMES)}")
    builder = TableBuilder(store, clock=clock).properties(properties)
    for version in range(commits):
        if version:
            builder = builder.wait(DAY_S).append()
        if version in checkpoints:
            builder = builder.checkpoint()
        if version in compactions:
            builder = builder.then(lambda table: table.compact_log())
    return builder.build()


def log_names(table: sl.Table) -> list[str]:
    """The log's numbered files in short: "3.json", "5.checkpoint"."""
    paths = [meta.path for meta in table.log.store.list_from("_delta_log/0")]
    return [short(path) for path in paths]


def short(path: str) -> str:
    version, _, kind = path.removeprefix("_delta_log/").partition(".")
    return f"{int(version)}.{kind.removesuffix('.parquet')}"


def versions_left(table: sl.Table) -> list[int]:
    return [int(name.split(".")[0]) for name in log_names(table) if name.endswith("json")]


def readable(table: sl.Table) -> list[int]:
    fresh = sl.Table(Log(table.log.store, clock=table.log.clock))
    found = []
    for version in range(table.version + 1):
        try:
            fresh.snapshot(version)
        except sl.LogTruncatedError:
            continue
        found.append(version)
    return found


def one_row(table: sl.Table):
    return table.snapshot(1).to_arrow()
