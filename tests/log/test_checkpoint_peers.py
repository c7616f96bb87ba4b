"""DuckDB and deltalake read a table from our checkpoints alone, of every form."""

import importlib
from pathlib import Path

import duckdb
import pytest
from deltalake import DeltaTable

import streamlake as sl
from streamlake.testing import TableBuilder

FORMS = [
    {},
    {"delta.checkpointPolicy": "v2"},
    {"delta.checkpoint.writeStatsAsStruct": "true", "delta.checkpoint.writeStatsAsJson": "false"},
    {"delta.checkpointPolicy": "v2", "delta.checkpoint.writeStatsAsStruct": "true"},
]


@pytest.fixture(scope="module")
def connection():
    folder = Path(importlib.import_module("duckdb_extension_delta").__file__ or "").parent
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as connection:
        connection.execute(f"LOAD '{next(folder.rglob('delta.duckdb_extension'))}'")
        yield connection


def numbers(connection, path: Path) -> list[int]:
    found = connection.execute("SELECT n FROM delta_scan($path) ORDER BY n", {"path": str(path)})
    return [n for (n,) in found.fetchall()]


@pytest.mark.parametrize("form", FORMS)
def test_what_we_checkpoint_others_read(tmp_path, connection, form):
    made = TableBuilder(tmp_path).properties(form).append(times=5).remove(1).checkpoint()
    table = made.append(txn=sl.SetTransaction("a", 1)).checkpoint().append().build()
    assert table.compact_log() is None
    for version in range(7):
        (tmp_path / "_delta_log" / f"{version:020d}.json").unlink()
    found = connection.execute(
        "SELECT n FROM delta_scan($path) ORDER BY n", {"path": str(tmp_path)}
    )
    assert [n for (n,) in found.fetchall()] == [0, 2, 3, 4, 5, 6]
    others = DeltaTable(tmp_path)
    assert len(others.file_uris()) == 6
    assert others.transaction_version("a") == 1


def test_a_compacted_log_is_the_same_table_to_others(tmp_path, connection):
    table = TableBuilder(tmp_path).append(times=5).remove(1).build()
    assert table.compact_log() == (0, 6)
    found = connection.execute(
        "SELECT n FROM delta_scan($path) ORDER BY n", {"path": str(tmp_path)}
    )
    assert [n for (n,) in found.fetchall()] == [0, 2, 3, 4]
    assert len(DeltaTable(tmp_path).file_uris()) == 4
