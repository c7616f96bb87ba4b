import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamlake as sl


def rows(table):
    return table.snapshot().to_arrow()


def ids(table):
    return rows(table)["id"].to_pylist()


def test_ndjson_from_stdin_is_one_commit(cli, orders):
    lines = '{"id":1,"item":"tea","at":"2026-01-02T03:04:05.000006Z"}\n{"id":2}\n'
    done = cli("append", orders.url, "-", stdin=lines)
    assert done.out == "Appended 2 rows in 1 commit: version 1.\n"
    at = pa.array([1767323045000006, None], pa.timestamp("us", "UTC"))
    expected = pa.table([pa.array([1, 2]), ["tea", None], at], schema=orders.schema)
    assert rows(orders).equals(expected)


def test_csv_parquet_and_ndjson_files_are_read_by_their_suffix(cli, orders, tmp_path):
    (tmp_path / "a.csv").write_text("item,id\n,1\n")
    pq.write_table(pa.table({"id": pa.array([2], pa.int32())}), tmp_path / "b.parquet")
    (tmp_path / "c.ndjson").write_text('{"id":3}')
    cli("append", orders.url, *(tmp_path / name for name in ("a.csv", "b.parquet", "c.ndjson")))
    assert ids(orders) == [1, 2, 3]
    assert orders.snapshot().version == 1


def test_rows_are_committed_every_so_many(cli, orders):
    lines = "".join(f'{{"id":{number}}}\n' for number in range(5))
    done = cli("append", orders.url, "-", "--batch-rows", 2, "--json", stdin=lines)
    assert [line["rows"] for line in done.json] == [2, 2, 1]
    assert [line["version"] for line in done.json] == [1, 2, 3]


def test_an_append_that_is_repeated_goes_on_after_the_rows_that_are_there(cli, orders, tmp_path):
    file = tmp_path / "log.jsonl"
    file.write_text('{"id":1}\n{"id":2}\n{"id":3}\n')
    cli("append", orders.url, file, "--app-id", "feed", "--batch-rows", 2)
    with file.open("a") as more:
        more.write('{"id":4}\n')
    cli("append", orders.url, file, "--app-id", "feed")
    assert ids(orders) == [1, 2, 3, 4]
    assert orders.snapshot().txn_version("feed/rows") == 4


def test_an_input_shorter_than_what_was_appended_of_it_is_told(cli, orders):
    cli("append", orders.url, "-", "--app-id", "feed", stdin='{"id":1}\n{"id":2}\n')
    done = cli("append", orders.url, "-", "--app-id", "feed", stdin='{"id":1}\n', code=1)
    assert "1 rows; the table has 2" in done.err


def test_an_app_id_is_not_empty(cli, orders):
    cli("append", orders.url, "-", "--app-id", "", stdin=b"", code=2)


def test_the_same_marker_again_is_skipped(cli, orders):
    marker = ("--app-id", "job", "--txn-version", 7)
    cli("append", orders.url, "-", *marker, stdin='{"id":1}')
    done = cli("append", orders.url, "-", *marker, "--json", stdin='{"id":1}')
    assert done.json == [{"version": 1, "rows": 0, "alreadyCommitted": True}]
    assert ids(orders) == [1]


def test_a_bad_line_is_named_and_nothing_is_written(cli, orders, tmp_path):
    file = tmp_path / "bad.jsonl"
    file.write_text('{"id":1}\n{"id":2}\n{"id":"three"}\n')
    done = cli("append", orders.url, file, code=1)
    assert f"{file}, line 3" in done.err
    assert "column 'id' takes a number, and this is a string" in done.err
    assert orders.snapshot().version == 0
    assert not list((tmp_path / "orders").glob("*.parquet"))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"item":"x"}', "no value for 'id', which is NOT NULL"),
        ('{"id":1,"colour":"red"}', "the table has no column 'colour'"),
        ('{"id":1,"at":"2026-01-02T03:04:05"}', "expected a zone offset"),
        ('{"id":1,', "no JSON"),
        ("[1]", "not an object"),
        ('{"id":9223372036854775808}', "couldn't parse:9223372036854775808"),
    ],
)
def test_each_bad_record_is_told_with_its_reason(cli, orders, line, reason):
    done = cli("append", orders.url, "-", stdin='{"id":0}\n' + line, code=1)
    assert "-, line 2" in done.err
    assert reason in done.err


def test_a_bad_csv_row_is_named(cli, orders, tmp_path):
    file = tmp_path / "bad.csv"
    file.write_text("id,item\n1,tea\n,milk\n")
    done = cli("append", orders.url, file, code=1)
    assert f"{file}, row 3" in done.err


def test_a_schema_that_differs_is_told_with_the_difference(cli, orders, tmp_path):
    pq.write_table(pa.table({"id": ["one"]}), tmp_path / "x.parquet")
    done = cli("append", orders.url, tmp_path / "x.parquet", code=1)
    assert "id" in done.err
    assert orders.snapshot().version == 0


def test_a_table_is_created_from_the_data_if_there_is_none(cli, tmp_path):
    lines = '{"n":1,"at":"2026-01-02T03:04:05Z"}\n{"n":null,"at":"2026-01-02T03:04:05.5+02:00"}\n'
    for _ in range(2):
        cli("append", tmp_path / "t", "-", "--create", stdin=lines)
    table = sl.Table.open(tmp_path / "t")
    assert table.schema == pa.schema([("n", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
    assert rows(table).num_rows == 4


def test_a_missing_table_is_told_with_what_to_do(cli, tmp_path):
    done = cli("append", tmp_path / "none", "-", stdin="{}", code=1)
    assert "There is no Delta table here." in done.err
    assert "do:" in done.err


def test_a_missing_file_is_told(cli, orders):
    assert "No such file" in cli("append", orders.url, "none.csv", code=1).err


def test_parquet_can_not_come_from_a_pipe(cli, orders):
    done = cli("append", orders.url, "-", "--format", "parquet", stdin=b"PAR1", code=1)
    assert "pipe" in done.err


def test_a_map_can_not_come_from_text(cli, tmp_path):
    cli("create", tmp_path / "t", "--schema", "m map<string,int>")
    done = cli("append", tmp_path / "t", "-", stdin='{"m":{"a":1}}', code=1)
    assert "can't carry column 'm'" in done.err


@pytest.fixture
def computing(tmp_path):
    fields = [
        pa.field("id", pa.int64()),
        pa.field("n", pa.int64(), nullable=False, metadata={b"delta.CURRENT_DEFAULT": b'"7"'}),
        pa.field("g", pa.int64(), metadata={b"delta.delta.generationExpression": b'"id + n"'}),
    ]
    return sl.Table.create(tmp_path / "computing", schema=pa.schema(fields))


def test_columns_that_records_leave_out_are_computed_by_the_table(cli, computing, tmp_path):
    lines = '{"id":1}\n\n{"id":2,"n":3}\n{"id":3,"g":10}\n{"id":4,"n":1}'
    cli("append", computing.url, "-", stdin=lines)
    (tmp_path / "a.csv").write_text("id\n5\n")
    cli("append", computing.url, tmp_path / "a.csv")
    found = [tuple(row.values()) for row in rows(computing).to_pylist()]
    assert found == [(1, 7, 8), (2, 3, 5), (3, 7, 10), (4, 1, 5), (5, 7, 12)]


def test_a_null_that_a_record_gives_is_none_that_it_leaves_out(cli, computing):
    done = cli("append", computing.url, "-", stdin='{"id":1}\n{"id":2,"n":null}\n', code=1)
    assert "line 2" in done.err
    assert computing.snapshot().version == 0


def test_a_record_that_breaks_a_rule_is_told(cli, computing):
    done = cli("append", computing.url, "-", stdin='{"id":1,"g":9}\n', code=1)
    assert "generated column 'g'" in done.err
