"""Reads that are proven to hold by an empty commit."""

import pyarrow as pa
import pytest

import streamlake as sl
from streamlake.log import Log
from streamlake.testing import TableBuilder


def two_handles() -> tuple[sl.Table, sl.Table]:
    table = TableBuilder().append(times=4).build()
    return table, sl.Table(Log(table.log.store, clock=table.log.clock))


def test_a_read_that_holds_is_a_commit_without_files():
    table, other = two_handles()
    result = table.confirm_read(table.snapshot())
    assert result.version == 5
    (record,) = other.history(limit=1)
    assert record.operation == "READ"
    assert (other.snapshot().files(), other.version) == (table.snapshot().files(), 5)


def test_a_read_does_not_hold_once_rows_were_appended():
    table, other = two_handles()
    snapshot = table.snapshot()
    other.append(snapshot.to_arrow())
    with pytest.raises(sl.ConcurrentAppendError, match="TRUE"):
        table.confirm_read(snapshot)
    assert table.confirm_read(table.snapshot()).version == 6


def test_a_read_holds_although_its_files_were_rewritten():
    table, other = two_handles()
    snapshot = table.snapshot()
    assert other.optimize().commits == 1
    assert table.confirm_read(snapshot).version == 6


def test_a_read_of_an_empty_table_does_not_hold_once_there_are_rows():
    table = TableBuilder().build()
    empty = table.snapshot()
    table.append(pa.table({"n": [1]}))
    with pytest.raises(sl.ConcurrentAppendError):
        table.confirm_read(empty)


def test_what_another_handle_read_later_than_this_one_knows_can_be_confirmed():
    table, other = two_handles()
    other.append(table.snapshot().to_arrow())
    assert table.confirm_read(other.snapshot()).version == 6
