"""What a tail asks of its store, how long it waits, and which threads it runs."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

import streamlake as sl
from stream.builders import QUICK, clock_of, commit, numbers, rows, stage, table_of, take
from streamlake.log import Log
from streamlake.stream import Tailer, tail
from streamlake.stream.options import LOCAL_POLL_MAX_S, LOCAL_POLL_MIN_S
from streamlake.testing import CountingStore


class RemoteStore(CountingStore):
    """A store that is told apart from a local one by its URL."""

    @property
    def url(self) -> str:
        return "s3://bucket/table"


def counted(table: sl.Table, kind=CountingStore) -> tuple[Log, CountingStore]:
    store = kind(table.log.store)
    return Log(store, clock=table.log.clock, limits=QUICK), store


def idle(tailer: Tailer, polls: int):
    """Let a tailer find nothing that many times."""
    steps = tailer.steps()
    assert take(steps, polls) == [None] * polls
    return steps


def test_an_idle_tailer_makes_one_request_a_poll():
    log, store = counted(table_of([1]))
    tailer = Tailer(log, start="latest")
    store.requests.clear()
    idle(tailer, 200)
    assert len(store.requests) == 200


def test_at_the_head_a_commit_costs_a_request_for_it_and_one_for_its_file():
    table = table_of([1])
    log, store = counted(table)
    tailer = Tailer(log, start="latest")
    steps = idle(tailer, 3)
    table.append(rows(2))
    store.requests.clear()
    assert numbers([next(steps)]) == [2]
    assert [method for method, _ in store.requests] == ["get", "get"]


def test_beginning_at_the_latest_with_a_handle_that_has_read_makes_one_request():
    table = table_of([1], [2])
    log, store = counted(table)
    log.refresh()
    store.requests.clear()
    tail(log, start="latest")
    assert len(store.requests) == 1


def test_pauses_grow_with_the_time_since_the_last_commit():
    table = table_of([1])
    clock = clock_of(table)
    idle(Tailer(table.log, start="latest"), 200)
    assert clock.sleeps[0] == LOCAL_POLL_MIN_S
    assert clock.sleeps[-1] == LOCAL_POLL_MAX_S
    assert clock.sleeps == sorted(clock.sleeps)


def test_a_pause_is_a_fixed_part_of_the_gap_before_it():
    table = table_of([1])
    idle(Tailer(table.log, start="latest"), 100)
    waited = 0.0
    for pause in clock_of(table).sleeps:
        assert pause <= max(LOCAL_POLL_MIN_S, waited / 8 + 1e-9)
        waited += pause


def test_after_a_commit_pauses_are_short_again():
    table = table_of([1])
    steps = idle(Tailer(table.log, start="latest"), 200)
    table.append(rows(2))
    assert numbers([next(steps)]) == [2]
    assert next(steps) is None
    assert clock_of(table).sleeps[-1] == LOCAL_POLL_MIN_S


def test_a_store_with_latency_is_asked_less_often():
    table = table_of([1])
    log, _ = counted(table, RemoteStore)
    idle(Tailer(log, start="latest"), 100)
    assert (clock_of(table).sleeps[0], clock_of(table).sleeps[-1]) == (0.05, 1.0)


def test_pauses_can_be_set():
    table = table_of([1])
    options = sl.TailOptions(poll_min_s=2, poll_max_s=3)
    idle(Tailer(table.log, start="latest", options=options), 20)
    assert (clock_of(table).sleeps[0], clock_of(table).sleeps[-1]) == (2, 3)


def tail_threads() -> list[str]:
    names = [thread.name for thread in threading.enumerate()]
    return [name for name in names if name.startswith("streamlake-tail")]


def test_a_tail_that_is_not_behind_runs_no_thread():
    table = table_of([1])
    log, _ = counted(table, RemoteStore)
    with closing(Tailer(log, start="latest").steps()) as steps:
        assert next(steps) is None
        table.append(rows(2))
        assert numbers([next(steps)]) == [2]
        assert tail_threads() == []


def test_a_tail_that_is_behind_reads_ahead_until_it_is_closed():
    log, _ = counted(table_of(*([n] for n in range(50))), RemoteStore)
    with closing(tail(log)) as batches:
        assert tail_threads() == []
        assert numbers(take(batches, 5)) == [0, 1, 2, 3, 4]
        assert tail_threads() != []
    assert tail_threads() == []


def test_what_is_read_ahead_comes_in_order():
    table = table_of(*([n] for n in range(200)))
    log, _ = counted(table, RemoteStore)
    assert numbers(tail(log, stop="latest")) == list(range(200))


def test_the_files_of_a_large_commit_are_read_ahead_in_order():
    table = table_of([0])
    commit(table, *(stage(table, n) for n in range(1, 100)))
    log, _ = counted(table, RemoteStore)
    assert numbers(tail(log, stop="latest")) == list(range(100))


def test_an_executor_that_is_given_is_used_and_left_running():
    table = table_of(*([n] for n in range(50)))
    with ThreadPoolExecutor(2, thread_name_prefix="mine") as executor:
        options = sl.TailOptions(executor=executor)
        assert numbers(table.tail(stop="latest", options=options)) == list(range(50))
        assert any(thread.name.startswith("mine") for thread in threading.enumerate())
        assert executor.submit(len, "abc").result() == 3
    assert tail_threads() == []


@pytest.mark.parametrize("kind", [CountingStore, RemoteStore])
def test_a_bounded_tail_reads_nothing_past_its_stop(kind):
    table = table_of(*([n] for n in range(1, 21)))
    log, store = counted(table, kind)
    assert numbers(tail(log, stop=10)) == list(range(1, 11))
    read = {path for method, path in store.requests if method == "get"}
    assert not any(path.endswith("0011.json") for path in read)


def test_each_commit_is_read_once():
    table = table_of(*([n] for n in range(1, 31)))
    log, store = counted(table, RemoteStore)
    assert numbers(tail(log, stop="latest")) == list(range(1, 31))
    read = [path for method, path in store.requests if method == "get" and "_log/0" in path]
    assert len(read) == len(set(read)) == 31
