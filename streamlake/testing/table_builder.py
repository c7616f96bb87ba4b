"""A table in any state of its log, in one line."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from os import PathLike
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa

from streamlake import operations
from streamlake.arguments import check_integer
from streamlake.clock import SYSTEM_CLOCK, Clock
from streamlake.data import Tabular
from streamlake.errors import InvalidInputError
from streamlake.log import Log, Transaction, list_log, removal
from streamlake.operations import Markers
from streamlake.protocol import (
    LAST_CHECKPOINT,
    Action,
    AddFile,
    commit_path,
    commit_version,
    encode_actions,
)
from streamlake.storage import MemoryStore, ObjectStore, open_store
from streamlake.table import Table
from streamlake.testing.numbered_rows import numbered_rows

Rows: TypeAlias = int | Tabular | Sequence[Mapping[str, Any]]
"""Rows of a table: how many numbered ones, Arrow data, or dictionaries."""

ONE_COLUMN = pa.schema([pa.field("n", pa.int64())])
"""The schema of a builder that was given none."""


def torn(data: bytes) -> bytes:
    """The first half, as a write that broke off leaves it."""
    return data[: len(data) // 2]


@dataclass(slots=True)
class _Site:
    """Where a builder's steps are carried out, and how far they have come."""

    store: ObjectStore
    clock: Clock
    table: Table
    rows: int
    """The number of the numbered row that comes next."""


_Step: TypeAlias = Callable[[_Site], object]


@dataclass(frozen=True, slots=True)
class TableBuilder:
    """Makes a table step by step through the real write path.

    A builder is a value: each method returns another one with a step more, and nothing is written
    before ``build`` or ``write``. One builder can so be the beginning of several tables::

        base = TableBuilder().append(times=5).checkpoint()
        whole = base.build()
        torn = base.append().corrupt("_delta_log/*.checkpoint.parquet").build()

    ``schema``, ``partitioned_by`` and ``properties`` say what version 0 is, wherever they stand;
    the other methods are carried out in their order. Checkpoints come by the table's own interval,
    too: set ``delta.checkpointInterval`` where that matters.
    """

    where: str | PathLike[str] | ObjectStore | None = None
    """A path, a URL or a store that holds no table yet; None for a memory store of its own."""
    clock: Clock = SYSTEM_CLOCK
    """Where time and ids come from; with a ManualClock the same table is made each time."""
    _schema: pa.Schema = field(default=ONE_COLUMN)
    _partition_by: tuple[str, ...] = ()
    _properties: Mapping[str, str] = field(default_factory=dict)
    _steps: tuple[_Step, ...] = ()

    def schema(self, schema: pa.Schema) -> TableBuilder:
        """The columns of version 0; without it one int64 column ``n``."""
        return dataclasses.replace(self, _schema=schema)

    def partitioned_by(self, *columns: str) -> TableBuilder:
        """The partition columns of version 0."""
        return dataclasses.replace(self, _partition_by=columns)

    def properties(self, properties: Mapping[str, str]) -> TableBuilder:
        """Further table properties of version 0, by Delta's names."""
        return dataclasses.replace(self, _properties={**self._properties, **properties})

    def append(self, rows: Rows = 1, *, times: int = 1, txn: Markers = None) -> TableBuilder:
        """``times`` commits that append ``rows`` each.

        Args:
            rows: Arrow data, dictionaries, or how many of the numbered rows that come next.
            times: How many commits; numbered rows go on from one to the next.
            txn: Exactly-once markers, as ``Table.append``.
        """

        def step(site: _Site) -> None:
            for _ in range(times):
                site.table.append(_data(site, rows), txn=txn)

        return self._then(step)

    def remove(
        self, *positions: int, where: Callable[[AddFile], bool] | None = None
    ) -> TableBuilder:
        """A commit that removes files as a delete of their rows does.

        Args:
            positions: Which of the table's files, in their order; -1 is the last.
            where: Or those for which it is true. With neither, all files.
        """

        def step(site: _Site) -> None:
            files = list(site.table.snapshot().files())
            if positions:
                files = [_at(files, position) for position in positions]
            _replace_files(site, [f for f in files if where is None or where(f)], "DELETE")

        return self._then(step)

    def overwrite(self, rows: Rows = 1) -> TableBuilder:
        """A commit that puts ``rows`` in the place of all there are."""

        def step(site: _Site) -> None:
            adds = site.table.stager().stage(_data(site, rows))
            _replace_files(site, site.table.snapshot().files(), "WRITE", adds)

        return self._then(step)

    def optimize(self) -> TableBuilder:
        """Pack small files, without a change of data."""
        return self.then(lambda table: table.optimize())

    def checkpoint(self) -> TableBuilder:
        """Write a checkpoint of the newest version, of the kind that the properties ask for."""
        return self.then(lambda table: table.checkpoint())

    def compact_log(self) -> TableBuilder:
        """Write the commits since the newest checkpoint as one file, too."""
        return self.then(lambda table: table.compact_log())

    def then(self, operation: Callable[[Table], object]) -> TableBuilder:
        """Whatever else can be done to a table: ``then(lambda table: table.optimize())``."""
        return self._then(lambda site: operation(site.table))

    def wait(self, seconds: float) -> TableBuilder:
        """Let time go by on the builder's clock."""
        return self._then(lambda site: site.clock.sleep(seconds))

    def commit(self, *actions: Action | Mapping[str, Any]) -> TableBuilder:
        """Put a commit past the write path, for what no writer of ours would write.

        Args:
            actions: The protocol's values, or their JSON as dictionaries.
        """

        def step(site: _Site) -> None:
            path = commit_path(_newest(site.store) + 1)
            site.store.put_if_absent(path, b"".join(_line(action) for action in actions))

        return self._then(step)

    def put(self, path: str, data: bytes) -> TableBuilder:
        """Write, or replace, a file; ``path`` is relative to the table."""
        return self._then(lambda site: site.store.put(path, data))

    def corrupt(self, pattern: str, damage: Callable[[bytes], bytes] = torn) -> TableBuilder:
        """Damage each file that matches, as ``_delta_log/*.checkpoint.parquet``.

        Args:
            pattern: With "*" and "?" for any characters, slashes too. Build fails where no file
                matches.
            damage: From the bytes there to those that shall be; the first half by default.
        """

        def step(site: _Site) -> None:
            for path in _matching(site.store, pattern):
                site.store.put(path, damage(site.store.get(path)))

        return self._then(step)

    def delete(self, pattern: str) -> TableBuilder:
        """Delete each file that matches; ``pattern`` as for ``corrupt``."""

        def step(site: _Site) -> None:
            for path in _matching(site.store, pattern):
                site.store.delete(path)

        return self._then(step)

    def delete_commits(self, *, below: int) -> TableBuilder:
        """Delete the commit files below a version, as log clean-up does below a checkpoint."""

        def step(site: _Site) -> None:
            for version in range(below):
                site.store.delete(commit_path(version))

        return self._then(step)

    def drop_hint(self) -> TableBuilder:
        """Delete ``_last_checkpoint``."""
        return self._then(lambda site: site.store.delete(LAST_CHECKPOINT))

    def write(self) -> ObjectStore:
        """Make the table, and return its store: for tables that may not open.

        Raises:
            TableExistsError: There is one already.
        """
        store = _store(self.where, self.clock)
        log = Log(store, clock=self.clock)
        operations.create(
            log, self._schema, partition_by=self._partition_by, properties=self._properties
        )
        self.extend(Table(log))
        return store

    def extend(self, table: Table) -> None:
        """Carry the steps out on a table that is there; what version 0 shall be does not count."""
        files = table.snapshot().files()
        rows = sum(add.num_records or 0 for add in files)
        site = _Site(table.log.store, self.clock, table, rows)
        for step in self._steps:
            step(site)

    def build(self) -> Table:
        """Make the table, and open it anew: the handle knows nothing but what is stored.

        Raises:
            TableExistsError: There is one already.
            TableError: The table, as it was made, can't be opened.
        """
        log = Log(self.write(), clock=self.clock)
        log.refresh()
        return Table(log)

    def _then(self, step: _Step) -> TableBuilder:
        return dataclasses.replace(self, _steps=(*self._steps, step))


def _store(where: str | PathLike[str] | ObjectStore | None, clock: Clock) -> ObjectStore:
    if where is None:  # named by the system's clock: no two stores may share a name
        return MemoryStore(name=SYSTEM_CLOCK.new_id(), clock=clock)
    return open_store(where) if isinstance(where, (str, PathLike)) else where


def _data(site: _Site, rows: Rows) -> Tabular:
    if isinstance(rows, int):
        check_integer("rows", rows, least=0)
        site.rows += rows
        return numbered_rows(site.table.schema, site.rows - rows, rows)
    return _table(rows, site.table.schema) if isinstance(rows, Sequence) else rows


def _table(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    if not all(isinstance(row, Mapping) and row.keys() <= set(schema.names) for row in rows):
        raise InvalidInputError(
            "Rows must be dictionaries with the columns of the table.",
            found=f"{rows!r:.200}; columns {', '.join(schema.names)}",
            remedy='Give rows such as [{"n": 1}], Arrow data, or how many numbered rows.',
        )
    try:
        return pa.Table.from_pylist([dict(row) for row in rows], schema=schema)
    except pa.ArrowException as error:
        raise InvalidInputError(
            "A value of a row is not of its column's type.",
            found=str(error),
            remedy="Correct the row, or give Arrow data to test what a table refuses.",
        ) from error


def _at(files: Sequence[AddFile], position: int) -> AddFile:
    if not -len(files) <= position < len(files):
        raise InvalidInputError(
            f"The table has no file at {position}.",
            found=f"{len(files)} files",
            remedy="Count from 0, or from the end with -1.",
        )
    return files[position]


def _replace_files(
    site: _Site, old: Sequence[AddFile], operation: str, new: Sequence[AddFile] = ()
) -> None:
    log, now_ms = site.table.log, site.clock.now_ms()
    metadata = log.head.metadata
    log.commit(
        Transaction(
            operation=operation,
            adds=tuple(new),
            removes=tuple(removal(add, now_ms=now_ms) for add in old),
            read_version=log.head.version,
            staged_schema=metadata.schema_string,
            staged_partitions=metadata.partition_columns,
        )
    )


def _line(action: Action | Mapping[str, Any]) -> bytes:
    if isinstance(action, Mapping):
        return msgspec.json.encode(dict(action)) + b"\n"
    return encode_actions([action])


def _newest(store: ObjectStore) -> int:
    versions = (commit_version(meta.path) for meta in list_log(store))
    return max(version for version in versions if version is not None)


def _matching(store: ObjectStore, pattern: str) -> list[str]:
    found = [meta.path for meta in store.list_from("") if fnmatchcase(meta.path, pattern)]
    if not found:
        raise InvalidInputError(
            "No file of the table matches.",
            where=f"{store.url}/{pattern}",
            remedy="Patterns are relative to the table: _delta_log/*.json.",
        )
    return found
