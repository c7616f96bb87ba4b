"""Random tables that deltalake wrote read the same in streamlake, which goes on with them."""

from __future__ import annotations

import pyarrow as pa
import pytest

import streamlake as sl
from peers.deltalake_tables import DeltalakeTable, deltalake_table
from peers.random_rows import random_rows
from peers.readers import read_with_deltalake
from peers.sameness import check, told


@pytest.fixture(scope="module")
def their_tables(seeds, tmp_path_factory) -> list[DeltalakeTable]:
    folder = tmp_path_factory.mktemp("deltalake")
    return [deltalake_table(folder / str(seed), seed) for seed in seeds]


def name(made: DeltalakeTable) -> str:
    return f"--seed {made.seed} --tables 1 ({made.path}): {', '.join(made.story)}"


def test_streamlake_reads_them(their_tables):
    check(
        told(name(made), sl.Table.open(made.path).snapshot().to_arrow(), made.expected)
        for made in their_tables
    )


def test_a_tail_gives_the_rows_of_those_that_only_grew(their_tables):
    grown = [made for made in their_tables if all("append" in step for step in made.story)]
    for made in grown:
        batches = [batch.data for batch in sl.Table.open(made.path).tail(stop="latest")]
        check([told(name(made), pa.concat_tables(batches), made.expected)])


def test_deltalake_reads_what_streamlake_adds_to_them(their_tables):
    some = their_tables[::4]
    for made in some:
        rows = random_rows(made.random, made.schema, made.partition_by, made.next_id, 5)
        table = sl.Table.open(made.path)
        table.append(pa.Table.from_pylist(rows, schema=made.schema))
        table.checkpoint()
        made.rows += rows
    check(told(name(made), read_with_deltalake(made.path), made.expected) for made in some)
