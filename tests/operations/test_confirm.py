"""Reads that are proven to hold by an empty commit."""

import pyarrow as pa
import pytest

import streamlake as sl
from streamlake.log import Log, Transaction, removal
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


NUMBERS = [("n = 2", True), ("n < 3", True), ("n >= 4", False), ("n IS NULL", False)]


@pytest.mark.parametrize(("where", "holds_not"), NUMBERS)
def test_a_read_by_a_condition_holds_unless_a_row_that_was_added_may_satisfy_it(where, holds_not):
    table, other = two_handles()
    snapshot = table.snapshot()
    other.append(pa.table({"n": [1, 2, 3]}))
    if holds_not:
        with pytest.raises(sl.ConcurrentAppendError) as caught:
            table.confirm_read(snapshot, where=where)
        assert caught.value.found.endswith(f"this commit read {where}")
    else:
        assert table.confirm_read(snapshot, where=where).version == 6


@pytest.mark.parametrize(("where", "holds_not"), NUMBERS)
def test_a_read_by_a_condition_holds_unless_a_row_that_was_removed_may_have_satisfied_it(
    where, holds_not
):
    table = TableBuilder().append(pa.table({"n": [1, 2, 3]})).append(times=2).build()
    snapshot = table.snapshot()
    gone = removal(snapshot.files()[0], now_ms=1)
    table.log.commit(Transaction(operation="DELETE", removes=(gone,), read_version=3))
    if holds_not:
        with pytest.raises(sl.ConcurrentDeleteReadError):
            table.confirm_read(snapshot, where=where)
    else:
        assert table.confirm_read(snapshot, where=where).version == 5


def test_a_condition_that_is_none_is_told_before_anything_is_committed():
    table, _ = two_handles()
    with pytest.raises(sl.InvalidInputError, match="m"):
        table.confirm_read(table.snapshot(), where="m = 1")
    assert table.snapshot().version == 4


@pytest.mark.parametrize("mode", ["name", "id"])
def test_conditions_speak_of_logical_names(mode):
    schema = pa.schema([pa.field("p", pa.string()), pa.field("n", pa.int64())])
    builder = TableBuilder().schema(schema).partitioned_by("p")
    table = builder.properties({"delta.columnMapping.mode": mode}).build()
    table.rename_column("p", "part")
    table.rename_column("n", "number")
    snapshot = table.snapshot()
    table.append(pa.table({"part": ["a"], "number": [7]}))
    assert table.confirm_read(snapshot, where="part = 'b' OR number > 7").version == 4
    for where in ("part = 'a'", "number = 7"):
        with pytest.raises(sl.ConcurrentAppendError):
            table.confirm_read(snapshot, where=where)
