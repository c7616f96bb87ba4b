"""Operations on ranges of a column, which only the files' statistics tell apart."""

import itertools

import pyarrow as pa
import pytest

import streamlake as sl
from streamlake.data.predicates import read_predicate
from streamlake.log import Log, Transaction, removal
from streamlake.testing import TableBuilder

SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("name", pa.string())])


def rows(first: int, last: int) -> pa.Table:
    ids = list(range(first, last + 1))
    return pa.table([ids, [f"name-{n:02}" for n in ids]], schema=SCHEMA)


def two_handles(level: str = "WriteSerializable") -> tuple[sl.Table, sl.Table]:
    """Of a table with three files: ids 0 to 9, 10 to 19, 20 to 29."""
    builder = TableBuilder().schema(SCHEMA).properties({"delta.isolationLevel": level})
    for first in (0, 10, 20):
        builder = builder.append(rows(first, first + 9))
    table = builder.build()
    return table, sl.Table(Log(table.log.store, clock=table.log.clock))


def update(table: sl.Table, where: str) -> Transaction:
    """Writes the files with rows of ``where`` anew, as an update of those rows does."""
    snapshot = table.snapshot()
    files = list(snapshot.files())
    touched = snapshot.files(where=where)
    stager = table.stager()
    firsts = [10 * files.index(file) for file in touched]
    adds = [add for first in firsts for add in stager.stage(rows(first, first + 9))]
    return Transaction(
        operation="UPDATE",
        adds=tuple(adds),
        removes=tuple(removal(file, now_ms=1) for file in touched),
        reads=(read_predicate(where, snapshot.metadata),),
        read_version=snapshot.version,
        staged_schema=stager.schema_json,
        staged_partitions=stager.partition_columns,
        staged_configuration=stager.configuration,
    )


RANGES = {"id < 5": {0}, "id BETWEEN 12 AND 22": {1, 2}, "name >= 'name-25'": {2}, "id = 30": set()}


@pytest.mark.parametrize("level", ["WriteSerializable", "Serializable"])
@pytest.mark.parametrize(("second", "first"), list(itertools.product(RANGES, RANGES)))
def test_updates_pass_each_other_unless_their_files_may_hold_the_same_rows(second, first, level):
    table, other = two_handles(level)
    staged = update(table, second)
    other.log.commit(update(other, first))
    if RANGES[first] & RANGES[second]:
        with pytest.raises(sl.CommitConflictError):
            table.log.commit(staged)
    else:
        assert table.log.commit(staged).version == 5
    assert sorted(other.snapshot().to_arrow()["id"].to_pylist()) == list(range(30))


@pytest.mark.parametrize(("ids", "conflicts"), [((30, 39), False), ((8, 12), True)])
def test_an_append_of_other_ids_does_not_stop_an_update_even_if_serializable(ids, conflicts):
    table, other = two_handles("Serializable")
    staged = update(table, "id < 10")
    other.append(rows(*ids))
    if conflicts:
        with pytest.raises(sl.ConcurrentAppendError, match="id < 10"):
            table.log.commit(staged)
    else:
        assert table.log.commit(staged).version == 5


def test_files_without_statistics_may_hold_any_row():
    table, other = two_handles("Serializable")
    staged = update(table, "id < 10")
    other.set_properties({"delta.dataSkippingNumIndexedCols": "0"})
    fresh = update(table, "id < 10")
    other.append(rows(30, 39))
    with pytest.raises(sl.MetadataChangedError):
        table.log.commit(staged)
    with pytest.raises(sl.ConcurrentAppendError):
        table.log.commit(fresh)
