"""The commit loop against a store that loses, delays and refuses answers."""

import random

import msgspec
import pyarrow as pa
import pytest

import streamlake as sl
from streamlake import operations
from streamlake.log import Limits, Log, Transaction
from streamlake.protocol import schema_to_json
from streamlake.storage import MemoryStore
from streamlake.testing import CountingStore, Fault, FaultyStore, ManualClock

SCHEMA = pa.schema([pa.field("n", pa.int64())])
FAULTS = ["lost_after", "lost_before", "conflict", "late"]


def at(version: int, kind: str, times: int | None = 1) -> list[Fault]:
    """The commit at ``version`` goes wrong."""
    return [Fault(kind=kind, path=f"{version:020d}.json", times=times)]


def one(n: int) -> pa.Table:
    return pa.table([[n]], schema=SCHEMA)


def table_over(store, **options) -> sl.Table:
    log = Log(store, clock=ManualClock(), **options)
    operations.create(log, SCHEMA)
    return sl.Table(log)


def reopened(table: sl.Table, store) -> sl.Table:
    return sl.Table(Log(store, clock=table.log.clock, limits=table.log.limits))


def numbers(store) -> list[int | None]:
    return sl.Table(Log(store, clock=ManualClock())).snapshot().to_arrow()["n"].to_pylist()


def test_an_append_that_is_not_behind_makes_two_requests():
    store = CountingStore(MemoryStore())
    table = table_over(store)
    store.requests.clear()
    table.append(one(1), txn=sl.SetTransaction("a", 1))
    assert [method for method, _ in store.requests] == ["put", "put_if_absent"]


def test_a_repeat_makes_no_request():
    store = CountingStore(MemoryStore())
    table = table_over(store)
    table.append(one(1), txn=sl.SetTransaction("a", 1))
    store.requests.clear()
    result = table.append(one(1), txn=sl.SetTransaction("a", 1))
    assert (result.version, result.already_committed, store.requests) == (1, True, [])


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("txn", [None, sl.SetTransaction("a", 1)])
def test_a_commit_whose_answer_is_lost_is_in_the_table_once(fault, txn):
    inner = MemoryStore()
    store = FaultyStore(inner, at(1, fault))
    table = table_over(store)
    result = table.append(one(1), txn=txn)
    assert (result.version, result.already_committed) == (1, False)
    table.append(one(2))
    assert numbers(inner) == [1, 2]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_race_that_is_lost_behind_a_lost_answer_is_rebased(fault):
    inner = MemoryStore()
    store = FaultyStore(inner, at(2, fault))
    table = table_over(store)
    other = reopened(table, inner)
    other.append(one(10))
    result = table.append(one(1), txn=sl.SetTransaction("a", 1))
    assert result.version == 2
    assert sorted(numbers(inner)) == [1, 10]


def test_creating_a_table_survives_a_lost_answer():
    inner = MemoryStore()
    store = FaultyStore(inner, at(0, "lost_after"))
    assert table_over(store).version == 0


def test_a_store_that_never_answers_leaves_the_outcome_unknown_and_the_files():
    inner = MemoryStore()
    store = FaultyStore(inner, at(1, "lost_before", None))
    table = table_over(store)
    with pytest.raises(sl.CommitUnknownError, match="not known") as caught:
        table.append(one(1), txn=sl.SetTransaction("a", 1))
    assert caught.value.version == 1
    assert len(caught.value.token) == 36
    assert any(meta.path.endswith(".parquet") for meta in inner.list_from(""))


def test_after_an_unknown_outcome_the_same_marker_tells_the_truth():
    table_puts = Limits().puts_per_version
    inner = MemoryStore()
    store = FaultyStore(inner, at(1, "late", table_puts))
    table = table_over(store)
    with pytest.raises(sl.CommitUnknownError):
        table.append(one(1), txn=sl.SetTransaction("a", 1))
    store.land_pending()
    again = table.append(one(1), txn=sl.SetTransaction("a", 1))
    assert again.already_committed
    assert numbers(inner) == [1]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("marked", [False, True])
def test_with_a_third_of_the_answers_lost_or_late_every_row_is_there_once(seed, marked):
    chance = random.Random(seed)
    inner = MemoryStore()
    plan = [
        Fault(kind=kind, path=f"{version:020d}.json", after=chance.randint(1, 9) if late else None)
        for version in range(1, 200)
        if chance.random() < 0.3
        for kind in [chance.choice(FAULTS)]
        for late in [kind == "late"]
    ]
    store = FaultyStore(inner, plan)
    writers = [table_over(store)]
    writers += [reopened(writers[0], store) for _ in range(2)]
    for n in range(60):
        txn = sl.SetTransaction(f"writer-{n % 3}", n) if marked else None
        assert not writers[n % 3].append(one(n), txn=txn).already_committed
    store.land_pending()
    delivered = [n for batch in writers[0].tail(follow=False) for n in batch.data["n"].to_pylist()]
    assert sorted(numbers(inner)) == list(range(60))
    assert delivered == list(range(60))
    assert len(store.fired) > 10


def test_a_refused_write_is_certain_and_writes_nothing():
    inner = MemoryStore()
    store = FaultyStore(inner, at(1, "refused"))
    table = table_over(store)
    with pytest.raises(sl.WriteRefusedError):
        table.append(one(1))
    table.append(one(2))
    assert numbers(inner) == [2]


def test_a_marker_that_a_winner_committed_makes_the_loser_a_repeat():
    store = MemoryStore()
    table = table_over(store)
    other = reopened(table, store)
    other.snapshot()
    table.append(one(1), txn=sl.SetTransaction("a", 5))
    result = other.append(one(1), txn=sl.SetTransaction("a", 5))
    assert (result.version, result.already_committed) == (1, True)
    assert numbers(store) == [1]


def test_a_winner_with_a_lower_version_of_the_marker_is_a_conflict():
    store = MemoryStore()
    table = table_over(store)
    other = reopened(table, store)
    other.snapshot()
    table.append(one(1), txn=sl.SetTransaction("a", 5))
    with pytest.raises(sl.ConcurrentTransactionError, match="'a'"):
        other.append(one(2), txn=sl.SetTransaction("a", 6))
    assert numbers(store) == [1]


def test_of_two_owners_the_first_to_commit_goes_on_and_the_other_is_fenced():
    store = MemoryStore()
    first = table_over(store)
    second = reopened(first, store)
    second.snapshot()
    done = first.append(one(1), txn=sl.SetTransaction("a", 1), expect={"a": None})
    with pytest.raises(sl.FencedError):
        second.append(one(2), txn=sl.SetTransaction("a", 2), expect={"a": None})
    first.append(one(3), txn=sl.SetTransaction("a", 3), expect=done.markers)
    assert numbers(store) == [1, 3]


def test_several_markers_are_committed_together_or_not_at_all():
    store = MemoryStore()
    table = table_over(store)
    both = [sl.SetTransaction("a", 1), sl.SetTransaction("b", 1)]
    table.append(one(1), txn=both)
    assert table.append(one(1), txn=both).already_committed
    mixed = [sl.SetTransaction("a", 1), sl.SetTransaction("b", 2)]
    with pytest.raises(sl.PartlyCommittedError):
        table.append(one(2), txn=mixed)
    assert numbers(store) == [1]
    assert table.snapshot().markers["a"].last_updated is not None


def test_a_writer_that_is_far_behind_lists_once():
    store = MemoryStore()
    table = table_over(store)
    counting = CountingStore(store)
    behind = reopened(table, counting)
    behind.snapshot()
    for n in range(50):
        table.append(one(n))
    counting.requests.clear()
    behind.append(one(100))
    assert [method for method, _ in counting.requests].count("list_from") == 1
    assert len(counting.requests) < 60
    assert max(numbers(store)) == 100


def test_a_handle_that_slept_longer_than_log_clean_up_waits_reads_the_log_first():
    store = MemoryStore()
    table = table_over(store)
    clock = table.log.clock
    sleeper = reopened(table, store)
    sleeper.snapshot()
    for n in range(3):
        table.append(one(n))
    table.checkpoint()
    for version in range(3):
        store.delete(f"_delta_log/{version:020d}.json")
    clock.sleep(4 * 24 * 3600)
    assert sleeper.append(one(9)).version == 4


def test_a_commit_larger_than_may_be_read_back_is_refused_before_it_is_written():
    store = MemoryStore()
    table = table_over(store, limits=Limits(commit_bytes=1_500))
    with pytest.raises(sl.LimitExceededError, match="nothing was committed"):
        table.append(one(1), txn=sl.SetTransaction("a" * 2_000, 1))
    table.append(one(2))
    assert numbers(store) == [2]


class NoLinksStore(MemoryStore):
    """A file system without hard links: it can't refuse a name, and says so."""

    def put_if_absent(self, path, data):
        what = f"No hard links here, and {len(data)} bytes to put."
        raise sl.ConditionalPutUnsupportedError(what, where=path)


def test_a_single_writer_commits_on_a_store_that_can_not_refuse_a_name():
    store = NoLinksStore()
    table = table_over(store, single_writer=True)
    table.append(one(1), txn=sl.SetTransaction("a", 1))
    assert numbers(store) == [1]
    behind = sl.Table(Log(store, clock=table.log.clock, single_writer=True))
    assert behind.append(one(1), txn=sl.SetTransaction("a", 1)).already_committed
    with pytest.raises(sl.TableExistsError):
        table_over(store, single_writer=True)


def test_several_writers_are_refused_there_at_once():
    store = NoLinksStore()
    table_over(store, single_writer=True)
    with pytest.raises(sl.ConditionalPutUnsupportedError):
        sl.Table(Log(store, clock=ManualClock())).append(one(1))


def test_a_commit_that_landed_behind_an_error_is_put_again_until_the_name_is_refused():
    inner = MemoryStore()
    counting = CountingStore(FaultyStore(inner, at(1, "lost_after")))
    table = table_over(counting)
    counting.requests.clear()
    table.append(one(1))
    assert [method for method, _ in counting.requests] == [
        "put",
        "put_if_absent",
        "get",
        "put_if_absent",
        "get",
    ]


def test_a_repeat_of_what_another_handle_committed_makes_sure_of_it_once():
    store = CountingStore(MemoryStore())
    table_over(store).append(one(1), txn=sl.SetTransaction("a", 1))
    other = sl.Table(Log(store, clock=ManualClock()))
    other.markers()
    store.requests.clear()
    for _ in range(3):
        assert other.append(one(1), txn=sl.SetTransaction("a", 1)).already_committed
    assert [method for method, _ in store.requests] == ["get", "put_if_absent"]


class SleepsBeforeThePut(MemoryStore):
    """A machine that is suspended right before its put, while others go on and clean up."""

    def put_if_absent(self, path, data):
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
        super().put_if_absent(path, data)

    meanwhile = None


def test_a_put_below_a_checkpoint_that_does_not_know_the_commit_is_unknown():
    store = SleepsBeforeThePut()
    table = table_over(store)
    sleeper = reopened(table, store)
    sleeper.snapshot()

    def others_go_on_and_clean_up():
        for n in range(3):
            table.append(one(n))
        table.checkpoint()
        for version in range(3):
            store.delete(f"_delta_log/{version:020d}.json")
        table.log.clock.advance(4 * 24 * 3600)  # type: ignore[attr-defined]

    store.meanwhile = others_go_on_and_clean_up  # type: ignore[assignment]
    with pytest.raises(sl.CommitUnknownError, match="cleaned up past") as caught:
        sleeper.append(one(9), txn=sl.SetTransaction("a", 1))
    assert caught.value.version == 1
    assert numbers(store) == [0, 1, 2]


def test_an_append_that_no_longer_fits_the_schema_is_refused_and_one_that_fits_goes_on():
    store = MemoryStore()
    table = table_over(store)
    behind = reopened(table, store)
    behind.snapshot()
    wider = pa.schema([*SCHEMA, pa.field("more", pa.string())])
    change_schema(table, wider)
    assert behind.append(one(1)).version == 2
    late = reopened(table, store)
    late.snapshot()
    change_schema(table, pa.schema([pa.field("m", pa.int64())]))
    with pytest.raises(sl.MetadataChangedError, match="n"):
        late.append(pa.table({"n": [1], "more": ["x"]}))


def change_schema(table: sl.Table, schema: pa.Schema) -> None:
    head = table.log.refresh()
    changed = msgspec.structs.replace(head.metadata, schema_string=schema_to_json(schema))
    table.log.commit(
        Transaction(operation="CHANGE COLUMNS", metadata=changed, read_version=head.version)
    )
