"""Every operation against every other: how each is staged, and what must come of it.

A cell of the matrix is an operation that lost a race, the one that won it, the table's isolation
level, and whether both touch the same rows. The table of a cell has two partitions, "a" and "b",
of two files each; the winner works on "a", and so does the loser where they overlap.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import msgspec
import pyarrow as pa

import streamlake as sl
from streamlake.data.predicates import read_predicate
from streamlake.log import WHOLE_TABLE, ReadPredicate, Transaction, removal
from streamlake.protocol import AddFile, Metadata, Protocol
from streamlake.storage import MemoryStore

_COLUMNS: list[pa.Field[Any]] = [pa.field("p", pa.string()), pa.field("n", pa.int64())]
SCHEMA = pa.schema(_COLUMNS)
Row: TypeAlias = tuple[str, int]
Level: TypeAlias = Literal["WriteSerializable", "Serializable"]
Operation: TypeAlias = Literal[
    "append", "delete", "update", "merge", "optimize", "metadata", "protocol", "overwrite", "read"
]
OPERATIONS: tuple[Operation, ...] = (
    "append",
    "delete",
    "update",
    "merge",
    "optimize",
    "metadata",
    "protocol",
    "overwrite",
    "read",
)
LEVELS: tuple[Level, ...] = ("WriteSerializable", "Serializable")
ROWS: list[Row] = [("a", 1), ("a", 2), ("b", 3), ("b", 4)]
"""Of the table that every cell begins with, one file each."""
UNWRITABLE = Protocol(1, 7, writer_features=("notOfThisWorld",))
HARMLESS = Protocol(1, 3)


class LetsOneIn(MemoryStore):
    """Runs something between a writer's last look at the log and its put."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], object] | None = None

    def put_if_absent(self, path: str, data: bytes | memoryview) -> None:
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
        super().put_if_absent(path, data)


@dataclass(frozen=True)
class Cell:
    """One meeting of two operations."""

    loser: Operation
    winner: Operation
    level: Level
    overlap: bool

    def __str__(self) -> str:
        rows = "same rows" if self.overlap else "other rows"
        return f"{self.loser} after {self.winner}, {rows}, {self.level}"

    @property
    def reversed(self) -> Cell:
        """The same meeting with the other winner."""
        return Cell(self.winner, self.loser, self.level, self.overlap)

    @property
    def sides(self) -> tuple[tuple[Operation, str], tuple[Operation, str]]:
        """The winner and the loser, each with the partition that it works on."""
        return (self.winner, "a"), (self.loser, "a" if self.overlap else "b")


CELLS = [Cell(*cell) for cell in itertools.product(OPERATIONS, OPERATIONS, LEVELS, (True, False))]


READERS = frozenset({"delete", "update", "merge", "overwrite", "metadata", "read"})
"""Where they overlap, these have read what the winner works on."""
REMOVERS = frozenset({"delete", "update", "merge", "overwrite", "optimize"})
REORDERED = frozenset({"delete", "update", "merge", "overwrite"})
"""Under WriteSerializable these are taken to have come before a blind append."""


def expected_error(cell: Cell) -> type[sl.CommitConflictError] | None:
    """What the loser must meet, written down from the rules and not from the code."""
    match cell.winner:
        case "protocol":
            met = cell.overlap or cell.loser in {"metadata", "protocol"}
            return sl.ProtocolChangedError if met else None
        case "metadata":
            fits = cell.loser == "append" and not cell.overlap
            return None if fits else sl.MetadataChangedError
    return _error_of_rows(cell) if cell.overlap else None


def _error_of_rows(cell: Cell) -> type[sl.CommitConflictError] | None:
    read = cell.loser in READERS
    passes_blind = cell.level == "WriteSerializable" and cell.loser in REORDERED
    match cell.winner:
        case "append" if read and not passes_blind:
            return sl.ConcurrentAppendError
        case "update" | "merge" | "overwrite" if read:
            return sl.ConcurrentAppendError
        case "delete" if read:
            return sl.ConcurrentDeleteReadError
        case "delete" | "update" | "merge" | "overwrite" | "optimize" if cell.loser in REMOVERS:
            return sl.ConcurrentDeleteDeleteError
    return None


def properties(level: Level) -> dict[str, str]:
    return {"delta.isolationLevel": level, "delta.checkpointInterval": "1000"}


def fill(table: sl.Table) -> None:
    """The rows that every cell begins with."""
    for row in ROWS:
        table.append(data([row]))


def data(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist([{"p": p, "n": n} for p, n in rows], schema=SCHEMA)


def rows_of(table: sl.Table) -> list[Row]:
    found = table.snapshot().to_arrow()
    return sorted((row["p"], row["n"]) for row in found.to_pylist())


def effect(operation: Operation, partition: str, rows: list[Row], *, overlap: bool) -> list[Row]:
    """The rows that ``operation`` makes of ``rows``; new ones tell their operation."""
    mine = [row for row in rows if row[0] == partition]
    others = [row for row in rows if row[0] != partition]
    new = (partition, 100 + OPERATIONS.index(operation))
    match operation:
        case "append":
            return sorted([*rows, new])
        case "delete":
            return others
        case "update":
            return sorted([*others, *mine[1:], new])
        case "merge":
            return sorted([*rows, new])
        case "overwrite":
            return [new] if overlap else sorted([*others, new])
        case _:
            return rows


def stage(table: sl.Table, operation: Operation, partition: str, *, overlap: bool) -> Transaction:
    """The operation as a transaction at the table's newest version, its files written."""
    snapshot = table.log.snapshot()
    stager = table.stager()
    now_ms = table.log.clock.now_ms()
    files = [f for f in snapshot.files() if f.partition_values["p"] == partition]
    new = data([(partition, 100 + OPERATIONS.index(operation))])
    reads: tuple[ReadPredicate, ...] = (read_predicate(f"p = '{partition}'", snapshot.metadata),)
    adds: tuple[AddFile, ...] = ()
    removed: Sequence[AddFile] = ()
    data_change = operation != "optimize"
    metadata = protocol = None
    match operation:
        case "append":
            adds, reads = stager.stage(new), ()
        case "delete":
            removed = files
        case "update":
            adds, removed = stager.stage(new), files[:1]
        case "merge":
            kept = data([(partition, _number(files[0]))])
            adds, removed = stager.stage(pa.concat_tables([kept, new])), files[:1]
        case "optimize":
            rows = data([(partition, _number(file)) for file in files])
            adds, removed, reads = stager.stage(rows, data_change=False), files, ()
        case "metadata":
            metadata = _changed(snapshot.metadata, constrained=overlap)
            reads = (WHOLE_TABLE,) if overlap else ()
        case "protocol":
            protocol, reads = UNWRITABLE if overlap else HARMLESS, ()
        case "overwrite":
            adds = stager.stage(new)
            removed = list(snapshot.files()) if overlap else files
            reads = (WHOLE_TABLE,) if overlap else reads
        case "read":
            pass
    return Transaction(
        operation=operation.upper(),
        adds=adds,
        removes=tuple(removal(f, now_ms=now_ms, data_change=data_change) for f in removed),
        metadata=metadata,
        protocol=protocol,
        reads=reads,
        isolation="Serializable" if operation == "read" else None,
        read_version=snapshot.version,
        staged_schema=stager.schema_json,
        staged_partitions=stager.partition_columns,
        staged_configuration=stager.configuration,
        is_blind_append=operation == "append",
    )


def _number(file: AddFile) -> int:
    statistics = msgspec.json.decode(file.stats or "{}")
    return int(statistics["minValues"]["n"])


def _changed(metadata: Metadata, *, constrained: bool) -> Metadata:
    name = "delta.constraints.small" if constrained else "team"
    return msgspec.structs.replace(
        metadata, configuration={**metadata.configuration, name: "n < 1000"}
    )


def expected_rows(committed: Sequence[tuple[Operation, str]], *, overlap: bool) -> list[Row]:
    """What the table must hold: the effects of what was committed, in the order of the log.

    Where a blind append won over what reads its partition, that one comes before the append.

    Args:
        committed: One or two operations, each with the partition that it worked on.
        overlap: The cell's.
    """
    steps = list(committed)
    if steps[0][0] == "append":
        steps.reverse()
    rows = ROWS
    for operation, partition in steps:
        rows = effect(operation, partition, rows, overlap=overlap)
    return rows
