"""Faults happen where the plan says, and as it says."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest

from streamlake.errors import (
    InvalidInputError,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
    WriteRefusedError,
)
from streamlake.storage import MemoryStore
from streamlake.testing import Fault, FaultyStore, ManualClock


def faulty(*faults: Fault) -> FaultyStore:
    return FaultyStore(MemoryStore(), faults)


def outcome(act, *arguments) -> str:
    try:
        act(*arguments)
    except StorageError as error:
        return type(error).__name__
    return "done"


@pytest.mark.parametrize("method", ["put", "put_if_absent"])
@pytest.mark.parametrize(
    ("kind", "error", "landed"),
    [
        ("lost_after", StorageError, True),
        ("lost_before", StorageError, False),
        ("conflict", StorageError, False),
        ("refused", WriteRefusedError, False),
        ("late", StorageError, False),
    ],
)
def test_a_write_goes_wrong_once_and_as_planned(method, kind, error, landed):
    store = faulty(Fault(kind=kind, method=method))
    with pytest.raises(StorageError) as raised:
        getattr(store, method)("a", b"x")
    assert type(raised.value) is error
    assert (outcome(store.get, "a") == "done") is landed
    assert store.fired == [(kind, method, "a")]
    assert outcome(getattr(store, method), "b", b"x") == "done"


def test_a_put_if_absent_whose_answer_is_lost_still_meets_a_taken_name():
    store = faulty(Fault(kind="lost_after"))
    store.put("a", b"x")
    with pytest.raises(ObjectExistsError):
        store.put_if_absent("a", b"y")


def test_faults_strike_the_nth_request_that_matches_as_often_as_planned():
    store = faulty(Fault(kind="lost_before", path="log/", nth=2, times=2))
    paths = ["log/0", "data/0", "log/1", "data/1", "log/2", "log/3"]
    wrong = [path for path in paths if outcome(store.put_if_absent, path, b"x") != "done"]
    assert wrong == ["log/1", "log/2"]


def test_a_fault_without_an_end_strikes_for_ever():
    store = faulty(Fault(kind="lost_before", method="get", nth=2, times=None))
    store.put("a", b"x")
    assert [outcome(store.get, "a") for _ in range(4)] == ["done"] + ["StorageError"] * 3


@pytest.mark.parametrize("method", ["get", "stat", "delete", "get_range"])
@pytest.mark.parametrize("kind", ["lost_before", "lost_after"])
def test_any_request_can_lose_its_answer(method, kind):
    store = faulty(Fault(kind=kind, method=method))
    store.put("a", b"x")
    arguments = ("a", 0, 1) if method == "get_range" else ("a",)
    assert outcome(getattr(store, method), *arguments) == "StorageError"
    gone = method == "delete" and kind == "lost_after"
    assert outcome(store.inner.get, "a") == ("ObjectNotFoundError" if gone else "done")


def test_a_late_write_lands_when_told():
    store = faulty(Fault(kind="late"))
    assert outcome(store.put_if_absent, "a", b"late") == "StorageError"
    assert outcome(store.get, "a") == "ObjectNotFoundError"
    assert store.pending == ("a",)
    assert store.land_pending() == 1
    assert store.get("a") == b"late"
    assert store.land_pending() == 0


def test_a_late_write_lands_before_the_planned_request():
    store = faulty(Fault(kind="late", after=3))
    assert outcome(store.put_if_absent, "a", b"late") == "StorageError"
    assert [outcome(store.get, "a") for _ in range(3)] == ["ObjectNotFoundError"] * 2 + ["done"]


def test_a_late_conditional_put_loses_against_what_came_before_it():
    store = faulty(Fault(kind="late", after=2))
    assert outcome(store.put_if_absent, "a", b"late") == "StorageError"
    store.put_if_absent("a", b"in time")
    assert store.get("a") == b"in time"
    assert store.pending == ()


def listed(store: FaultyStore) -> list[str]:
    return [meta.path for meta in store.list_from("")]


def test_a_stale_listing_leaves_out_what_was_written_last():
    clock = ManualClock()
    store = FaultyStore(
        MemoryStore(clock=clock), [Fault(kind="stale", method="list_from", entries=2)]
    )
    for path in ("b", "c", "a"):
        store.put(path, b"x")
        clock.advance(1)
    assert listed(store) == ["b"]
    assert listed(store) == ["a", "b", "c"]


def test_a_listing_may_give_entries_twice_or_break_off():
    store = faulty(
        Fault(kind="duplicated", method="list_from"),
        Fault(kind="lost_after", method="list_from", nth=2),
        Fault(kind="lost_before", method="list_from", nth=3),
    )
    for path in "abcd":
        store.put(path, b"x")
    assert listed(store) == list("aabbccdd")
    torn = store.list_from("")
    assert [next(torn).path, next(torn).path] == ["a", "b"]
    with pytest.raises(StorageError):
        next(torn)
    with pytest.raises(StorageError):
        store.list_from("")


def test_of_racing_requests_exactly_the_planned_number_goes_wrong():
    store = faulty(Fault(kind="lost_before", nth=10, times=5))
    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(lambda n: outcome(store.put_if_absent, f"{n}", b"x"), range(200)))
    assert outcomes.count("StorageError") == 5
    assert len(listed(store)) == 195


def test_an_unpickled_store_begins_its_plan_anew():
    store = faulty(Fault(kind="lost_before"))
    assert outcome(store.put_if_absent, "a", b"x") == "StorageError"
    copy = pickle.loads(pickle.dumps(store))  # noqa: S301 - pickled a moment ago
    assert outcome(copy.put_if_absent, "a", b"x") == "StorageError"
    assert outcome(copy.put_if_absent, "a", b"x") == "done"


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "late", "method": "get"},
        {"kind": "stale"},
        {"kind": "lost_before", "nth": 0},
        {"kind": "lost_before", "times": 0},
    ],
)
def test_a_fault_that_can_never_happen_is_refused(wrong):
    with pytest.raises(InvalidInputError):
        Fault(**wrong)


def test_what_is_missing_is_missing_through_a_faulty_store_too():
    with pytest.raises(ObjectNotFoundError):
        faulty().get("a")
