"""Every operation against every other, under both isolation levels: interleavings by force."""

from collections.abc import Callable

import pytest

import streamlake as sl
from conflict_cells import (
    CELLS,
    LEVELS,
    SCHEMA,
    Cell,
    LetsOneIn,
    expected_error,
    expected_rows,
    fill,
    properties,
    rows_of,
    stage,
)
from streamlake.log import Log
from streamlake.storage import MemoryStore
from streamlake.testing import ManualClock, TableBuilder


@pytest.fixture(scope="module")
def files():
    """The files of a fresh table, by isolation level: each cell copies them."""
    made = {}
    for level in LEVELS:
        store = MemoryStore()
        base = TableBuilder(store).schema(SCHEMA).partitioned_by("p").properties(properties(level))
        fill(base.build())
        made[level] = {meta.path: store.get(meta.path) for meta in store.list_from("")}
    return made


def two_handles(contents: dict[str, bytes]) -> tuple[LetsOneIn, sl.Table, sl.Table]:
    store = LetsOneIn()
    for path, data in contents.items():
        store.put(path, data)
    clock = ManualClock()
    first, second = (sl.Table(Log(store, clock=clock)) for _ in range(2))
    return store, first, second


def outcome(commit: Callable[[], object]) -> type[Exception] | None:
    try:
        commit()
    except sl.StreamlakeError as error:
        return type(error)
    return None


def check_rows(table: sl.Table, cell: Cell) -> None:
    committed = cell.sides if expected_error(cell) is None else cell.sides[:1]
    assert rows_of(table) == expected_rows(committed, overlap=cell.overlap)


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_a_winner_that_comes_between_the_look_and_the_put(cell, files):
    store, loser, winner = two_handles(files[cell.level])
    winning, staged = (
        stage(table, *side, overlap=cell.overlap)
        for table, side in zip((winner, loser), cell.sides, strict=True)
    )
    store.meanwhile = lambda: winner.log.commit(winning)
    assert outcome(lambda: loser.log.commit(staged)) is expected_error(cell)
    check_rows(winner, cell)


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_a_winner_that_the_handle_has_seen_before_it_commits(cell, files):
    _, loser, winner = two_handles(files[cell.level])
    winning, staged = (
        stage(table, *side, overlap=cell.overlap)
        for table, side in zip((winner, loser), cell.sides, strict=True)
    )
    winner.log.commit(winning)
    loser.markers()
    error = outcome(lambda: loser.log.commit(staged))
    if cell.loser == "append" and expected_error(cell) is sl.ProtocolChangedError:
        assert error is sl.UnsupportedFeatureError  # the handle knows the new protocol by now
    else:
        assert error is expected_error(cell)
    check_rows(winner, cell)
