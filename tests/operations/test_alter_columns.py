"""Columns added, renamed, dropped and altered while their rows stay where they are."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import streamlake as sl
from operations.overtaken import overtaken
from streamlake.protocol import field_metadata
from streamlake.protocol.mapping import column_id, physical_name

SCHEMA = pa.schema(
    [
        ("id", pa.int32()),
        ("day", pa.string()),
        ("s", pa.struct([("x", pa.int32()), ("y", pa.string())])),
        ("tags", pa.list_(pa.struct([("k", pa.string()), ("v", pa.int32())]))),
    ]
)
ROW = {"id": 1, "day": "a", "s": {"x": 1, "y": "z"}, "tags": [{"k": "a", "v": 2}]}
MAPPED = {"delta.columnMapping.mode": "name"}


def made(path: Path, properties: dict[str, str] | None = None) -> sl.Table:
    table = sl.Table.create(
        path / "t", schema=SCHEMA, partition_by=["day"], properties=properties or {}
    )
    table.append(pa.Table.from_pylist([ROW], schema=SCHEMA))
    return table


@pytest.fixture
def mapped(tmp_path: Path) -> sl.Table:
    return made(tmp_path, MAPPED)


def only_row(table: sl.Table) -> dict[str, object]:
    (row,) = sl.Table.open(table.url).snapshot().to_arrow().to_pylist()
    found: dict[str, object] = row
    return found


@pytest.mark.parametrize("properties", [{}, MAPPED])
def test_columns_are_added_as_nulls(tmp_path: Path, properties):
    table = made(tmp_path, properties)
    table.add_columns(pa.schema([("note", pa.string()), ("n", pa.uint8())]))
    table.add_columns((field for field in [pa.field("w", pa.float64())]), within="s")
    table.add_columns([pa.field("w", pa.float64())], within="tags.element")
    assert only_row(table) == ROW | {
        "note": None,
        "n": None,
        "s": {"x": 1, "y": "z", "w": None},
        "tags": [{"k": "a", "v": 2, "w": None}],
    }
    assert table.schema.field("n").type == pa.int16()
    table.append(pa.table({"id": pa.array([2], pa.int32()), "day": ["a"], "note": ["new"]}))
    assert table.snapshot().to_arrow()["note"].to_pylist() == [None, "new"]


def test_a_column_that_comes_gets_the_next_id_and_a_fresh_name(mapped):
    before = int(mapped.properties["delta.columnMapping.maxColumnId"])
    mapped.drop_columns(["tags"])
    mapped.add_columns([pa.field("tags", pa.int64())])
    field = mapped.schema.field("tags")
    assert column_id(field) == before + 1
    assert str(physical_name(field)).startswith("col-")
    assert only_row(mapped)["tags"] is None


@pytest.mark.parametrize(
    ("fields", "within", "told"),
    [
        ([pa.field("ID", pa.int64())], None, "has a column 'id' already"),
        ([pa.field("X", pa.int64())], "s", r"has a column 's\.x' already"),
        ([pa.field("n", pa.int64(), nullable=False)], None, "NOT NULL"),
        ([pa.field("n", pa.duration("s"))], None, "without loss"),
        ([pa.field("a b", pa.int64())], None, "character"),
        ([pa.field("n", pa.int64(), metadata={b"delta.CURRENT_DEFAULT": b'"1"'})], None, "default"),
        ([pa.field("n", pa.int64())], "id", "no fields inside of 'id'"),
        ([pa.field("n", pa.int64())], "tags", "element"),
        ([pa.field("n", pa.int64())], "gone", "no column 'gone'"),
    ],
)
def test_columns_that_can_not_be_added_are_refused(tmp_path: Path, fields, within, told):
    table = made(tmp_path)
    with pytest.raises(sl.InvalidInputError, match=told):
        table.add_columns(fields, within=within)
    assert sl.Table.open(table.url).version == 1


def test_a_column_without_its_feature_brings_it(tmp_path: Path):
    table = made(tmp_path)
    table.add_columns([pa.field("t", pa.timestamp("us"))])
    assert table.log.head.protocol.reader_features == ("timestampNtz",)


def test_columns_are_renamed_and_keep_their_values(mapped):
    mapped.rename_column("id", "the id")
    mapped.rename_column("S.x", "x.y")
    mapped.rename_column("tags.element.v", "w")
    mapped.rename_column("day", "dt")
    assert mapped.partition_columns == ("dt",)
    renamed = {
        "the id": 1,
        "dt": "a",
        "s": {"x.y": 1, "y": "z"},
        "tags": [{"k": "a", "w": 2}],
    }
    assert only_row(mapped) == renamed
    mapped.rename_column("s.`x.y`", "x")
    assert only_row(mapped)["s"] == {"x": 1, "y": "z"}


def test_columns_are_dropped_and_one_of_the_name_comes_back_empty(mapped):
    mapped.drop_columns(["s.y", "tags"])
    assert only_row(mapped) == {"id": 1, "day": "a", "s": {"x": 1}}
    mapped.add_columns([pa.field("y", pa.string())], within="s")
    assert only_row(mapped)["s"] == {"x": 1, "y": None}


@pytest.mark.parametrize(
    ("column", "name", "told"),
    [
        ("id", "DAY", "'day' already"),
        ("gone", "n", "no column 'gone'"),
        ("id", "", "needs a name"),
        ("a,b", "n", "is no column"),
    ],
)
def test_names_that_can_not_be_given_are_refused(mapped, column, name, told):
    with pytest.raises(sl.InvalidInputError, match=told):
        mapped.rename_column(column, name)


def test_what_the_table_stands_on_is_not_dropped(mapped):
    with pytest.raises(sl.InvalidInputError, match="partitioned by it"):
        mapped.drop_columns(["day"])
    with pytest.raises(sl.InvalidInputError, match="only one"):
        mapped.drop_columns(["s.x", "s.y"])
    with pytest.raises(sl.InvalidInputError, match="data files would have none"):
        mapped.drop_columns([name for name in mapped.schema.names if name != "day"])
    assert mapped.version == 1


def test_names_change_only_where_columns_are_mapped(tmp_path: Path):
    table = made(tmp_path)
    with pytest.raises(sl.InvalidInputError, match="columnMapping"):
        table.rename_column("id", "n")
    with pytest.raises(sl.InvalidInputError, match="columnMapping"):
        table.drop_columns(["id"])


def test_the_columns_that_have_statistics_follow(tmp_path: Path):
    table = made(tmp_path, {**MAPPED, "delta.dataSkippingStatsColumns": "id,s.x,s.y"})
    table.rename_column("s", "t")
    table.drop_columns(["id"])
    assert table.properties["delta.dataSkippingStatsColumns"] == "`t`.`x`,`t`.`y`"
    table.drop_columns("t")
    assert "delta.dataSkippingStatsColumns" not in table.properties


def test_types_widen_where_the_table_allows_it(tmp_path: Path):
    table = made(tmp_path)
    with pytest.raises(sl.InvalidInputError, match="enableTypeWidening"):
        table.alter_column("id", type=pa.int64())
    table.set_properties({"delta.enableTypeWidening": "true"})
    table.alter_column("id", type=pa.int64())
    table.alter_column("s.x", type=pa.float64())
    assert table.log.head.protocol.reader_features == ("typeWidening",)
    assert field_metadata(table.schema.field("id"))["delta.typeChanges"] == [
        {"fromType": "integer", "toType": "long"}
    ]
    table.append(pa.table({"id": [2**40], "day": ["a"]}))
    assert table.snapshot().to_arrow()["id"].to_pylist() == [1, 2**40]


def test_what_is_inside_of_lists_and_maps_widens_and_the_path_is_noted(tmp_path: Path):
    schema = pa.schema([("a", pa.list_(pa.map_(pa.string(), pa.int8())))])
    properties = {"delta.enableTypeWidening": "true"}
    table = sl.Table.create(tmp_path / "t", schema=schema, properties=properties)
    table.append(pa.table({"a": [[[("k", 1)]]]}, schema=schema))
    table.alter_column("a", type=pa.list_(pa.map_(pa.string(), pa.int32())))
    assert field_metadata(table.schema.field("a"))["delta.typeChanges"] == [
        {"fromType": "byte", "toType": "integer", "fieldPath": "element.value"}
    ]
    assert table.snapshot().to_arrow()["a"].to_pylist() == [[[("k", 1)]]]


@pytest.mark.parametrize("kind", [pa.int16(), pa.float32(), pa.string(), pa.decimal128(9, 0)])
def test_types_do_not_narrow_or_change_kind(tmp_path: Path, kind):
    table = made(tmp_path, {"delta.enableTypeWidening": "true"})
    with pytest.raises(sl.InvalidInputError, match="can't become"):
        table.alter_column("id", type=kind)


def test_a_column_becomes_not_null_when_no_row_has_null_there(tmp_path: Path):
    table = made(tmp_path)
    table.alter_column("id", nullable=False)
    table.alter_column("s.x", nullable=False)
    with pytest.raises(sl.ConstraintViolationError):
        table.append(pa.table({"id": pa.array([None], pa.int32()), "day": ["a"]}))
    table.alter_column("id", nullable=True)
    table.append(pa.table({"id": pa.array([None], pa.int32()), "day": ["a"]}))
    with pytest.raises(sl.ConstraintViolationError, match="id: 1 null"):
        sl.Table.open(table.url).alter_column("id", nullable=False)


def test_comments_come_and_go(tmp_path: Path):
    table = made(tmp_path)
    table.alter_column("s.x", comment="how far")
    assert field_metadata(table.schema.field("s").type.field("x")) == {"comment": "how far"}
    table.alter_column("s.x", comment="")
    assert field_metadata(table.schema.field("s").type.field("x")) == {}


def test_a_change_that_another_one_overtook_is_a_conflict(mapped):
    other = overtaken(mapped, lambda: mapped.rename_column("id", "first"))
    with pytest.raises(sl.MetadataChangedError):
        other.rename_column("id", "second")
    assert "first" in sl.Table.open(mapped.url).schema.names


def test_rows_that_come_while_a_column_becomes_not_null_are_a_conflict(mapped):
    rows = pa.table({"id": pa.array([None], pa.int32()), "day": ["a"]})
    other = overtaken(mapped, lambda: mapped.append(rows))
    with pytest.raises(sl.ConcurrentAppendError):
        other.alter_column("id", nullable=False)


def test_rows_on_their_way_join_whatever_columns_are_called_by_then(mapped):
    rows = pa.table({"id": pa.array([2], pa.int32()), "day": ["b"]})

    def change() -> None:
        mapped.rename_column("id", "the id")
        mapped.rename_column("day", "dt")
        mapped.drop_columns(["tags"])

    overtaken(mapped, change).append(rows)
    found = mapped.snapshot().to_arrow().select(["the id", "dt"]).to_pylist()
    assert found == [{"the id": 1, "dt": "a"}, {"the id": 2, "dt": "b"}]


@pytest.mark.parametrize("rest", [[], [pa.field("v", pa.null())]])
def test_a_table_that_no_row_could_be_appended_to_is_not_made(rest):
    schema = pa.schema([pa.field("day", pa.string()), *rest])
    with pytest.raises(sl.InvalidInputError, match="data files would have none"):
        sl.Table.create("memory://all-partitions", schema=schema, partition_by=["day"])
