"""Rows that an optimize moves keep their ids and the versions in which they came."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamlake as sl
from data.deletion import inline
from streamlake.data import KeptIds, table_columns
from streamlake.log import Transaction, removal

SCHEMA = pa.schema([("p", pa.string()), ("n", pa.int64())])


def made(path: Path, mode: str = "none", **options: Any) -> sl.Table:
    properties = {
        "delta.enableRowTracking": "true",
        "delta.enableDeletionVectors": "true",
        "delta.columnMapping.mode": mode,
    }
    table = sl.Table.create(path / "t", schema=SCHEMA, properties=properties, **options)
    for n in range(3):
        table.append(pa.table({"p": ["a", "b"], "n": [2 * n, 2 * n + 1]}))
    return table


def ids_of(table: sl.Table) -> list[tuple[int, int, int]]:
    """Each row's number, id and version."""
    snapshot = table.snapshot()
    definition = table.log.head
    columns = table_columns(definition.protocol, definition.metadata)
    kept = KeptIds.of(columns, definition.metadata.configuration, where=table.url)
    found = [kept.read(table.log.store, add) for add in snapshot.files()]
    rows = pa.concat_tables(found).select(["n", *kept.hidden])
    return sorted(tuple(row.values()) for row in rows.to_pylist())


@pytest.mark.parametrize("mode", ["none", "name"])
@pytest.mark.parametrize("partition_by", [[], ["p"]])
def test_ids_and_versions_stay_when_files_are_packed_again_and_again(tmp_path, mode, partition_by):
    table = made(tmp_path, mode, partition_by=partition_by)
    before = ids_of(table)
    assert [row_id for _, row_id, _ in before] == list(range(6))
    assert [version for _, _, version in before] == [1, 1, 2, 2, 3, 3]
    assert table.optimize().files_removed > 0
    assert ids_of(table) == before
    table.append(pa.table({"p": ["a", "b"], "n": [6, 7]}))
    after = ids_of(table)
    assert after[:6] == before
    assert min(row_id for _, row_id, _ in after[6:]) > max(row_id for _, row_id, _ in before)
    assert table.optimize().files_removed > 0
    assert ids_of(table) == after
    assert table.snapshot().to_arrow().schema.names == ["p", "n"]


def test_rows_around_deleted_ones_keep_their_ids(tmp_path: Path):
    table = made(tmp_path)
    rows = pa.table({"p": ["c"] * 4, "n": [6, 7, 8, 9]})
    table.append(rows)
    add = table.snapshot().files()[-1]
    deleted = msgspec.structs.replace(add, deletion_vector=inline([1]), data_change=True)
    removed = removal(add, now_ms=0)
    change = Transaction(operation="DELETE", adds=(deleted,), removes=(removed,), read_version=4)
    table.log.commit(change)
    before = ids_of(table)
    assert before[6:] == [(6, 6, 4), (8, 8, 4), (9, 9, 4)]
    table.optimize()
    assert ids_of(table) == before


def test_ids_are_kept_where_checkpoints_leave_statistics_out(tmp_path: Path):
    table = made(tmp_path)
    table.set_properties({"delta.checkpoint.writeStatsAsJson": "false"})
    table.checkpoint()
    table = sl.Table.open(table.url)
    assert {add.stats for add in table.snapshot().files()} == {None}
    before = ids_of(table)
    assert [row_id for _, row_id, _ in before] == list(range(6))
    table.optimize()
    assert ids_of(table) == before


def test_the_hidden_columns_are_in_files_alone(tmp_path: Path):
    table = made(tmp_path)
    table.optimize()
    (add,) = table.snapshot().files()
    names = set(pq.read_schema(tmp_path / "t" / add.path).names) - {"p", "n"}
    assert names == {value for key, value in table.properties.items() if "materialized" in key}
    assert set(json.loads(str(add.stats))["nullCount"]) == {"p", "n"}
    assert add.base_row_id == 6
    info = next(table.history()).info
    assert info["tags"] == {"delta.rowTracking.preserved": "true"}


def test_files_that_are_found_by_field_ids_are_left_alone(tmp_path: Path):
    with pytest.raises(sl.UnsupportedFeatureError, match="rowTracking"):
        made(tmp_path, "id").optimize()
