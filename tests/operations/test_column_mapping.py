"""Tables that map their columns: what is written under which name."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamlake as sl
from streamlake.protocol import Protocol
from streamlake.protocol.mapping import column_id, physical_name

INNER = pa.struct([("x", pa.int32()), ("y", pa.list_(pa.struct([("z", pa.string())])))])
SCHEMA = pa.schema([("id", pa.int64()), ("the day", pa.string()), ("s", INNER)])
ROWS = [
    {"id": 1, "the day": "a", "s": {"x": 1, "y": [{"z": "u"}]}},
    {"id": 2, "the day": "b", "s": None},
]
BY_NAME = {"delta.columnMapping.mode": "name"}


def made(path: Path, mode: str = "name", **options: object) -> sl.Table:
    properties = {"delta.columnMapping.mode": mode, **options}
    return sl.Table.create(path, schema=SCHEMA, partition_by=["the day"], properties=properties)


def rows_of(table: sl.Table) -> list[dict[str, object]]:
    return sorted(table.snapshot().to_arrow().to_pylist(), key=lambda row: row["id"])


@pytest.mark.parametrize("mode", ["name", "id"])
def test_rows_come_back_under_the_names_that_people_use(tmp_path: Path, mode):
    table = made(tmp_path / "t", mode)
    table.append(pa.Table.from_pylist(ROWS, schema=SCHEMA))
    assert rows_of(sl.Table.open(table.url)) == ROWS
    (batch, *_) = table.tail(stop="latest")
    assert batch.data.schema.names == SCHEMA.names


def test_a_mapped_table_lists_its_feature_and_counts_its_ids(tmp_path: Path):
    table = made(tmp_path / "t")
    assert table.log.head.protocol == Protocol(3, 7, ("columnMapping",), ("columnMapping",))
    assert table.properties["delta.columnMapping.maxColumnId"] == "6"
    names = {physical_name(field) for field in table.schema}
    assert all(re.fullmatch(r"col-[0-9a-f-]{36}", str(name)) for name in names)
    assert len(names) == 3


def test_files_and_log_have_physical_names_and_files_have_field_ids(tmp_path: Path):
    table = made(tmp_path / "t")
    table.append(pa.Table.from_pylist(ROWS, schema=SCHEMA))
    add = table.snapshot().files()[0]
    day, s = table.schema.field("the day"), table.schema.field("s")
    assert list(add.partition_values) == [physical_name(day)]
    bounds = json.loads(str(add.stats))["minValues"]
    assert bounds[physical_name(s)] == {physical_name(s.type.field("x")): 1}
    stored = pq.read_schema(tmp_path / "t" / add.path)
    by_name = {field.name: field for field in stored}
    assert (
        by_name[str(physical_name(s))].metadata[b"PARQUET:field_id"] == str(column_id(s)).encode()
    )


def test_folders_are_random_for_names_may_change(tmp_path: Path):
    table = made(tmp_path / "t")
    table.append(pa.Table.from_pylist(ROWS, schema=SCHEMA))
    assert all(re.match(r"[0-9a-f]{2}/part-", add.path) for add in table.snapshot().files())


def test_random_folders_can_be_had_without_a_mapping(tmp_path: Path):
    properties = {"delta.randomizeFilePrefixes": "true", "delta.randomPrefixLength": "3"}
    table = sl.Table.create(tmp_path / "t", schema=SCHEMA.remove(1), properties=properties)
    table.append(pa.table({"id": [1]}))
    assert re.match(r"[0-9a-f]{3}/part-", table.snapshot().files()[0].path)
    assert table.snapshot().to_arrow()["id"].to_pylist() == [1]


@pytest.mark.parametrize(
    ("codec", "ending", "stored"),
    [
        ("ZSTD", ".zstd.parquet", "ZSTD"),
        ("uncompressed", ".parquet", "UNCOMPRESSED"),
        ("lz4_raw", ".lz4.parquet", "LZ4"),
        ("gzip", ".gz.parquet", "GZIP"),
    ],
)
def test_files_are_compressed_as_the_table_asks(tmp_path: Path, codec, ending, stored):
    properties = {
        "delta.parquet.compression.codec": codec,
        "delta.parquet.format.version": "2.12.0",
    }
    schema = pa.schema([("id", pa.int64())])
    table = sl.Table.create(tmp_path / "t", schema=schema, properties=properties)
    table.append(pa.table({"id": [1]}))
    path = table.snapshot().files()[0].path
    assert path.endswith(f"-c000{ending}")
    footer = pq.read_metadata(tmp_path / "t" / path)
    assert footer.row_group(0).column(0).compression == stored
    assert table.snapshot().to_arrow()["id"].to_pylist() == [1]


def test_columns_for_statistics_are_named_as_people_do(tmp_path: Path):
    table = made(tmp_path / "t", **{"delta.dataSkippingStatsColumns": "s.x,gone"})
    table.append(pa.Table.from_pylist(ROWS, schema=SCHEMA))
    stats = json.loads(str(table.snapshot().files()[0].stats))
    assert list(stats["nullCount"]) == [physical_name(table.schema.field("s"))]


def test_names_of_any_characters_need_a_mapping(tmp_path: Path):
    with pytest.raises(sl.InvalidInputError, match="'the day'"):
        sl.Table.create(tmp_path / "t", schema=SCHEMA)


def test_a_table_begins_to_map_with_the_names_that_its_files_have(tmp_path: Path):
    schema = pa.schema([("id", pa.int64()), ("s", INNER)])
    table = sl.Table.create(tmp_path / "t", schema=schema, partition_by=["id"])
    table.append(pa.table({"id": [1], "s": pa.array([{"x": 1}], INNER)}))
    table.set_properties(BY_NAME)
    assert [physical_name(field) for field in table.schema] == ["id", "s"]
    assert table.log.head.protocol == Protocol(
        3, 7, ("columnMapping",), ("appendOnly", "columnMapping", "invariants")
    )
    table.append(pa.table({"id": [2], "s": pa.array([{"x": 2}], INNER)}))
    assert [row["s"]["x"] for row in rows_of(table)] == [1, 2]


@pytest.mark.parametrize("mode", ["none", "id"])
def test_a_mapping_is_not_changed_or_taken_back(tmp_path: Path, mode):
    table = made(tmp_path / "t")
    with pytest.raises(sl.InvalidInputError, match=f"from name to {mode}"):
        table.set_properties({"delta.columnMapping.mode": mode})
    with pytest.raises(sl.InvalidInputError, match="from name to none"):
        table.unset_properties(["delta.columnMapping.mode"])


def test_a_schema_taken_from_a_mapped_table_is_mapped_anew(tmp_path: Path):
    one = made(tmp_path / "one")
    two = sl.Table.create(tmp_path / "two", schema=one.schema, properties=BY_NAME)
    assert physical_name(two.schema.field(0)) != physical_name(one.schema.field(0))
    three = sl.Table.create(tmp_path / "three", schema=pa.schema([one.schema.field(0)]))
    assert three.schema.field(0).metadata is None


def test_small_files_of_a_mapped_table_are_packed(tmp_path: Path):
    table = made(tmp_path / "t")
    for row in (ROWS[0], {**ROWS[0], "id": 3}):
        table.append(pa.Table.from_pylist([row], schema=SCHEMA))
    assert table.optimize().files_removed == 2
    assert rows_of(table) == [ROWS[0], {**ROWS[0], "id": 3}]
