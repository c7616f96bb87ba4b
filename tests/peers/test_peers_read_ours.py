"""What streamlake writes reads the same in deltalake, DuckDB and Delta on Spark."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import pyarrow as pa
from deltalake.exceptions import DeltaError

import streamlake as sl
from peers.random_tables import RandomTable
from peers.readers import (
    DELTALAKE_LACKS,
    DUCKDB_LACKS,
    Read,
    duckdb_reader,
    read_with_deltalake,
)
from peers.sameness import check, told


def wrong(made: RandomTable, found: pa.Table | Exception, version: int | None = None) -> list[str]:
    """What a message says of a table that was read wrongly; nothing where it was not."""
    at = "" if version is None else f" at version {version}"
    expected = made.versions[max(made.versions) if version is None else version]
    return told(f"{made.name}{at}", found, expected)


def old_version(made: RandomTable) -> int:
    """One of the versions that are left."""
    return made.random.choice(
        [v for v in made.versions if v >= made.oldest] or [made.table.version]
    )


def readable(tables: list[RandomTable], lacks: Mapping[str, str]) -> list[RandomTable]:
    """The tables that use nothing of what a peer lacks: most of them."""
    found = [made for made in tables if not made.features & lacks.keys()]
    assert len(found) > len(tables) / 2
    return found


def test_streamlake_itself_reads_each_version(our_tables):
    check(
        wrong(made, sl.Table.open(made.path).snapshot(version).to_arrow(), version)
        for made in our_tables
        for version in made.versions
        if version >= made.oldest
    )


GROWING = ("partitioned", "append", "optimize", "checkpoint", "log compaction")


def test_a_tail_of_those_that_only_grew_gives_their_rows(our_tables):
    grown = [
        made
        for made in our_tables
        if made.oldest == 0 and all(step.startswith(GROWING) for step in made.story)
    ]
    for made in grown:
        batches = [batch.data for batch in sl.Table.open(made.path).tail(stop="latest")]
        check([wrong(made, pa.concat_tables([made.table.schema.empty_table(), *batches]))])


def read_or_error(read: Read, made: RandomTable, version: int | None) -> pa.Table | Exception:
    try:
        return read(made.path, version)
    except (DeltaError, duckdb.Error, pa.ArrowException, OSError) as error:
        return error


def test_deltalake_reads_them(our_tables):
    check(
        wrong(made, read_or_error(read_with_deltalake, made, version), version)
        for made in readable(our_tables, DELTALAKE_LACKS)
        for version in (None, old_version(made))
    )


def test_duckdb_reads_them(our_tables):
    with duckdb_reader() as read:
        check(
            wrong(made, read_or_error(read, made, version), version)
            for made in readable(our_tables, DUCKDB_LACKS)
            for version in (None, old_version(made))
        )


def test_delta_on_spark_reads_them(our_tables, delta_spark):
    asked = [(made, None if n % 5 else old_version(made)) for n, made in enumerate(our_tables)]
    found = delta_spark.read_each([(made.path, version) for made, version in asked])
    check(wrong(made, rows, version) for (made, version), rows in zip(asked, found, strict=True))
