"""Through one handle reads never go back, and see what it wrote, however much a listing lags."""

import itertools

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import streamlake as sl
from streamlake import operations
from streamlake.log import Limits, Log
from streamlake.storage import MemoryStore
from streamlake.testing import CountingStore, Fault, FaultyStore, ManualClock, TableBuilder

SCHEMA = pa.schema([pa.field("n", pa.int64())])
SEEDS = itertools.count()


def rows(*numbers: int) -> pa.Table:
    return pa.table([pa.array(numbers, pa.int64())], schema=SCHEMA)


def lagging(inner, entries: int) -> FaultyStore:
    """A store whose every listing leaves out the objects that were written last."""
    fault = Fault(kind="stale", method="list_from", entries=entries, times=None)
    return FaultyStore(inner, [fault])


def numbers(snapshot: sl.Snapshot) -> list[int]:
    return sorted(snapshot.to_arrow()["n"].to_pylist())


@pytest.mark.parametrize("entries", [1, 3, 30])
def test_what_a_handle_wrote_is_in_its_next_read(entries):
    base = TableBuilder().build().log.store
    table = sl.Table(Log(lagging(base, entries)))
    for number in range(8):
        table.append(rows(number))
        assert numbers(table.snapshot()) == list(range(number + 1))
        assert table.snapshot(table.version).version == number + 1
        assert next(table.history()).version == number + 1


@pytest.mark.parametrize("entries", [1, 3, 8])
def test_a_version_that_a_listing_leaves_out_is_looked_for_by_name(entries):
    store = TableBuilder().append(times=10).build().log.store
    reader = sl.Table(Log(lagging(store, entries)))
    assert reader.snapshot(10).version == 10
    with pytest.raises(sl.VersionNotFoundError):
        reader.snapshot(11)


def test_looking_for_what_is_left_out_is_bounded():
    store = TableBuilder().append(times=10).build().log.store
    limits = Limits(lagging_versions=3)
    assert Log(lagging(store, 3), limits=limits).snapshot(10).version == 10
    with pytest.raises(sl.VersionNotFoundError):
        Log(lagging(store, 9), limits=limits).snapshot(10)


def test_time_travel_and_history_see_the_newest_version_though_the_listing_does_not():
    clock = ManualClock(seed=next(SEEDS))
    base = MemoryStore(clock=clock, name=f"sessions-{next(SEEDS)}")
    table = TableBuilder(base, clock=clock).append(times=4).build()
    clock.sleep(60)
    table.append(rows(9))
    reader = sl.Table(Log(lagging(base, 3), clock=clock))
    reader.snapshot(5)
    assert [record.version for record in reader.history()] == [5, 4, 3, 2, 1, 0]
    assert reader.snapshot(timestamp=clock.now_ms()).version == 5


def test_a_reader_does_not_go_back_when_a_later_listing_is_older():
    base = TableBuilder().append(times=5).build().log.store
    fault = Fault(kind="stale", method="list_from", entries=4, nth=2, times=None)
    reader = sl.Table(Log(FaultyStore(base, [fault])))
    for _ in range(4):
        assert reader.snapshot().version == 5
        assert reader.log.refresh().version == 5
        assert reader.snapshot(5).version == 5


@pytest.mark.parametrize("entries", [1, 5, 11])
def test_a_reader_that_went_to_a_version_does_not_go_back_to_an_older_newest(entries):
    store = TableBuilder().append(times=11).build().log.store
    reader = sl.Table(Log(lagging(store, entries)))
    assert reader.snapshot(10).version == 10
    assert reader.snapshot().version >= 10


def test_a_marker_that_a_handle_committed_is_seen_by_it_at_once():
    table = sl.Table(Log(lagging(TableBuilder().build().log.store, 5)))
    table.append(rows(1), txn=sl.SetTransaction("a", 1))
    assert table.markers()["a"].version == 1
    assert table.snapshot().txn_version("a") == 1
    assert table.append(rows(1), txn=sl.SetTransaction("a", 1)).already_committed


def test_a_read_right_after_a_write_lists_nothing():
    store = CountingStore(TableBuilder().append(times=3).build().log.store)
    table = sl.Table(Log(store))
    table.snapshot()
    table.append(rows(1))
    store.requests.clear()
    table.snapshot()
    assert store.count("list_from") == 0


class Sessions(RuleBasedStateMachine):
    """Two handles on a table whose listings lag; what each has seen it never unsees."""

    @initialize(entries=st.integers(0, 6))
    def make(self, entries):
        base = MemoryStore(name=f"sessions-{next(SEEDS)}")
        clock = ManualClock(seed=next(SEEDS))
        operations.create(
            Log(base, clock=clock), SCHEMA, properties={"delta.checkpointInterval": "4"}
        )
        store = lagging(base, entries) if entries else base
        self.tables = [sl.Table(Log(store, clock=clock)) for _ in range(2)]
        self.seen = [0, 0]
        self.written: list[int] = []

    @rule(who=st.integers(0, 1))
    def append(self, who):
        number = len(self.written)
        result = self.tables[who].append(rows(number))
        self.written.append(number)
        assert result.version == len(self.written)
        self.seen[who] = result.version

    @rule(who=st.integers(0, 1))
    def read(self, who):
        snapshot = self.tables[who].snapshot()
        assert snapshot.version >= self.seen[who]
        assert numbers(snapshot) == self.written[: snapshot.version]
        self.seen[who] = snapshot.version

    @rule(who=st.integers(0, 1))
    def checkpoint(self, who):
        assert self.tables[who].checkpoint() >= self.seen[who]

    @rule(who=st.integers(0, 1), back=st.integers(0, 3))
    def travel(self, who, back):
        version = max(0, self.seen[who] - back)
        assert numbers(self.tables[who].snapshot(version)) == self.written[:version]

    @invariant()
    def what_was_seen_stays(self):
        for who, table in enumerate(getattr(self, "tables", ())):
            assert self.seen[who] == 0 or table.version >= self.seen[who]


TestSessions = Sessions.TestCase
TestSessions.settings = settings(max_examples=20, stateful_step_count=15, deadline=None)
