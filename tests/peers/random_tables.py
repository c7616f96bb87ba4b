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
from peers.random_rows import (
    ID,
    PRIMITIVES,
    random_partitioning,
    random_rows,
    random_schema,
    random_type,
)
from peers.readers import LACKING
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
    rescaled_partitions: bool = False
    """Whether a decimal column that the table is partitioned by was widened."""
    versions: dict[int, pa.Table] = field(default_factory=dict)
    """What each version must hold."""
    oldest: int = 0
    """The oldest version that the log still has."""
    story: list[str] = field(default_factory=list)

    @property
    def is_mapped(self) -> bool:
        """Whether columns have physical names."""
        return self.table.properties.get("delta.columnMapping.mode", "none") != "none"

    @property
    def features(self) -> set[str]:
        """Of what some peer lacks, that which the table uses."""
        listed = self.table.log.head.protocol.writer_features or ()
        uses = {name for name in listed if name in LACKING}
        uses |= {"mapped partitions"} if self.is_mapped and self.partition_by else set()
        return uses | ({"rescaled partitions"} if self.rescaled_partitions else set())

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
    properties = random_properties(random)
    mapped = "delta.columnMapping.mode" in properties
    schema = random_schema(random, ntz=random.random() < 0.3, spaced=mapped)
    partition_by = random_partitioning(random, schema)
    builder = TableBuilder(path).schema(schema).partitioned_by(*partition_by)
    table = builder.properties(properties).build()
    made = RandomTable(seed, path, partition_by, table, random)
    made.became([], f"partitioned by {partition_by} with {properties}")
    append(made)
    for _ in range(random.randint(2, 10)):
        random.choice(STEPS)(made)
    return made


def random_properties(random: Random) -> dict[str, str]:
    """Properties that change what is written, and not what is read."""
    choices: dict[str, list[str | None]] = {
        "delta.checkpointInterval": [None, "2", "3"],
        "delta.checkpointPolicy": [None, None, "v2"],
        "delta.checkpoint.writeStatsAsJson": [None, None, "false"],
        "delta.checkpoint.writeStatsAsStruct": [None, None, "true"],
        "delta.columnMapping.mode": [None, None, None, "name", "id"],
        "delta.dataSkippingNumIndexedCols": [None, None, "0", "-1", "2"],
        "delta.enableDeletionVectors": [None, None, "true"],
        "delta.enableInCommitTimestamps": [None, None, "true"],
        "delta.enableRowTracking": [None, None, None, "true"],
        "delta.enableTypeWidening": [None, None, None, "true"],
        "delta.randomizeFilePrefixes": [None, None, "true"],
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
    chosen = [add for add in files if made.random.random() < REMOVED_SHARE]
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
    if "delta.enableRowTracking" not in made.table.properties:  # there it is refused
        made.table.optimize()
        made.became(made.rows, "optimize")


def checkpoint(made: RandomTable) -> None:
    made.table.checkpoint()
    made.story.append("checkpoint")


def compact(made: RandomTable) -> None:
    made.table.compact_log()
    made.story.append("log compaction")


def clean(made: RandomTable) -> None:
    """Cut the log off below a checkpoint of the newest version."""
    version = made.table.checkpoint()
    steps(made, lambda builder: builder.delete_commits(below=version))
    made.oldest = version
    made.story.append("checkpoint and clean-up")


def add_column(made: RandomTable) -> None:
    name = f"new {made.next_id}" if made.is_mapped else f"new{made.next_id}"
    if name in made.table.schema.names:
        return
    kind = random_type(made.random, PRIMITIVES)
    made.table.add_columns([pa.field(name, kind)])
    made.became([{**row, name: None} for row in made.rows], f"add {name} as {kind}")


def rename_column(made: RandomTable) -> None:
    """Rename a column, also one that the table is partitioned by."""
    old = made.random.choice(made.table.schema.names)
    new = f"renamed {made.next_id}"
    if not made.is_mapped or old == ID.name or new in made.table.schema.names:
        return
    made.table.rename_column(quoted(old), new)
    made.partition_by = list(made.table.partition_columns)
    rows = [{new if key == old else key: value for key, value in row.items()} for row in made.rows]
    made.became(rows, f"rename {old} to {new}")


def drop_column(made: RandomTable) -> None:
    name = made.random.choice(made.table.schema.names)
    if not made.is_mapped or name in (ID.name, *made.partition_by):
        return
    made.table.drop_columns([quoted(name)])
    rows = [{key: value for key, value in row.items() if key != name} for row in made.rows]
    made.became(rows, f"drop {name}")


def widen(made: RandomTable) -> None:
    """Widen each column that can be, also those that the table is partitioned by."""
    if "delta.enableTypeWidening" not in made.table.properties:
        return
    for column in made.table.schema:
        dated = pa.types.is_date(column.type) and column.name in made.partition_by  # is refused
        if column.type in WIDER and column.name != ID.name and not dated:
            made.table.alter_column(quoted(column.name), type=WIDER[column.type])
            values = pa.array([row[column.name] for row in made.rows], column.type)
            wider = values.cast(WIDER[column.type]).to_pylist()
            rows = [
                {**row, column.name: value} for row, value in zip(made.rows, wider, strict=True)
            ]
            if pa.types.is_decimal(column.type) and column.name in made.partition_by:
                made.rescaled_partitions = True
            made.became(rows, f"widen {column.name} from {column.type}")


def map_columns(made: RandomTable) -> None:
    if not made.is_mapped:
        made.table.set_properties({"delta.columnMapping.mode": "name"})
        made.became(made.rows, "map columns")


def constrain(made: RandomTable) -> None:
    if "delta.constraints.positive" not in made.table.properties:
        made.table.add_constraint("positive", f"{ID.name} >= 0")
        made.became(made.rows, "add a constraint")


def quoted(name: str) -> str:
    """A column's name as SQL says it."""
    return "`" + name.replace("`", "``") + "`"


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


REMOVED_SHARE = 0.4
WIDER = {
    pa.int8(): pa.int16(),
    pa.int16(): pa.int64(),
    pa.int32(): pa.float64(),
    pa.float32(): pa.float64(),
    pa.decimal128(9, 2): pa.decimal128(20, 5),
    pa.date32(): pa.timestamp("us"),
}
STEPS: tuple[Callable[[RandomTable], None], ...] = (
    *[append] * 6,
    *[remove] * 2,
    *[checkpoint] * 2,
    overwrite,
    optimize,
    compact,
    clean,
    add_column,
    *[rename_column] * 2,
    drop_column,
    *[widen] * 2,
    map_columns,
    constrain,
)
