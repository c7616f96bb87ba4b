"""Tables in the state that a test of streams needs, in a line each."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import TypeVar

import pyarrow as pa
import pytest

import streamlake as sl
from streamlake import operations
from streamlake.data import encode_parquet
from streamlake.log import Limits, Log
from streamlake.protocol import (
    Action,
    AddFile,
    CommitInfo,
    Metadata,
    RemoveFile,
    commit_path,
    encode_actions,
)
from streamlake.storage import MemoryStore, ObjectStore
from streamlake.testing import ManualClock

SCHEMA = pa.schema([pa.field("n", pa.int64())])
QUICK = Limits(gap_wait_s=0.01, idle_polls_per_listing=16)
_names = itertools.count()
_T = TypeVar("_T")


def rows(*numbers: int) -> pa.Table:
    return pa.table([pa.array(numbers, pa.int64())], schema=SCHEMA)


def new_table(
    store: ObjectStore | None = None, *, clock: sl.Clock | None = None, **options
) -> sl.Table:
    """An empty table at version 0, in memory, at its clock's time, unless a store is given."""
    clock = clock or ManualClock(seed=next(_names))
    log = Log(MemoryStore(clock=clock) if store is None else store, clock=clock, limits=QUICK)
    operations.create(log, SCHEMA, **options)
    return sl.Table(log)


def table_of(*commits: Iterable[int], store: ObjectStore | None = None) -> sl.Table:
    """A table of one commit each from version 1 on, a second apart."""
    table = new_table(store)
    for numbers in commits:
        clock_of(table).advance(1)
        table.append(rows(*numbers))
    return table


def stage(table: sl.Table, *numbers: int, data_change: bool = True) -> AddFile:
    """A data file of its own, not committed yet."""
    path = f"file-{next(_names):09d}.parquet"
    data = bytes(encode_parquet(rows(*numbers)))
    table.log.store.put(path, data)
    return AddFile(path, {}, len(data), table.log.clock.now_ms(), data_change)


def remove(add: AddFile, *, data_change: bool = True) -> RemoveFile:
    return RemoveFile(add.path, data_change, deletion_timestamp=0)


def commit(table: sl.Table, *actions: Action, **info) -> int:
    """Commit actions as another engine would; returns the version."""
    version = table.log.refresh().version + 1
    store = table.log.store
    data = encode_actions([CommitInfo({"operation": "TEST", **info}), *actions])
    store.put_if_absent(commit_path(version), data)
    return version


def change_metadata(table: sl.Table, **changes) -> int:
    """Commit the table's metadata with fields replaced."""
    before = table.log.refresh().metadata
    fields = {name: getattr(before, name) for name in before.__struct_fields__}
    version = commit(table, Metadata(**fields | changes))
    table.log.refresh()
    return version


def drop_commits(table: sl.Table, *versions: int) -> None:
    """Remove commit files, as log clean-up or an accident does."""
    for version in versions:
        table.log.store.delete(commit_path(version))


def offset_of(batch: sl.Batch) -> sl.Offset:
    """Where a tail resumes after the batch."""
    assert batch.offset is not None
    return batch.offset


def clock_of(table: sl.Table) -> ManualClock:
    """The clock that the table was made with."""
    assert isinstance(table.log.clock, ManualClock)
    return table.log.clock


def numbers(batches: Iterable[sl.Batch | None]):
    return [number for batch in batches if batch for number in batch.data["n"].to_pylist()]


def before_error(batches: Iterable[sl.Batch], error: type[Exception], match: str = "."):
    """The numbers that are handed on before the tail stops with that error."""
    found: list[sl.Batch] = []
    with pytest.raises(error, match=match):
        found.extend(batches)
    return numbers(found)


def all_numbers(table: sl.Table, **options):
    """What a bounded tail hands on."""
    return numbers(table.tail(**{"stop": "latest", **options}))


def take(batches: Iterator[_T], count: int) -> list[_T]:
    return list(itertools.islice(batches, count))


def stored(table: sl.Table):
    """What the table holds now."""
    return table.snapshot().to_arrow()["n"].to_pylist()


def fresh(table: sl.Table, store: ObjectStore | None = None) -> sl.Table:
    """Another handle on the table, as another process has it."""
    log = Log(store or table.log.store, clock=table.log.clock, limits=QUICK)
    log.refresh()
    return sl.Table(log)
