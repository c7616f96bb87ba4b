"""Random transactions that overlap in time: what is committed equals them one after the other.

The log and the conflict rules are the real ones; the data files are none: a file's rows stand in
its tags, so that thousands of histories can be tried.
"""

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given, settings

import streamlake as sl
from conflict_cells import SCHEMA, properties
from streamlake.log import Log, Transaction, removal
from streamlake.protocol import AddFile
from streamlake.storage import MemoryStore, ObjectStore
from streamlake.testing import Fault, FaultyStore, ManualClock, TableBuilder

Kind: TypeAlias = Literal["append", "delete", "update", "copy", "overwrite", "optimize", "read"]
Rows: TypeAlias = dict[str, list[int]]
PARTITIONS = ("a", "b", "c")
READERS = {"delete", "update", "copy", "overwrite", "read"}


@dataclass(frozen=True)
class InPartitions:
    """Rows of some partitions."""

    partitions: frozenset[str]
    sql: str = "p IN (...)"

    def may_match(self, files, metadata):
        assert metadata.partition_columns == ("p",)
        return any(file.partition_values["p"] in self.partitions for file in files)


@dataclass(frozen=True)
class Step:
    """One transaction of a history."""

    kind: Kind
    partitions: frozenset[str]
    """What it reads, and (but for a copy) writes."""
    target: str
    """Where it puts new rows."""
    delay: int
    """How many others are staged between its own staging and its commit."""
    knows: bool
    """Whether its handle sees the commits of others before it commits."""

    @property
    def reads(self) -> frozenset[str]:
        return self.partitions if self.kind in READERS else frozenset()

    def apply(self, rows: Rows, new: int) -> Rows:
        """The table after it; ``new`` is the row that it makes, if it makes one."""
        mine = self.partitions
        match self.kind:
            case "append":
                return {**rows, self.target: [*rows[self.target], new]}
            case "copy":
                total = sum(n for p in mine for n in rows[p])
                return {**rows, self.target: [*rows[self.target], total]}
            case "delete":
                return {p: [] if p in mine else found for p, found in rows.items()}
            case "update":
                return {p: [n * 3 for n in f] if p in mine else f for p, f in rows.items()}
            case "overwrite":
                kept = {p: [] if p in mine else found for p, found in rows.items()}
                first = min(mine)
                return {**kept, first: [new]}
            case _:
                return rows


steps = st.builds(
    Step,
    kind=st.sampled_from(["append", "append", "delete", "update", "copy", "overwrite"])
    | st.sampled_from(["optimize", "read"]),
    partitions=st.frozensets(st.sampled_from(PARTITIONS), min_size=1, max_size=2),
    target=st.sampled_from(PARTITIONS),
    delay=st.integers(0, 3),
    knows=st.booleans(),
)


def rows_in(files: Sequence[AddFile]) -> Rows:
    rows: Rows = {p: [] for p in PARTITIONS}
    for file in files:
        found = msgspec.json.decode((file.tags or {}).get("rows") or "[]", type=list[int])
        rows[file.partition_values["p"] or ""] += found
    return {p: sorted(found) for p, found in rows.items()}


@dataclass
class Staged:
    """A step on its way."""

    step: Step
    new: int
    table: sl.Table
    read: Rows
    transaction: Transaction
    version: int = -1


def stage(step: Step, new: int, store: ObjectStore, clock: ManualClock) -> Staged:
    table = sl.Table(Log(store, clock=clock))
    snapshot = table.log.snapshot()
    files = snapshot.files()
    touched = [f for f in files if f.partition_values["p"] in step.partitions]
    before, data_change = rows_in(files), step.kind != "optimize"
    removed = [] if step.kind in {"append", "copy", "read"} else touched
    after = step.apply(before, new)
    grown = {"append": {step.target}, "copy": {step.target}}.get(step.kind, set())
    written = grown or (set(step.partitions) if removed or step.kind == "overwrite" else set())
    added = {p: _difference(after[p], before[p] if p in grown else []) for p in sorted(written)}
    now_ms = clock.now_ms()
    transaction = Transaction(
        operation=step.kind.upper(),
        adds=tuple(
            AddFile(
                f"{clock.new_id()}.parquet",
                {"p": p},
                1,
                now_ms,
                data_change,
                tags={"rows": msgspec.json.encode(rows).decode()},
            )
            for p, rows in added.items()
            if rows
        ),
        removes=tuple(removal(f, now_ms=now_ms, data_change=data_change) for f in removed),
        reads=(InPartitions(step.reads),) if step.reads else (),
        isolation="Serializable" if step.kind == "read" else None,
        read_version=snapshot.version,
        is_blind_append=step.kind == "append",
    )
    return Staged(step, new, table, before, transaction)


def _difference(rows: Sequence[int], without: Sequence[int]) -> list[int]:
    return sorted((Counter(rows) - Counter(without)).elements())


@dataclass
class History:
    """What came of some steps."""

    committed: list[Staged] = field(default_factory=list)
    """In the order of the log."""
    rows: list[Rows] = field(default_factory=list)
    """The table's, by version."""


def play(plan: Sequence[Step], store: ObjectStore) -> History:
    """Stage each step in turn, and commit it when others have been staged meanwhile."""
    clock = ManualClock()
    waiting: list[tuple[int, Staged]] = []
    history = History()

    def commit_due(now: int) -> None:
        for due, staged in sorted(waiting, key=lambda entry: entry[0]):
            if due > now:
                continue
            waiting.remove((due, staged))
            if staged.step.knows:
                staged.table.markers()
            try:
                staged.version = staged.table.log.commit(staged.transaction).version
            except sl.CommitConflictError:
                continue
            history.committed.append(staged)

    for number, step in enumerate(plan):
        waiting.append((number + step.delay, stage(step, 1000 + number, store, clock)))
        commit_due(number)
    commit_due(len(plan) + 3)
    log = Log(store, clock=clock)
    history.rows = [rows_in(log.snapshot(v).files()) for v in range(log.head.version + 1)]
    return history


@pytest.fixture(scope="module")
def empty_tables():
    """The commit that makes each table, by its isolation level."""
    made = {}
    for level in ("WriteSerializable", "Serializable"):
        builder = TableBuilder(clock=ManualClock()).schema(SCHEMA).partitioned_by("p")
        store = builder.properties(properties(level)).write()
        (found,) = store.list_from("_delta_log/")
        made[level] = found.path, store.get(found.path)
    return made


def table_in_memory(made: tuple[str, bytes]) -> MemoryStore:
    store = MemoryStore()
    store.put(*made)
    return store


def missed(history: History, staged: Staged) -> Counter[int]:
    """Rows of blind appends that were committed while ``staged`` was on its way."""
    return Counter(
        other.new
        for other in history.committed
        if other.step.kind == "append"
        and staged.transaction.read_version < other.version < staged.version
        and other.step.target in staged.step.reads
    )


def one_after_the_other(order: Sequence[Staged]) -> Rows:
    rows: Rows = {p: [] for p in PARTITIONS}
    for staged in order:
        rows = staged.step.apply(rows, staged.new)
    return {p: sorted(found) for p, found in rows.items()}


plans = st.lists(steps, min_size=2, max_size=6)
faults = st.lists(
    st.builds(
        Fault,
        kind=st.sampled_from(["lost_after", "lost_before", "conflict", "late"]),
        path=st.just("_delta_log/0"),
        nth=st.integers(1, 9),
        times=st.integers(1, 2),
        after=st.integers(1, 4),
    ),
    max_size=4,
)


@settings(max_examples=150)
@given(plan=plans, faults=st.just([]) | faults)
def test_serializable_histories_are_those_of_the_log_order(plan, faults, empty_tables):
    store = FaultyStore(table_in_memory(empty_tables["Serializable"]), faults)
    history = play(plan, store)
    assert len(history.rows) == 1 + len(history.committed)
    for count, staged in enumerate(history.committed):
        before = history.rows[staged.version - 1]
        assert {p: before[p] for p in staged.step.reads} == {
            p: staged.read[p] for p in staged.step.reads
        }
        done = one_after_the_other(history.committed[: count + 1])
        assert history.rows[staged.version] == done


@settings(max_examples=150)
@given(plan=plans)
def test_write_serializable_reads_miss_nothing_but_blind_appends(plan, empty_tables):
    history = play(plan, table_in_memory(empty_tables["WriteSerializable"]))
    for staged in history.committed:
        before = history.rows[staged.version - 1]
        for p in staged.step.reads:
            passed = Counter(before[p]) - Counter(staged.read[p])
            assert passed <= missed(history, staged)
            assert not Counter(staged.read[p]) - Counter(before[p])
            assert not (passed and staged.step.kind == "read")


@settings(max_examples=150)
@given(plan=plans.map(lambda plan: [step for step in plan if step.kind != "copy"]))
def test_write_serializable_changes_of_rows_are_those_of_some_order(plan, empty_tables):
    history = play(plan, table_in_memory(empty_tables["WriteSerializable"]))
    orders = itertools.permutations(history.committed)
    assert any(one_after_the_other(order) == history.rows[-1] for order in orders)


@pytest.mark.parametrize(("level", "commits"), [("WriteSerializable", 3), ("Serializable", 2)])
def test_an_update_passes_over_an_append_only_where_that_may_come_later(
    level, commits, empty_tables
):
    update = Step("update", frozenset("a"), "a", delay=2, knows=False)
    append = Step("append", frozenset("a"), "a", delay=0, knows=False)
    history = play([append, update, append], table_in_memory(empty_tables[level]))
    assert len(history.committed) == commits
