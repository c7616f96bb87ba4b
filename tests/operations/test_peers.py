"""delta-rs reads what streamlake writes, and the other way round."""

import datetime as dt
import decimal

import deltalake
import pyarrow as pa
import pytest

import streamlake as sl

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("name", pa.string()),
        pa.field("small", pa.int16()),
        pa.field("ratio", pa.float64()),
        pa.field("price", pa.decimal128(12, 3)),
        pa.field("day", pa.date32()),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field("raw", pa.binary()),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("attributes", pa.map_(pa.string(), pa.int64())),
        pa.field("place", pa.struct([pa.field("x", pa.float32()), pa.field("y", pa.bool_())])),
    ]
)


def rows(first: int, count: int) -> pa.Table:
    day = dt.date(2024, 1, 1)
    at = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    return pa.Table.from_pylist(
        [
            {
                "id": i,
                "name": None if i % 5 == 0 else f"näme {i}",
                "small": i % 100,
                "ratio": i / 3,
                "price": decimal.Decimal(i) / 8,
                "day": day + dt.timedelta(days=i % 3),
                "at": at + dt.timedelta(microseconds=i * 1_001),
                "raw": bytes([i % 256]),
                "tags": ["a", None] * (i % 3),
                "attributes": [("k", i)],
                "place": {"x": float(i), "y": i % 2 == 0},
            }
            for i in range(first, first + count)
        ],
        schema=SCHEMA,
    )


def theirs(url: str) -> pa.Table:
    found = pa.table(deltalake.DeltaTable(url).to_pyarrow_table())
    return found.select(SCHEMA.names).cast(SCHEMA).sort_by("id")


@pytest.mark.parametrize("partition_by", [[], ["day"], ["name", "small"]])
def test_deltalake_reads_appends_checkpoints_and_an_optimize(tmp_path, partition_by):
    url = str(tmp_path / "t")
    properties = {"delta.checkpointInterval": "3"}
    table = sl.Table.create(url, schema=SCHEMA, partition_by=partition_by, properties=properties)
    for number in range(7):
        table.append(rows(number * 10, 10), txn=sl.SetTransaction("writer", number))
    table.optimize()
    expected = rows(0, 70)
    assert theirs(url).equals(expected)
    assert sl.Table.open(url).snapshot().to_arrow().sort_by("id").equals(expected)
    assert deltalake.DeltaTable(url).transaction_version("writer") == 6
    assert (tmp_path / "t/_delta_log/_last_checkpoint").exists()


@pytest.mark.parametrize("partition_by", [[], ["day"]])
def test_we_read_and_extend_what_deltalake_writes(tmp_path, partition_by):
    url = str(tmp_path / "t")
    deltalake.write_deltalake(url, rows(0, 30), partition_by=partition_by)
    properties = deltalake.CommitProperties(app_transactions=[deltalake.Transaction("w", 4)])
    deltalake.write_deltalake(url, rows(30, 10), mode="append", commit_properties=properties)
    peer = deltalake.DeltaTable(url)
    peer.optimize.compact()
    peer.create_checkpoint()
    table = sl.Table.open(url)
    assert table.snapshot().txn_version("w") == 4
    assert table.append(rows(40, 5), txn=sl.SetTransaction("w", 4)).already_committed
    table.append(rows(40, 5), txn=sl.SetTransaction("w", 5))
    found = table.snapshot().to_arrow().sort_by("id")
    assert found.select(SCHEMA.names).cast(SCHEMA).equals(rows(0, 45))
    assert theirs(url).equals(rows(0, 45))


def test_both_write_one_table_in_turns(tmp_path):
    url = str(tmp_path / "t")
    table = sl.Table.create(url, schema=SCHEMA)
    for turn in range(4):
        table.append(rows(turn * 20, 10))
        deltalake.write_deltalake(url, rows(turn * 20 + 10, 10), mode="append")
    assert table.snapshot().to_arrow().sort_by("id").equals(rows(0, 80))
    assert [b.data.num_rows for b in table.tail(stop="latest") if b.data.num_rows] == [10] * 8


def test_history_of_both_writers_is_told_by_both(tmp_path):
    url = str(tmp_path / "t")
    table = sl.Table.create(url, schema=SCHEMA)
    deltalake.write_deltalake(url, rows(0, 1), mode="append")
    table.append(rows(1, 1))
    assert [record.operation for record in table.history()] == ["WRITE", "WRITE", "CREATE TABLE"]
    assert len(deltalake.DeltaTable(url).history()) == 3
