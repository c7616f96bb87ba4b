"""An append-only table loses no row by us."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import streamlake as sl
from streamlake.log import Transaction
from streamlake.protocol import RemoveFile

SCHEMA = pa.schema([("id", pa.int64())])


def removal(table: sl.Table, *, data_change: bool) -> Transaction:
    removes = tuple(RemoveFile(add.path, data_change) for add in table.snapshot().files())
    return Transaction(operation="DELETE", removes=removes, read_version=table.version)


def test_a_commit_that_removes_rows_is_refused_before_it_is_written(tmp_path: Path):
    table = sl.Table.create(tmp_path / "t", schema=SCHEMA, properties={"delta.appendOnly": "true"})
    table.append(pa.table({"id": [1]}))
    with pytest.raises(sl.ConstraintViolationError, match="append-only"):
        table.log.commit(removal(table, data_change=True))
    assert sl.Table.open(table.url).version == 1
    assert table.log.commit(removal(table, data_change=False)).version == 2


def test_rows_may_go_again_once_the_property_is_unset(tmp_path: Path):
    table = sl.Table.create(tmp_path / "t", schema=SCHEMA, properties={"delta.appendOnly": "true"})
    table.append(pa.table({"id": [1]}))
    table.unset_properties(["delta.appendOnly"])
    assert table.log.commit(removal(table, data_change=True)).version == 3
    assert len(table.snapshot().files()) == 0
