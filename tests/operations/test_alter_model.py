"""Any order of changes and appends leaves the rows that a plain list of dicts would hold."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import streamlake as sl
from streamlake import operations
from streamlake.log import Log
from streamlake.storage import MemoryStore
from streamlake.testing import ManualClock

KINDS: dict[str, pa.DataType] = {"i": pa.int32(), "l": pa.int64(), "t": pa.string()}
VALUES = {"i": 7, "l": 2**40, "t": "x"}
NAMES = st.sampled_from(["a", "b", "c d", "e.f", "`g`", "H"])
PROPERTIES = {
    "delta.columnMapping.mode": "name",
    "delta.enableTypeWidening": "true",
    "delta.enableRowTracking": "true",
    "delta.enableInCommitTimestamps": "true",
}


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


class Alterations(RuleBasedStateMachine):
    """A mapped table beside a list of rows, columns and fields of a struct changing in both."""

    @initialize(partitioned=st.booleans(), fresh=st.booleans())
    def create(self, *, partitioned: bool, fresh: bool) -> None:
        """A table that maps from the start, or from its second version on."""
        self.store, self.clock = MemoryStore(), ManualClock()
        inner = pa.struct([("x", pa.int32())])
        schema = pa.schema([("id", pa.int64()), ("p", pa.string()), ("s", inner)])
        operations.create(
            Log(self.store, clock=self.clock),
            schema,
            partition_by=["p"] if partitioned else [],
            properties=PROPERTIES if fresh else {},
        )
        self.columns: dict[str, str] = {}
        self.fields: dict[str, str] = {"x": "i"}
        self.partition = "p"
        self.rows: list[dict[str, Any]] = []
        self.open()
        if not fresh:
            self.append(whole=True)
            mapped = {k: v for k, v in PROPERTIES.items() if k != "delta.enableRowTracking"}
            self.table.set_properties(mapped)

    @rule()
    def open(self) -> None:
        self.table = sl.Table(Log(self.store, clock=self.clock))

    def values(self, columns: dict[str, str], *, whole: bool) -> dict[str, Any]:
        return {name: VALUES[kind] if whole else None for name, kind in columns.items()}

    def data(self, *, whole: bool) -> pa.Table:
        """One row; without ``whole`` only its id."""
        row = {
            "id": len(self.rows),
            self.partition: "π" if whole else None,
            "s": self.values(self.fields, whole=whole) if whole else None,
            **self.values(self.columns, whole=whole),
        }
        self.rows.append(row)
        struct = pa.struct([(name, KINDS[kind]) for name, kind in self.fields.items()])
        kinds = {name: KINDS[kind] for name, kind in self.columns.items()}
        schema = pa.schema({"id": pa.int64(), self.partition: pa.string(), "s": struct, **kinds})
        found = pa.Table.from_pylist([row], schema=schema)
        return found if whole else found.select(["id"])

    @rule(whole=st.booleans())
    def append(self, *, whole: bool) -> None:
        self.table.append(self.data(whole=whole))

    @rule(name=NAMES, kind=st.sampled_from(sorted(KINDS)), nested=st.booleans())
    def merge(self, name: str, kind: str, *, nested: bool) -> None:
        columns = self.fields if nested else self.columns
        if name.lower() in {known.lower() for known in columns}:
            return
        for row in self.rows:
            held = row["s"] if nested else row
            if held is not None:
                held[name] = None
        columns[name] = kind
        self.table.append(self.data(whole=True), merge_schema=True)

    @rule(name=NAMES, nested=st.booleans())
    def add(self, name: str, *, nested: bool) -> None:
        columns = self.fields if nested else self.columns
        if name.lower() in {known.lower() for known in columns}:
            return
        columns[name] = "i"
        for row in self.rows:
            held = row["s"] if nested else row
            if held is not None:
                held[name] = None
        self.table.add_columns([pa.field(name, pa.int32())], within="s" if nested else None)

    @rule(data=st.data(), name=NAMES, nested=st.booleans())
    def rename(self, data: st.DataObject, name: str, *, nested: bool) -> None:
        columns = self.fields if nested else self.columns
        if not columns or name.lower() in {known.lower() for known in columns}:
            return
        old = data.draw(st.sampled_from(sorted(columns)))
        self.table.rename_column(("s." if nested else "") + quoted(old), name)
        columns[name] = columns.pop(old)
        for row in self.rows:
            held = row["s"] if nested else row
            if held is not None:
                held[name] = held.pop(old)

    @rule()
    def rename_partition(self) -> None:
        new = "p" if self.partition == "q" else "q"
        self.table.rename_column(self.partition, new)
        for row in self.rows:
            row[new] = row.pop(self.partition)
        self.partition = new

    @precondition(lambda self: self.columns)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        old = data.draw(st.sampled_from(sorted(self.columns)))
        self.table.drop_columns([quoted(old)])
        del self.columns[old]
        for row in self.rows:
            del row[old]

    @rule(data=st.data(), nested=st.booleans())
    def widen(self, data: st.DataObject, *, nested: bool) -> None:
        columns = self.fields if nested else self.columns
        narrow = sorted(name for name, kind in columns.items() if kind == "i")
        if narrow:
            name = data.draw(st.sampled_from(narrow))
            path = ("s." if nested else "") + quoted(name)
            self.table.alter_column(path, type=pa.int64())
            columns[name] = "l"

    @rule()
    def checkpoint(self) -> None:
        self.table.checkpoint()

    @invariant()
    def holds_the_rows(self) -> None:
        if hasattr(self, "table"):
            found = self.table.snapshot().to_arrow().to_pylist()
            assert sorted(found, key=lambda row: row["id"]) == self.rows


Alterations.TestCase.settings = settings(max_examples=25, stateful_step_count=15)
test_any_order_of_changes_leaves_the_rows = Alterations.TestCase
