"""The proof of put-if-absent: good stores pass, those that ignore the condition do not."""

from __future__ import annotations

import pytest

from streamlake.clock import SYSTEM_CLOCK
from streamlake.errors import (
    ConditionalPutUnsupportedError,
    ObjectExistsError,
    StorageError,
    WriteRefusedError,
)
from streamlake.storage import MemoryStore, open_store, prove_put_if_absent
from streamlake.testing import CountingStore, Fault, FaultyStore, ManualClock


class ConditionIgnoringStore(MemoryStore):
    """Takes the condition and ignores it, as some servers do."""

    def put_if_absent(self, path: str, data: bytes | memoryview) -> None:
        self.put(path, data)


class LyingStore(MemoryStore):
    """Refuses the second put, and yet replaces the object."""

    def put_if_absent(self, path: str, data: bytes | memoryview) -> None:
        taken = [meta.path for meta in self.list_from(path)]
        self.put(path, data)
        if taken:
            raise ObjectExistsError("The name is taken.")


@pytest.mark.parametrize("kind", [ConditionIgnoringStore, LyingStore])
def test_a_store_that_does_not_honour_the_condition_is_caught(kind):
    store = kind()
    with pytest.raises(ConditionalPutUnsupportedError, match="single_writer=True"):
        prove_put_if_absent(store, SYSTEM_CLOCK)
    assert list(store.list_from("")) == []


def test_the_proof_costs_two_puts_a_get_and_a_delete():
    store = CountingStore(MemoryStore())
    prove_put_if_absent(store, SYSTEM_CLOCK)
    asked = [method for method, _ in store.requests]
    assert asked == ["put_if_absent", "put_if_absent", "get", "delete"]


def test_the_probe_lies_in_a_folder_of_its_own_under_a_fresh_name():
    store, clock = CountingStore(MemoryStore()), ManualClock()
    prove_put_if_absent(store, clock)
    prove_put_if_absent(store, clock)
    paths = {path for _, path in store.requests}
    assert len(paths) == 2
    assert all(path.startswith("_streamlake/probe/") for path in paths)


@pytest.mark.parametrize("kind", ["lost_after", "lost_before", "conflict"])
@pytest.mark.parametrize("nth", [1, 2])
def test_a_lost_answer_neither_proves_nor_disproves(kind, nth):
    prove_put_if_absent(FaultyStore(MemoryStore(), [Fault(kind=kind, nth=nth)]), SYSTEM_CLOCK)
    ignoring = FaultyStore(ConditionIgnoringStore(), [Fault(kind=kind, nth=nth)])
    with pytest.raises(ConditionalPutUnsupportedError):
        prove_put_if_absent(ignoring, SYSTEM_CLOCK)


def test_a_store_that_never_answers_is_no_proof():
    store = FaultyStore(MemoryStore(), [Fault(kind="lost_before", times=None)])
    with pytest.raises(StorageError, match="lost") as raised:
        prove_put_if_absent(store, SYSTEM_CLOCK)
    assert type(raised.value) is StorageError


def test_a_store_that_refuses_writes_says_so_at_once():
    store = FaultyStore(MemoryStore(), [Fault(kind="refused", times=None)])
    with pytest.raises(WriteRefusedError):
        prove_put_if_absent(store, SYSTEM_CLOCK)
    assert len(store.fired) == 1


def test_a_probe_that_may_not_be_deleted_still_proves():
    store = FaultyStore(MemoryStore(), [Fault(kind="lost_before", method="delete")])
    prove_put_if_absent(store, SYSTEM_CLOCK)


def test_a_client_configured_without_conditional_puts_is_found_out(s3_options):
    store = open_store("s3://bucket/t", {**s3_options, "conditional_put": "disabled"})
    with pytest.raises(ConditionalPutUnsupportedError, match="conditional_put"):
        prove_put_if_absent(store, SYSTEM_CLOCK)
