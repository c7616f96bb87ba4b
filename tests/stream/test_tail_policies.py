"""What a tail does at removed data, changed columns and lost versions."""

from typing import Any

import pyarrow as pa
import pytest

import streamlake as sl
from stream.builders import (
    SCHEMA,
    all_numbers,
    before_error,
    change_metadata,
    commit,
    drop_commits,
    new_table,
    numbers,
    offset_of,
    remove,
    rows,
    stage,
    table_of,
    take,
)
from streamlake.protocol import schema_to_json


def with_delete() -> sl.Table:
    """Rows 1, 2; a commit that only removes 1; row 3."""
    table = new_table()
    first = stage(table, 1)
    commit(table, first)
    commit(table, stage(table, 2))
    commit(table, remove(first))
    commit(table, stage(table, 3))
    return table


def with_rewrite() -> sl.Table:
    """Rows 1, 2; a commit that rewrites 1 as 10 and keeps 2; row 3."""
    table = new_table()
    first = stage(table, 1, 2)
    commit(table, first)
    commit(table, remove(first), stage(table, 10, 2))
    commit(table, stage(table, 3))
    return table


@pytest.mark.parametrize(("made", "before"), [(with_delete, [1, 2]), (with_rewrite, [1, 2])])
def test_removed_data_stops_the_tail_after_what_came_before(made, before):
    told = "removes data that was handed on"
    assert before_error(made().tail(), sl.DataRemovedError, match=told) == before


@pytest.mark.parametrize(
    ("policy", "deleted", "rewritten"),
    [
        ("ignore_deletes", [1, 2, 3], None),
        ("ignore_changes", [1, 2, 3], [1, 2, 10, 2, 3]),
        ("skip_change_commits", [1, 2, 3], [1, 2, 3]),
    ],
)
def test_a_policy_says_what_to_do_at_removed_data(policy, deleted, rewritten):
    options = sl.TailOptions(on_removed=policy)
    assert all_numbers(with_delete(), options=options) == deleted
    if rewritten is None:
        with pytest.raises(sl.DataRemovedError, match="skip_change_commits"):
            all_numbers(with_rewrite(), options=options)
    else:
        assert all_numbers(with_rewrite(), options=options) == rewritten


def test_removed_data_is_told_with_where_to_go_on():
    with pytest.raises(sl.DataRemovedError, match="start=4"):
        all_numbers(with_delete())


def test_an_offset_inside_of_a_commit_that_is_skipped_now_goes_on_after_it():
    table = with_rewrite()
    options = sl.TailOptions(on_removed="ignore_changes", max_rows=1)
    inside = offset_of(take(table.tail(options=options), 3)[-1])
    skip = sl.TailOptions(on_removed="skip_change_commits")
    assert all_numbers(table, start=inside, options=skip) == [3]


def changed(schema: pa.Schema) -> sl.Table:
    """Row 1, then other columns."""
    table = table_of([1])
    change_metadata(table, schema_string=schema_to_json(schema))
    return table


@pytest.mark.parametrize(
    "schema",
    [
        pa.schema([pa.field("m", pa.int64())]),
        pa.schema([pa.field("n", pa.string())]),
        pa.schema([pa.field("N", pa.int64())]),
    ],
)
def test_dropped_renamed_and_retyped_columns_stop_the_tail(schema):
    table = changed(schema)
    batches = table.tail()
    assert numbers(take(batches, 1)) == [1]
    with pytest.raises(sl.StreamError, match="Version 2 changes the table's columns"):
        next(batches)


def test_after_a_change_of_columns_the_version_itself_is_a_start():
    table = changed(pa.schema([pa.field("m", pa.string())]))
    table.append(pa.table({"m": ["x"]}))
    (batch,) = table.tail(2, stop="latest")
    assert batch.data.to_pydict() == {"m": ["x"]}


def test_changes_of_columns_are_followed_where_the_policy_says_so():
    table = changed(pa.schema([pa.field("m", pa.string())]))
    table.append(pa.table({"m": ["x"]}))
    options = sl.TailOptions(on_schema_change="follow")
    found = [batch.data.to_pydict() for batch in table.tail(stop="latest", options=options)]
    assert found == [{"n": [1]}, {"m": ["x"]}]


def test_columns_that_may_be_null_from_now_on_are_followed():
    strict = pa.schema([pa.field("n", pa.int64(), nullable=False)])
    table = sl.Table.create("memory://relaxed", schema=strict)
    table.append(pa.table([pa.array([1])], schema=strict))
    change_metadata(table, schema_string=schema_to_json(SCHEMA))
    table.append(rows(2))
    assert all_numbers(table) == [1, 2]


def test_a_change_of_properties_alone_is_no_change():
    table = table_of([1])
    change_metadata(table, configuration={"delta.appendOnly": "true"})
    table.append(rows(2))
    assert all_numbers(table) == [1, 2]


def truncated() -> sl.Table:
    """Rows 1 to 5, of which log clean-up has left a checkpoint and versions 4 and 5."""
    table = table_of([1], [2], [3])
    table.checkpoint()
    table.append(rows(4))
    table.append(rows(5))
    drop_commits(table, 0, 1, 2, 3)
    return table


@pytest.mark.parametrize("start", ["earliest", 0, 2])
def test_versions_that_were_cleaned_up_are_an_error_that_names_the_snapshot(start):
    with pytest.raises(sl.LogTruncatedError, match='start="snapshot"'):
        truncated().tail(start)


def test_an_offset_whose_version_was_cleaned_up_is_an_error():
    table = table_of([1], [2], [3])
    offset = offset_of(next(table.tail()))
    table.checkpoint()
    drop_commits(table, 0, 1, 2)
    with pytest.raises(sl.LogTruncatedError, match="on_lost"):
        table.tail(offset)


def test_an_offset_inside_of_a_snapshot_that_was_cleaned_up_is_an_error():
    table = table_of([1], [2], [3])
    offset = offset_of(next(table.tail("snapshot", options=sl.TailOptions(max_rows=1))))
    table.append(rows(4))
    table.checkpoint()
    drop_commits(table, 0, 1, 2, 3)
    with pytest.raises(sl.LogTruncatedError):
        table.tail(offset)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("earliest", [4, 5]), ("latest", []), ("resnapshot", [1, 2, 3, 4, 5])],
)
def test_a_policy_says_what_to_do_at_lost_versions(policy, expected, caplog):
    options = sl.TailOptions(on_lost=policy)
    assert sorted(all_numbers(truncated(), options=options)) == expected
    assert f"going on with '{policy}' as on_lost says" in caplog.text


def test_what_is_left_is_read_from_the_first_version_left():
    assert all_numbers(truncated(), start=4) == [4, 5]


def clean_up(table: sl.Table) -> None:
    for number in (2, 3, 4):
        table.append(rows(number))
    table.checkpoint()
    table.append(rows(5))
    drop_commits(table, 0, 1, 2, 3, 4)


def test_a_tail_that_is_overtaken_by_log_clean_up_fails():
    table = table_of([1])
    batches = table.tail()
    assert numbers(take(batches, 1)) == [1]
    clean_up(table)
    with pytest.raises(sl.LogTruncatedError, match="Version 2"):
        next(batches)


@pytest.mark.parametrize(
    ("policy", "expected"), [("earliest", [5]), ("resnapshot", [1, 2, 3, 4, 5])]
)
def test_a_tail_that_is_overtaken_goes_on_as_the_policy_says(policy, expected):
    table = table_of([1])
    batches = table.tail(options=sl.TailOptions(on_lost=policy))
    assert numbers(take(batches, 1)) == [1]
    clean_up(table)
    assert sorted(numbers(take(batches, 1))) == expected


@pytest.mark.parametrize("name", ["on_removed", "on_lost", "on_schema_change"])
def test_an_unknown_policy_is_refused(name):
    unknown: dict[str, Any] = {name: "guess"}
    with pytest.raises(sl.InvalidInputError, match="Choose one of fail"):
        sl.TailOptions(**unknown)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_rows", 0),
        ("max_rows", "5"),
        ("poll_min_s", 0),
        ("poll_max_s", -1.0),
        ("poll_max_s", float("nan")),
        ("poll_min_s", "1"),
        ("columns", "n"),
        ("columns", 1),
    ],
)
def test_options_that_can_not_be_are_refused_by_name(name, value):
    with pytest.raises(sl.InvalidInputError, match=f"^{name} must") as caught:
        sl.TailOptions(**{name: value})
    assert caught.value.found == repr(value)


def test_options_of_another_type_are_refused():
    with pytest.raises(sl.InvalidInputError, match="TailOptions"):
        table_of([1]).tail(options={"max_rows": 5})
