"""Every operation against every other, each in a process of its own: whoever wins, by the rules."""

import multiprocessing as mp
import shutil
from dataclasses import dataclass

import pytest

import streamlake as sl
from conflict_cells import (
    CELLS,
    LEVELS,
    OPERATIONS,
    ROWS,
    SCHEMA,
    Cell,
    expected_error,
    expected_rows,
    fill,
    properties,
    rows_of,
    stage,
)
from streamlake.testing import TableBuilder

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
STAGED_AT = len(ROWS)
PATIENCE_S = 120


@dataclass(frozen=True)
class Ended:
    """How one side of a meeting ended."""

    version: int | None = None
    error: str | None = None


def meetings() -> list[Cell]:
    """The cells without their reversals: which side wins, the race decides."""
    return [c for c in CELLS if OPERATIONS.index(c.loser) <= OPERATIONS.index(c.winner)]


def run_side(root: str, side: int, barrier, answers) -> None:
    """One of two processes: through all meetings, in step with the other."""
    for number, cell in enumerate(meetings()):
        table = sl.Table.open(f"{root}/{number}")
        staged = stage(table, *cell.sides[side], overlap=cell.overlap)
        barrier.wait(PATIENCE_S)
        try:
            ended = Ended(version=table.log.commit(staged).version)
        except sl.StreamlakeError as error:
            ended = Ended(error=type(error).__name__)
        answers.put((number, side, ended))
    answers.close()
    answers.join_thread()


@pytest.fixture(scope="module")
def raced(tmp_path_factory):
    """Both ends of every meeting, by its number and side, and where the tables are."""
    root = tmp_path_factory.mktemp("races")
    for level in LEVELS:
        base = TableBuilder(root / level).schema(SCHEMA).partitioned_by("p")
        fill(base.properties(properties(level)).build())
    for number, cell in enumerate(meetings()):
        shutil.copytree(root / cell.level, root / str(number))
    context = mp.get_context("fork")
    barrier, answers = context.Barrier(2), context.Queue()
    sides = [
        context.Process(target=run_side, args=(str(root), side, barrier, answers))
        for side in range(2)
    ]
    for process in sides:
        process.start()
    ends = {}
    for _ in range(2 * len(meetings())):
        number, side, ended = answers.get(timeout=PATIENCE_S)
        ends[number, side] = ended
    for process in sides:
        process.join(PATIENCE_S)
    assert [process.exitcode for process in sides] == [0, 0]
    return root, ends


@pytest.mark.parametrize("number", range(len(meetings())), ids=lambda n: str(meetings()[n]))
def test_of_two_processes_that_meet_the_second_is_ruled_by_the_first(number, raced):
    root, ends = raced
    cell = meetings()[number]
    ended = [ends[number, side] for side in range(2)]
    first = min((0, 1), key=lambda side: ended[side].version or STAGED_AT + 9)
    assert ended[first] == Ended(version=STAGED_AT + 1)
    met = expected_error(cell if first == 0 else cell.reversed)
    second = Ended(error=met.__name__) if met else Ended(version=STAGED_AT + 2)
    assert ended[1 - first] == second
    committed = [cell.sides[first]] if met else [cell.sides[first], cell.sides[1 - first]]
    assert rows_of(sl.Table.open(root / str(number))) == expected_rows(
        committed, overlap=cell.overlap
    )
