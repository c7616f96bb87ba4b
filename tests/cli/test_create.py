import pyarrow as pa
import pyarrow.parquet as pq

import streamlake as sl


def test_creates_a_table_from_columns_as_people_write_them(cli, tmp_path):
    cli("create", tmp_path / "t", "--schema", "id long not null, tags array<string>")
    table = sl.Table.open(tmp_path / "t")
    assert table.schema.field("id") == pa.field("id", pa.int64(), nullable=False)
    assert table.schema.field("tags").type == pa.list_(pa.field("element", pa.string()))


def test_creates_a_table_from_a_delta_schema_in_a_file(cli, tmp_path):
    schema = tmp_path / "schema.json"
    schema.write_text(
        '{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":{}}]}'
    )
    cli("create", tmp_path / "t", "--schema", schema)
    assert sl.Table.open(tmp_path / "t").schema == pa.schema([("a", pa.int64())])


def test_creates_a_table_like_a_parquet_file(cli, tmp_path):
    like = tmp_path / "like.parquet"
    pq.write_table(pa.table({"a": [1], "at": pa.array([None], pa.timestamp("ns", "UTC"))}), like)
    cli("create", tmp_path / "t", "--like", like)
    expected = pa.schema([("a", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
    assert sl.Table.open(tmp_path / "t").schema == expected


def test_partitions_and_properties_are_the_tables(cli, tmp_path):
    arguments = ["--partition-by", "day", "--property", "delta.appendOnly=true"]
    cli("create", tmp_path / "t", "--schema", "id long, day date", *arguments)
    table = sl.Table.open(tmp_path / "t")
    assert table.partition_columns == ("day",)
    assert table.properties["delta.appendOnly"] == "true"


def test_says_in_json_what_was_created(cli, tmp_path):
    done = cli("create", tmp_path / "t", "--schema", "id long", "--json")
    table = sl.Table.open(tmp_path / "t")
    assert done.json == [{"table": table.url, "id": table.id, "version": 0}]


def test_create_over_a_table_is_told_and_leaves_it_alone(cli, orders):
    done = cli("create", orders.url, "--schema", "other long", code=1)
    assert "There is a table here already." in done.err
    assert sl.Table.open(orders.url).id == orders.id


def test_columns_that_make_no_sense_are_told(cli, tmp_path):
    done = cli("create", tmp_path / "t", "--schema", "id lung", code=1)
    assert "expected a type" in done.err
    assert not (tmp_path / "t").exists()


def test_a_file_of_unknown_suffix_is_told_those_that_are_known(cli, tmp_path):
    (tmp_path / "orders.txt").write_text("{}")
    done = cli("create", tmp_path / "t", "--like", tmp_path / "orders.txt", code=1)
    assert ".ndjson" in done.err


def test_columns_must_come_from_one_place(cli, tmp_path):
    cli("create", tmp_path / "t", code=2)
    cli("create", tmp_path / "t", "--schema", "a long", "--like", "x.csv", code=2)
