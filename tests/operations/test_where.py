"""A condition chooses rows, and spares the files that can't hold any."""

import datetime as dt

import pyarrow as pa
import pytest

import streamlake as sl
from streamlake.data.predicates import read_predicate
from streamlake.storage import MemoryStore
from streamlake.testing import CountingStore, TableBuilder

SCHEMA = pa.schema(
    [
        pa.field("day", pa.date32()),
        pa.field("Id", pa.int64()),
        pa.field("st", pa.struct([pa.field("x", pa.string())])),
    ]
)


def part(day: int, *ids: int | None) -> pa.Table:
    date = dt.date(2024, 1, day)
    rows = [{"day": date, "Id": n, "st": None if n is None else {"x": f"v{n}"}} for n in ids]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def builder(store: object = None, **properties: str) -> TableBuilder:
    made = TableBuilder(store).schema(SCHEMA).partitioned_by("day").properties(properties)
    return made.append(part(1, 1, 2)).append(part(2, 3, None)).append(part(3, 50, 60))


MAPPED = {"delta.columnMapping.mode": "name"}


@pytest.mark.parametrize("properties", [{}, MAPPED], ids=["plain", "mapped"])
@pytest.mark.parametrize("checkpointed", [False, True], ids=["commits", "checkpoint"])
@pytest.mark.parametrize(
    ("where", "ids", "files"),
    [
        ("id = 2", [2], 1),
        ("id > 2", [3, 50, 60], 2),
        ("id IS NULL", [None], 1),
        ("day > '2024-01-01' AND id < 50", [3], 1),
        ("st.x = 'v50' OR day = DATE '2024-01-01'", [1, 2, 50], 2),
        ("st.X LIKE 'v6%'", [60], 1),
        ("month(day) = 2", [], 0),
        ("TRUE", [1, 2, 3, None, 50, 60], 3),
    ],
)
def test_rows_and_files_are_chosen_by_a_condition(properties, checkpointed, where, ids, files):
    made = builder(**properties)
    snapshot = (made.checkpoint() if checkpointed else made).build().snapshot()
    assert snapshot.to_arrow(columns=["Id"], where=where)["Id"].to_pylist() == ids
    assert len(snapshot.files(where=where)) == files


def test_only_files_that_may_match_are_opened():
    store = CountingStore(MemoryStore())
    snapshot = builder(store).build().snapshot()
    store.requests.clear()
    assert snapshot.to_arrow(where="id = 50").num_rows == 1
    assert len(store.requests) == 1


def test_columns_of_the_condition_need_not_be_asked_for():
    found = builder().build().snapshot().to_arrow(columns=["st"], where="id = 1")
    assert found.to_pylist() == [{"st": {"x": "v1"}}]
    assert builder().build().snapshot().to_arrow(columns=[], where="id < 3").num_rows == 2


def test_no_match_is_a_table_without_rows():
    found = builder().build().snapshot().to_arrow(columns=["Id"], where="id = 1000")
    assert found.schema == pa.schema([SCHEMA.field("Id")])
    assert found.num_rows == 0


@pytest.mark.parametrize("where", ["", "nope = 1", "id", "id = 1 OR rand() > 0.5"])
def test_what_is_no_condition_is_refused_before_anything_is_read(where):
    store = CountingStore(MemoryStore())
    snapshot = builder(store).build().snapshot()
    store.requests.clear()
    for ask in (snapshot.to_arrow, snapshot.files):
        with pytest.raises(sl.InvalidInputError):
            ask(where=where)
    assert store.requests == []


def test_what_was_read_is_told_apart_from_other_files():
    snapshot = builder().build().snapshot()
    first, second, third = snapshot.files()
    predicate = read_predicate("id BETWEEN 2 AND 3 OR day = '2024-01-03'", snapshot.metadata)
    assert predicate.sql.startswith("id BETWEEN")
    assert [predicate.may_match([file], snapshot.metadata) for file in (first, second, third)] == [
        True,
        True,
        True,
    ]
    narrow = read_predicate("id = 55", snapshot.metadata)
    assert [narrow.may_match([file], snapshot.metadata) for file in (first, second, third)] == [
        False,
        False,
        True,
    ]
    assert not narrow.may_match([], snapshot.metadata)


def test_a_file_may_match_what_its_table_no_longer_can_be_asked():
    snapshot = builder().build().snapshot()
    other = TableBuilder().append(1).build().snapshot()
    predicate = read_predicate("id = 1000", snapshot.metadata)
    assert predicate.may_match(list(snapshot.files()), other.metadata)
