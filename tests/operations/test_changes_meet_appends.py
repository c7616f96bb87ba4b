"""Appends and changes of a table that are under way at the same time, both ways round."""

from collections.abc import Callable

import pyarrow as pa
import pytest

import conflict_cells
import streamlake as sl
from streamlake.log import Log
from streamlake.testing import TableBuilder

MORE = pa.field("more", pa.string())
DAY = pa.field("n", pa.date32())
CHANGES: dict[str, tuple[Callable[[sl.Table], object], list[dict[str, object]]]] = {
    "a property": (
        lambda table: table.set_properties({"team": "orders"}),
        [{"p": "a", "n": 1}, {"p": "b", "n": 2}],
    ),
    "a feature": (
        lambda table: table.set_properties({"delta.enableInCommitTimestamps": "true"}),
        [{"p": "a", "n": 1}, {"p": "b", "n": 2}],
    ),
    "a new column": (
        lambda table: table.add_columns([MORE]),
        [{"p": "a", "n": 1, "more": None}, {"p": "b", "n": 2, "more": None}],
    ),
    "a renamed column": (
        lambda table: table.rename_column("n", "number"),
        [{"p": "a", "number": 1}, {"p": "b", "number": 2}],
    ),
    "a renamed partition column": (
        lambda table: table.rename_column("p", "part"),
        [{"part": "a", "n": 1}, {"part": "b", "n": 2}],
    ),
    "a dropped column": (lambda table: table.drop_columns(["n"]), [{"p": "a"}, {"p": "b"}]),
    "a column whose name was taken over": (
        lambda table: (
            table.rename_column("n", "old"),
            table.add_columns([pa.field("n", "date32")]),
        ),
        [{"p": "a", "old": 1, "n": None}, {"p": "b", "old": 2, "n": None}],
    ),
    "a widened type": (
        lambda table: table.alter_column("n", type=pa.int64()),
        [{"p": "a", "n": 1}, {"p": "b", "n": 2}],
    ),
    "a comment": (
        lambda table: table.alter_column("n", comment="how many"),
        [{"p": "a", "n": 1}, {"p": "b", "n": 2}],
    ),
    "a domain": (
        lambda table: table.set_domain_metadata("com.example", "x"),
        [{"p": "a", "n": 1}, {"p": "b", "n": 2}],
    ),
}
SCHEMA = pa.schema(
    [pa.field("p", pa.string()), pa.field("n", pa.int32()), pa.field("k", pa.int32())]
)


MAPPED_ONLY = ("renamed", "dropped", "taken over")
CASES = [
    (name, mode)
    for name in CHANGES
    for mode in ("none", "name")
    if mode == "name" or not any(word in name for word in MAPPED_ONLY)
]


def two_handles(mode: str) -> tuple[conflict_cells.LetsOneIn, sl.Table, sl.Table]:
    """Of a table with one row, and the store in which one can come between."""
    store = conflict_cells.LetsOneIn()
    base = TableBuilder(store).schema(SCHEMA).partitioned_by("p")
    properties = {"delta.columnMapping.mode": mode, "delta.enableTypeWidening": "true"}
    table = base.properties(properties).append(row("a", 1)).build()
    return store, table, sl.Table(Log(store, clock=table.log.clock))


def row(p: str, n: int) -> pa.Table:
    return pa.table([[p], [n], [None]], schema=SCHEMA)


def rows_of(table: sl.Table) -> list[dict[str, object]]:
    found = table.snapshot().to_arrow().drop_columns(["k"])
    return sorted(found.to_pylist(), key=lambda each: str(next(iter(each.values()))))


@pytest.mark.parametrize(("name", "mode"), CASES)
def test_an_append_that_was_staged_before(name, mode):
    _, table, other = two_handles(mode)
    change, rows = CHANGES[name]
    stager = table.stager()
    files = stager.stage(row("b", 2))
    change(other)
    table.commit_staged(files, staged_by=stager)
    assert rows_of(other) == rows


@pytest.mark.parametrize(("name", "mode"), CASES)
def test_an_append_that_comes_between(name, mode):
    store, table, other = two_handles(mode)
    change, rows = CHANGES[name]
    store.meanwhile = lambda: other.append(row("b", 2))
    change(table)
    assert rows_of(other) == rows


def test_rows_that_were_staged_before_a_constraint_are_not_taken_unchecked():
    _, table, other = two_handles("none")
    stager = table.stager()
    files = stager.stage(row("b", -2))
    other.add_constraint("positive", "n > 0")
    with pytest.raises(sl.MetadataChangedError, match=r"positive \(n > 0\) is new"):
        table.commit_staged(files, staged_by=stager)
    with pytest.raises(sl.ConstraintViolationError, match="positive"):
        table.append(row("b", -2))
    table.append(row("b", 2))
    assert rows_of(other) == [{"p": "a", "n": 1}, {"p": "b", "n": 2}]


def test_rows_that_were_staged_before_a_constraint_went_are_taken():
    _, table, other = two_handles("none")
    table.add_constraint("positive", "n > 0")
    stager = table.stager()
    files = stager.stage(row("b", 2))
    other.drop_constraint("positive")
    assert table.commit_staged(files, staged_by=stager).version == 4


def test_rows_that_come_while_a_constraint_is_checked_stop_it():
    store, table, other = two_handles("none")
    store.meanwhile = lambda: other.append(row("b", -2))
    with pytest.raises(sl.ConcurrentAppendError):
        table.add_constraint("positive", "n > 0")
    with pytest.raises(sl.ConstraintViolationError):
        table.add_constraint("positive", "n > 0")


def test_rows_that_come_while_nulls_are_looked_for_stop_not_null():
    store, table, other = two_handles("none")
    store.meanwhile = lambda: other.append(pa.table([["b"], [None], [None]], schema=SCHEMA))
    with pytest.raises(sl.ConcurrentAppendError):
        table.alter_column("n", nullable=False)
