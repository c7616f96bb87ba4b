"""Random tables that deltalake writes, with the rows that they must hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import deltalake
import pyarrow as pa

from peers.random_rows import DECIMALS, ID, random_partitioning, random_rows, random_schema

NOT_READ_AGAIN = (*DECIMALS, pa.binary())
"""Partition values that deltalake writes as it does not read them: "-1.-50" and "\\u0065"."""


@dataclass(slots=True)
class DeltalakeTable:
    """A table on disk, and what was done to it."""

    seed: int
    path: Path
    schema: pa.Schema
    partition_by: list[str]
    random: Random
    rows: list[dict[str, Any]] = field(default_factory=list)
    next_id: int = 0
    story: list[str] = field(default_factory=list)

    @property
    def expected(self) -> pa.Table:
        """The rows that the newest version must hold."""
        return pa.Table.from_pylist(self.rows, schema=self.schema)

    def open(self) -> deltalake.DeltaTable:
        return deltalake.DeltaTable(str(self.path))

    def write(self, count: int, mode: Any) -> None:
        first, self.next_id = self.next_id, self.next_id + count
        rows = random_rows(self.random, self.schema, self.partition_by, first, count)
        data = pa.Table.from_pylist(rows, schema=self.schema)
        partition_by = self.partition_by or None
        deltalake.write_deltalake(str(self.path), data, mode=mode, partition_by=partition_by)
        self.rows = [*self.rows, *rows] if mode == "append" else rows
        self.story.append(f"{mode} {count}")


def deltalake_table(path: Path, seed: int) -> DeltalakeTable:
    """The table of that seed, made at ``path``."""
    random = Random(seed)
    schema = random_schema(random, ntz=False, spaced=False)  # it forgets the feature of nested ones
    partition_by = random_partitioning(random, schema, without=NOT_READ_AGAIN)
    made = DeltalakeTable(seed, path, schema, partition_by, random)
    made.write(5, "append")
    for _ in range(random.randint(2, 6)):
        random.choice(STEPS)(made)
    return made


def append(made: DeltalakeTable) -> None:
    made.write(made.random.choice([1, 5, 40]), "append")


def overwrite(made: DeltalakeTable) -> None:
    made.write(10, "overwrite")


def delete(made: DeltalakeTable) -> None:
    """Delete rows by their id, so that files are rewritten."""
    divisor = made.random.randint(2, 5)
    made.open().delete(f"{ID.name} % {divisor} = 0")
    made.rows = [row for row in made.rows if row[ID.name] % divisor]
    made.story.append(f"delete each {divisor}th")


def optimize(made: DeltalakeTable) -> None:
    made.open().optimize.compact()
    made.story.append("optimize")


def checkpoint(made: DeltalakeTable) -> None:
    made.open().create_checkpoint()
    made.story.append("checkpoint")


def clean(made: DeltalakeTable) -> None:
    """Vacuum what is removed, and cut the log off below a checkpoint."""
    table = made.open()
    table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    table = made.open()
    table.create_checkpoint()
    for version in range(table.version()):
        (made.path / f"_delta_log/{version:020d}.json").unlink(missing_ok=True)
    made.story.append("clean-up")


STEPS: tuple[Callable[[DeltalakeTable], None], ...] = (
    append,
    append,
    append,
    overwrite,
    delete,
    optimize,
    checkpoint,
    clean,
)
