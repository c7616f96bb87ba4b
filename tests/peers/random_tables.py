"""Random tables that streamlake writes, with what each version of them must hold."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import streamlake as sl
from peers.random_rows import ID, random_partitioning, random_rows, random_schema
from streamlake.protocol import resolve_path
from streamlake.testing import TableBuilder

Rows = tuple[dict[str, Any], ...]


@dataclass(slots=True)
class RandomTable:
    """A table on disk, and what was done to it."""

    seed: int
    path: Path
    partition_by: list[str]
    table: sl.Table
    random: Random
    next_id: int = 0
    rows: Rows = ()
    versions: dict[int, pa.Table] = field(default_factory=dict)
    """What each version must hold."""
    oldest: int = 0
    """The oldest version that the log still has."""
    story: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """What tells the table in a message, and how to make it again."""
        return f"--seed {self.seed} --tables 1 ({self.path}): {', '.join(self.story)}"

    def fresh_rows(self, count: int) -> list[dict[str, Any]]:
        """Rows with new ids, for the schema of now."""
        self.next_id += count
        first = self.next_id - count
        return random_rows(self.random, self.table.schema, self.partition_by, first, count)

    def became(self, rows: Sequence[dict[str, Any]], what: str) -> None:
        """Note what a step did."""
        self.rows = tuple(rows)
        self.story.append(what)
        version = self.table.snapshot().version
        self.versions[version] = pa.Table.from_pylist(list(rows), schema=self.table.schema)


def random_table(path: Path, seed: int) -> RandomTable:
    """The table of that seed, made at ``path``."""
    random = Random(seed)
    schema = random_schema(random, ntz=random.random() < 0.3, spaced=False)
    partition_by = random_partitioning(random, schema)
    properties = random_properties(random)
    builder = TableBuilder(path).schema(schema).partitioned_by(*partition_by)
    table = builder.properties(properties).build()
    made = RandomTable(seed, path, partition_by, table, random)
    made.became([], f"partitioned by {partition_by} with {properties}")
    for _ in range(random.randint(2, 8)):
        random.choice(STEPS)(made)
    return made


def random_properties(random: Random) -> dict[str, str]:
    """Properties that change what is written, and not what is read."""
    choices: dict[str, list[str | None]] = {
        "delta.checkpointInterval": [None, "2", "3"],
        "delta.dataSkippingNumIndexedCols": [None, None, "0", "-1", "2"],
    }
    chosen = {name: random.choice(values) for name, values in choices.items()}
    return {name: value for name, value in chosen.items() if value is not None}


def append(made: RandomTable) -> None:
    rows = made.fresh_rows(made.random.choice([0, 1, 5, 40]))
    made.table.append(pa.Table.from_pylist(rows, schema=made.table.schema))
    made.became([*made.rows, *rows], f"append {len(rows)}")


def remove(made: RandomTable) -> None:
    """Remove some of the files, and with them their rows."""
    files = made.table.snapshot().files()
    chosen = [add for add in files if made.random.random() < 0.4]
    if not chosen:
        return
    paths = {add.path for add in chosen}
    gone = {number for path in paths for number in ids_in(made.table, path)}
    steps(made, lambda builder: builder.remove(where=lambda add: add.path in paths))
    made.became([row for row in made.rows if row[ID.name] not in gone], f"remove {len(paths)}")


def overwrite(made: RandomTable) -> None:
    rows = made.fresh_rows(10)
    data = pa.Table.from_pylist(rows, schema=made.table.schema)
    steps(made, lambda builder: builder.overwrite(data))
    made.became(rows, "overwrite")


def optimize(made: RandomTable) -> None:
    made.table.optimize()
    made.became(made.rows, "optimize")


def checkpoint(made: RandomTable) -> None:
    made.table.checkpoint()
    made.story.append("checkpoint")


def clean(made: RandomTable) -> None:
    """Cut the log off below a checkpoint of the newest version."""
    version = made.table.checkpoint()
    steps(made, lambda builder: builder.delete_commits(below=version))
    made.oldest = version
    made.story.append("checkpoint and clean-up")


def steps(made: RandomTable, change: Callable[[TableBuilder], TableBuilder]) -> None:
    """Carry out a builder's steps on the table."""
    change(TableBuilder()).extend(made.table)


def ids_in(table: sl.Table, path: str) -> list[int]:
    """The ids in a data file, read past streamlake."""
    fields = json.loads(table.snapshot().metadata.schema_string)["fields"]
    metadata = next(f["metadata"] for f in fields if f["name"] == ID.name)
    physical = metadata.get("delta.columnMapping.physicalName", ID.name)
    with pa.BufferReader(table.log.store.get(resolve_path(path, root_url=table.url))) as data:
        found = pq.read_table(data, columns=[physical])
    return [int(number) for number in found.column(0).to_pylist()]


STEPS = (append, append, append, append, remove, overwrite, optimize, checkpoint, clean)
