"""Batches are cut as the bounds say, and every Offset resumes right after its batch."""

import itertools
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamlake as sl
from stream.builders import (
    SCHEMA,
    all_numbers,
    change_metadata,
    commit,
    new_table,
    numbers,
    offset_of,
    remove,
    rows,
    stage,
    table_of,
)
from streamlake.data import DEFAULT_READ_LIMITS
from streamlake.protocol import schema_to_json
from streamlake.stream.reading_ahead import LARGE_FILE_BYTES

FILES = st.lists(st.integers(0, 5), max_size=4)
"""The numbers of rows of the files of one commit."""
COMMITS = st.lists(st.one_of(FILES, st.just("optimize"), st.just("marker")), max_size=6)


def random_table(commits) -> tuple[sl.Table, list[int]]:
    """A table with those commits, and the numbers that its tail hands on."""
    table = new_table()
    expected: list[int] = []
    live: list[sl.AddFile] = []
    for what in commits:
        if what == "marker":
            table.commit_staged((), txn=sl.SetTransaction("a", table.version))
        elif what == "optimize":
            merged = stage(table, *expected, data_change=False)
            gone = [remove(add, data_change=False) for add in live]
            commit(table, *gone, merged)
            live = [merged]
        else:
            numbers = itertools.count(len(expected))
            files = [list(itertools.islice(numbers, count)) for count in what]
            adds = [stage(table, *file) for file in files]
            commit(table, *adds)
            live += adds
            expected += itertools.chain(*files)
    return table, expected


@settings(max_examples=60)
@given(
    commits=COMMITS,
    max_rows=st.integers(1, 7),
    whole_files=st.booleans(),
    start=st.sampled_from(["earliest", "snapshot"]),
)
def test_every_offset_resumes_with_exactly_what_follows(commits, max_rows, whole_files, start):
    table, expected = random_table(commits)
    options = sl.TailOptions(max_rows=max_rows, whole_files=whole_files)
    batches = list(table.tail(start, stop="latest", options=options))
    found = [batch.data["n"].to_pylist() for batch in batches]
    assert [n for part in found for n in part] == expected
    for done, batch in enumerate(batches, start=1):
        offset = sl.Offset.from_json(offset_of(batch).to_json())
        rest = all_numbers(table, start=offset)
        assert rest == [n for part in found[done:] for n in part]


@settings(max_examples=30)
@given(commits=COMMITS, max_rows=st.integers(1, 7))
def test_offsets_rise_and_batches_keep_their_bound(commits, max_rows):
    table, _ = random_table(commits)
    options = sl.TailOptions(max_rows=max_rows)
    batches = list(table.tail(stop="latest", options=options))
    offsets = [offset_of(batch) for batch in batches]
    assert all(before < after for before, after in itertools.pairwise(offsets))
    assert all(0 < batch.data.num_rows <= max_rows for batch in batches)


def test_a_batch_of_whole_files_has_a_marker():
    table = new_table()
    commit(table, stage(table, 1, 2, 3), stage(table, 4, 5, 6))
    options = sl.TailOptions(max_rows=2, whole_files=True)
    batches = list(table.tail(stop="latest", options=options))
    assert [batch.data["n"].to_pylist() for batch in batches] == [[1, 2, 3], [4, 5, 6]]
    offsets = [offset_of(batch) for batch in batches]
    assert [sl.Offset.from_marker(o.to_marker(), table.id) for o in offsets] == offsets


def test_a_batch_inside_of_a_file_counts_its_rows():
    table = table_of([1, 2, 3, 4, 5])
    options = sl.TailOptions(max_rows=2)
    offsets = [offset_of(batch) for batch in table.tail(stop="latest", options=options)]
    assert [(o.reservoir_version, o.index, o.rows_done) for o in offsets] == [
        (1, -1, 2),
        (1, -1, 4),
        (2, -1, 0),
    ]


def test_files_of_one_commit_share_a_batch():
    table = new_table()
    commit(table, stage(table, 1), stage(table, 2), stage(table, 3))
    assert [b.data["n"].to_pylist() for b in table.tail(stop="latest")] == [[1, 2, 3]]


def large_table() -> tuple[sl.Table, pa.Table]:
    """A table of one file that is read in parts."""
    count = 3 * DEFAULT_READ_LIMITS.batch_rows + 11
    random = Random(0)
    text = [random.randbytes(24).hex() for _ in range(count)]
    data = pa.table({"n": list(range(count)), "text": text})
    table = sl.Table.create("memory://large", schema=SCHEMA.append(pa.field("text", "string")))
    table.append(data)
    return table, data


def test_a_large_file_is_cut_and_resumes_between_and_inside_of_its_parts():
    table, data = large_table()
    (add,) = table.snapshot().files()
    assert add.size >= LARGE_FILE_BYTES
    options = sl.TailOptions(max_rows=50_000, columns=["n"])
    batches = list(table.tail(stop="latest", options=options))
    assert numbers(batches) == data["n"].to_pylist()
    done = 0
    for batch in batches:
        done += batch.data.num_rows
        resumed = table.tail(offset_of(batch), stop="latest", options=options)
        assert numbers(resumed) == list(range(done, data.num_rows))


def test_many_waiting_commits_come_in_order():
    table = table_of(*([n] for n in range(300)))
    assert all_numbers(table) == list(range(300))


def test_a_resumed_snapshot_needs_its_version():
    table = table_of([1], [2], [3])
    options = sl.TailOptions(max_rows=1)
    first = next(table.tail("snapshot", options=options))
    table.append(rows(4))
    assert offset_of(first).is_starting_version
    assert all_numbers(table, start=first.offset) == [2, 3, 4]


def test_the_last_batch_of_a_snapshot_resumes_in_the_log():
    table = table_of([1], [2])
    (whole,) = table.tail("snapshot", stop="latest")
    assert whole.offset == sl.Offset.after_version(2, table.id)


def test_an_offset_of_delta_before_any_file_of_its_snapshot():
    table = table_of([1], [2])
    offset = sl.Offset(reservoir_id=table.id, reservoir_version=2, is_starting_version=True)
    assert sorted(all_numbers(table, start=offset)) == [1, 2]


def test_an_offset_of_another_table_is_refused():
    table, other = table_of([1]), table_of([2])
    for version in (0, 1, 2):
        offset = sl.Offset(reservoir_id=other.id, reservoir_version=version)
        with pytest.raises(sl.TableReplacedError, match=other.id):
            list(table.tail(offset, stop="latest"))


def test_an_offset_past_the_end_is_refused():
    table = table_of([1])
    for place in ({"reservoir_version": 3}, {"reservoir_version": 2, "index": 0}):
        with pytest.raises(sl.TableReplacedError, match="past the table's newest version"):
            table.tail(sl.Offset(reservoir_id=table.id, **place))


@pytest.mark.parametrize("place", [{"index": 1}, {"index": 0, "rows_done": 1}, {"rows_done": 3}])
def test_an_offset_past_the_rows_of_its_version_is_refused(place):
    table = table_of([1, 2])
    offset = sl.Offset(reservoir_id=table.id, reservoir_version=1, **place)
    with pytest.raises(sl.InvalidInputError):
        list(table.tail(offset, stop="latest"))


def widened(table: sl.Table) -> str:
    """The table's schema with one more column."""
    wide = table.schema.append(pa.field("m", pa.int64()))
    return schema_to_json(wide)


def test_rows_have_the_schema_of_their_version():
    table = table_of([1])
    change_metadata(table, schema_string=widened(table))
    table.append(pa.table({"n": [2], "m": [3]}))
    batches = list(table.tail(stop="latest"))
    assert [batch.data.to_pylist() for batch in batches] == [[{"n": 1}], [{"n": 2, "m": 3}]]
    (after,) = table.tail(offset_of(batches[0]), stop="latest")
    assert after.data.equals(batches[1].data)


def test_the_position_before_a_change_of_schema_still_notices_it():
    table = table_of([1])
    renamed = pa.schema([pa.field("renamed", pa.int64())])
    change_metadata(table, schema_string=schema_to_json(renamed))
    first = next(table.tail())
    with pytest.raises(sl.StreamError, match="changes the table's columns"):
        list(table.tail(offset_of(first), stop="latest"))
