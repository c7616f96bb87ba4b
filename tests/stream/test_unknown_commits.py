"""A pipeline into a store that loses, delays and refuses answers: every row once, in order."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamlake as sl
from stream.builders import SCHEMA, fresh, new_table, rows, stored
from stream.ends import PART, NumbersSource
from streamlake import operations
from streamlake.log import Limits, Log
from streamlake.storage import MemoryStore
from streamlake.testing import Fault, FaultyStore, ManualClock

IMPATIENT = Limits(puts_per_version=2, commit_deadline_s=10.0)
RUNS = 40
"""How often an operator starts a pipeline again that gave up."""
faults = st.lists(
    st.builds(
        Fault,
        kind=st.sampled_from(["lost_after", "lost_before", "conflict", "late"]),
        path=st.just("_delta_log"),
        nth=st.integers(1, 12),
        times=st.integers(1, 4),
        after=st.one_of(st.none(), st.integers(1, 8)),
    ),
    max_size=5,
)


def empty_store() -> MemoryStore:
    store = MemoryStore()
    operations.create(Log(store, clock=ManualClock()), SCHEMA)
    return store


def run(store: FaultyStore, clock: sl.Clock, *, linger_ms: int = 0) -> sl.PipelineResult:
    """One process's pipeline of the numbers 0 to 9 into the table."""
    log = Log(store, clock=clock, limits=IMPATIENT, single_writer=True)
    return sl.Pipeline(
        NumbersSource([1, 2, 3, 1, 3]),
        sl.TableSink(log, app_id="ingest"),
        batching=sl.Batching(max_rows=4, linger_ms=linger_ms),
        clock=clock,
    ).run()


def run_until_done(store: FaultyStore, clock: sl.Clock, *, linger_ms: int) -> None:
    """As an operator does: start it again where it gave up."""
    for _ in range(RUNS):
        try:
            run(store, clock, linger_ms=linger_ms)
        except (sl.CommitError, sl.StorageError):
            continue
        return
    pytest.fail("the pipeline never came to its end")


def numbers_in(store: MemoryStore):
    return stored(sl.Table(Log(store, clock=ManualClock())))


@settings(max_examples=150)
@given(plan=faults, linger_ms=st.sampled_from([0, 60_000]))
def test_every_row_is_stored_once_and_in_order(plan, linger_ms):
    inner = empty_store()
    store = FaultyStore(inner, plan)
    run_until_done(store, ManualClock(), linger_ms=linger_ms)
    assert numbers_in(inner) == list(range(10))
    store.land_pending()
    assert numbers_in(inner) == list(range(10))


def late(*, after: int | None) -> FaultyStore:
    """The commit at version 1 gets no answer, as often as it is tried, and lands later."""
    path = f"{1:020d}.json"
    times = IMPATIENT.puts_per_version
    return FaultyStore(empty_store(), [Fault(kind="late", path=path, times=times, after=after)])


def test_a_commit_that_lands_before_the_positions_are_read_is_not_repeated():
    store = late(after=4)
    result = run(store, ManualClock())
    assert (numbers_in(store.inner), result.rewinds) == (list(range(10)), 1)


def test_a_commit_that_lands_after_all_finds_its_version_taken():
    store = late(after=None)
    result = run(store, ManualClock())
    assert (len(store.pending), result.rewinds) == (IMPATIENT.puts_per_version, 1)
    store.land_pending()
    assert numbers_in(store.inner) == list(range(10))


@pytest.mark.parametrize("after", range(1, 12))
def test_a_late_commit_is_told_apart_at_whatever_moment_it_lands(after):
    store = late(after=after)
    run(store, ManualClock())
    store.land_pending()
    assert numbers_in(store.inner) == list(range(10))


def test_a_store_that_never_answers_ends_the_run_and_a_later_one_goes_on():
    store = FaultyStore(
        empty_store(), [Fault(kind="lost_before", path=f"{3:020d}.json", times=100)]
    )
    with pytest.raises(sl.CommitUnknownError):
        run(store, ManualClock())
    run(FaultyStore(store.inner), ManualClock(seed=1))
    assert numbers_in(store.inner) == list(range(10))


def test_two_pipelines_of_one_app_id_that_take_turns_store_every_row_once():
    table = new_table()
    source = NumbersSource([1] * 6)
    theirs = fresh(table)
    sink = sl.TableSink(fresh(table), app_id="ingest")

    def other_owner(event: sl.PipelineEvent) -> None:
        if event.batch is None or event.batch.positions[PART] % 2:
            return
        theirs.log.refresh()
        done = theirs.log.head.markers[f"ingest/{PART}"].version
        txn = sl.SetTransaction(f"ingest/{PART}", done + 1)
        theirs.append(rows(done + 1), txn=txn)

    result = sl.Pipeline(source, sink, clock=ManualClock(), on_event=other_owner).run()
    assert stored(table) == list(range(6))
    assert result.rewinds >= 2
