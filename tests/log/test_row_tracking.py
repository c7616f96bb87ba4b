"""Row tracking: every row that joins the table has an id that no other row ever had."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import streamlake as sl
from streamlake.log import Log, Transaction, read_commit, removal
from streamlake.testing import CountingStore

SCHEMA = pa.schema([("id", pa.int64())])
ENABLED = {"delta.enableRowTracking": "true"}
SUPPORTED = {"delta.feature.rowTracking": "supported"}


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def id_ranges(table: sl.Table) -> list[tuple[int | None, int | None, int | None]]:
    return sorted(
        (add.base_row_id, add.num_records, add.default_row_commit_version)
        for add in table.snapshot().files()
    )


def mark(table: sl.Table) -> int:
    found: int = json.loads(table.domain_metadata()["delta.rowTracking"])["rowIdHighWaterMark"]
    return found


@pytest.mark.parametrize("properties", [ENABLED, SUPPORTED])
def test_rows_get_the_ids_after_the_high_water_mark(tmp_path: Path, properties):
    table = sl.Table.create(tmp_path / "t", schema=SCHEMA, properties=properties)
    table.append(rows(1, 2, 3))
    table.append(rows(4, 5))
    assert id_ranges(table) == [(0, 3, 1), (3, 2, 2)]
    assert mark(table) == 4
    assert table.log.head.protocol.writer_features == ("domainMetadata", "rowTracking")


def test_a_commit_that_lost_the_race_takes_ids_after_the_winners(tmp_path: Path):
    first = sl.Table.create(tmp_path / "t", schema=SCHEMA, properties=ENABLED)
    second = sl.Table.open(tmp_path / "t")
    second.append(rows(1, 2))
    first.append(rows(3))
    assert id_ranges(first) == [(0, 2, 1), (2, 1, 2)]
    assert mark(second) == 2


def test_ids_go_on_after_a_checkpoint(tmp_path: Path):
    table = sl.Table.create(tmp_path / "t", schema=SCHEMA, properties=ENABLED)
    table.append(rows(1, 2))
    table.checkpoint()
    reopened = sl.Table.open(tmp_path / "t")
    reopened.append(rows(3))
    assert id_ranges(reopened) == [(0, 2, 1), (2, 1, 2)]


def test_a_commit_without_rows_leaves_the_mark_alone(tmp_path: Path):
    table = sl.Table.create(tmp_path / "t", schema=SCHEMA, properties=ENABLED)
    table.append(rows(), txn=sl.SetTransaction("a", 1))
    assert not read_commit(table.log.store, 1).domains


def test_names_for_the_hidden_columns_are_given_once(tmp_path: Path):
    table = sl.Table.create(tmp_path / "t", schema=SCHEMA, properties=ENABLED)
    names = {k: v for k, v in table.properties.items() if "materialized" in k}
    assert len(set(names.values())) == 2
    table.set_properties({"mine": "x"})
    assert names.items() <= table.properties.items()


def test_suspended_tracking_gives_no_ids(tmp_path: Path):
    properties = {**SUPPORTED, "delta.rowTrackingSuspended": "true"}
    table = sl.Table.create(tmp_path / "t", schema=SCHEMA, properties=properties)
    table.append(rows(1))
    assert id_ranges(table) == [(None, 1, None)]
    with pytest.raises(sl.InvalidInputError, match="suspended"):
        table.set_properties(ENABLED)


def test_a_rewrite_that_would_lose_kept_ids_is_refused(tmp_path: Path):
    table = sl.Table.create(tmp_path / "t", schema=SCHEMA, properties=ENABLED)
    table.append(rows(1))
    files = table.snapshot().files()
    moved = table.stager().stage(rows(1), data_change=False)
    removes = tuple(removal(add, now_ms=0, data_change=False) for add in files)
    with pytest.raises(sl.UnsupportedFeatureError, match="rowTracking"):
        table.log.commit(Transaction(operation="MINE", adds=moved, removes=removes, read_version=1))
    assert table.version == 1


def test_rows_that_are_there_get_ids_before_tracking_is_enabled(tmp_path: Path):
    table = sl.Table.create(tmp_path / "t", schema=SCHEMA)
    table.append(rows(1, 2))
    table.append(rows(3))
    table.set_properties({**ENABLED, "mine": "x"})
    table.append(rows(4))
    assert id_ranges(table) == [(0, 2, 4), (2, 1, 4), (3, 1, 6)]
    assert mark(table) == 3
    assert table.properties["mine"] == "x"
    operations = [record.operation for record in table.history(limit=4)]
    assert operations == ["WRITE", "SET TBLPROPERTIES", "ROW TRACKING BACKFILL", "UPGRADE PROTOCOL"]
    table.checkpoint()
    assert id_ranges(sl.Table.open(table.url)) == [(0, 2, 4), (2, 1, 4), (3, 1, 6)]
    told = [batch.data["id"].to_pylist() for batch in table.tail(stop="latest")]
    assert [ids for ids in told if ids] == [[1, 2], [3], [4]]


def test_a_table_that_tracks_its_rows_already_only_gets_the_property(tmp_path: Path):
    table = sl.Table.create(tmp_path / "t", schema=SCHEMA, properties=SUPPORTED)
    table.append(rows(1))
    table.set_properties(ENABLED)
    table.append(rows(2))
    assert id_ranges(table) == [(0, 1, 1), (1, 1, 3)]


def test_suspended_tracking_is_taken_up_again_when_it_is_enabled(tmp_path: Path):
    properties = {**SUPPORTED, "delta.rowTrackingSuspended": "true"}
    table = sl.Table.create(tmp_path / "t", schema=SCHEMA, properties=properties)
    table.append(rows(1))
    table.set_properties({**ENABLED, "delta.rowTrackingSuspended": "false"})
    table.append(rows(2))
    assert [(base, count) for base, count, _ in id_ranges(table)] == [(0, 1), (1, 1)]


class RemovedMeanwhile(CountingStore):
    """Lets another handle rewrite the table's files right before they are given ids."""

    def put_if_absent(self, path: str, data: bytes | memoryview) -> None:
        if b"BACKFILL" in bytes(data) and self.count("put_if_absent") == 1:
            sl.Table(Log(self.inner)).optimize()
        super().put_if_absent(path, data)


def test_files_that_go_while_they_get_ids_do_not_come_back(tmp_path: Path):
    table = sl.Table.create(tmp_path / "t", schema=SCHEMA)
    table.append(rows(1))
    table.append(rows(2))
    sl.Table(Log(RemovedMeanwhile(table.log.store))).set_properties(ENABLED)
    assert sorted(table.snapshot().to_arrow()["id"].to_pylist()) == [1, 2]
    assert [(base, count) for base, count, _ in id_ranges(table)] == [(0, 2)]


def test_a_garbled_mark_is_told(tmp_path: Path):
    table = sl.Table.create(tmp_path / "t", schema=SCHEMA, properties=ENABLED)
    garbled = {"domain": "delta.rowTracking", "configuration": "{}", "removed": False}
    line = json.dumps({"domainMetadata": garbled}).encode()
    table.log.store.put("_delta_log/00000000000000000001.json", line)
    with pytest.raises(sl.CorruptTableError, match=r"delta\.rowTracking"):
        table.append(rows(1))
