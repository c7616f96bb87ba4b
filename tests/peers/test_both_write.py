"""Random tables that streamlake and Delta on Spark write in turns read the same in both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import pyarrow as pa
import pytest

import streamlake as sl
from delta_spark import DeltaSpark
from peers.random_rows import ID
from peers.random_tables import RandomTable, append, checkpoint, random_table
from peers.sameness import check, told

TABLES = 12
SEED = 500_000
VECTORS = "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = '%s')"


@pytest.fixture(scope="module")
def shared_tables(seeds: range, tmp_path_factory: pytest.TempPathFactory) -> list[RandomTable]:
    """Tables that streamlake began."""
    folder = tmp_path_factory.mktemp("shared")
    numbers = range(SEED + seeds.start, SEED + seeds.start + min(TABLES, len(seeds)))
    return [random_table(folder / str(number), number) for number in numbers]


def delete(made: RandomTable, random: Random) -> list[str]:
    divisor = random.randint(2, 5)
    made.rows = tuple(row for row in made.rows if row[ID.name] % divisor)
    return [
        VECTORS % random.choice(["true", "false"]),
        f"DELETE FROM {{t}} WHERE id % {divisor} = 0",
    ]


def copy(made: RandomTable, _: Random) -> list[str]:
    """Rows again, under other ids."""
    copied = [{**row, ID.name: row[ID.name] + 100_000} for row in made.rows]
    made.rows = (*made.rows, *copied)
    return ["INSERT INTO {t} BY NAME SELECT * EXCEPT (id), id + 100000 AS id FROM {t}"]


def update(made: RandomTable, _: Random) -> list[str]:
    """Other ids for half of the rows."""
    made.rows = tuple(
        {**row, ID.name: row[ID.name] + 1_000_000} if row[ID.name] % 2 else row for row in made.rows
    )
    return ["UPDATE {t} SET id = id + 1000000 WHERE id % 2 = 1"]


def optimize(_: RandomTable, __: Random) -> list[str]:
    return ["OPTIMIZE {t}"]


def spark_turn(made: RandomTable) -> list[str]:
    """The statements of Spark's turn, whose effect is noted."""
    turns: Sequence[Callable[[RandomTable, Random], list[str]]] = (delete, copy, update, optimize)
    turn = made.random.choice(turns)
    script = [line.replace("{t}", f"delta.`{made.path}`") for line in turn(made, made.random)]
    made.story += script
    return script


def test_what_spark_changes_is_read_and_gone_on_with(
    shared_tables: list[RandomTable], delta_spark: DeltaSpark
):
    for _ in range(2):
        delta_spark.sql_each([spark_turn(made) for made in shared_tables])
        for made in shared_tables:
            rows = sl.Table.open(made.path).snapshot().to_arrow()
            expected = pa.Table.from_pylist(list(made.rows), schema=made.table.schema)
            check([told(made.name, rows, expected)])
            append(made)
            checkpoint(made)
    found = delta_spark.read_each([(made.path, None) for made in shared_tables])
    check(
        told(made.name, theirs, made.versions[max(made.versions)])
        for made, theirs in zip(shared_tables, found, strict=True)
    )
