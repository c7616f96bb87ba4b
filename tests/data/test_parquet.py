from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

from data.arrow_strategies import tables
from streamlake.data import encode_parquet
from streamlake.data.parquet import ParquetEncoder

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


def physical(values, kind):
    """The physical and the logical type that Parquet has for a column."""
    data = encode_parquet(pa.table({"c": pa.array(values, kind)}))
    column = pq.ParquetFile(pa.BufferReader(data)).schema.column(0)
    return column.physical_type, str(column.logical_type)


@given(tables())
def test_every_type_comes_back_as_it_was(table):
    found = pq.read_table(pa.BufferReader(encode_parquet(table)))
    assert found.cast(table.schema).equals(table)


def test_timestamps_are_microseconds_that_say_whether_they_are_in_utc():
    kind, logical = physical([NOON], pa.timestamp("us", "UTC"))
    assert kind == "INT64"
    assert "isAdjustedToUTC=true" in logical
    assert "timeUnit=microseconds" in logical
    _, local = physical([NOON.replace(tzinfo=None)], pa.timestamp("us"))
    assert "isAdjustedToUTC=false" in local


@pytest.mark.parametrize(
    ("precision", "kind"), [(9, "INT32"), (18, "INT64"), (38, "FIXED_LEN_BYTE_ARRAY")]
)
def test_decimals_are_integers_as_far_as_they_fit(precision, kind):
    assert physical([Decimal("1.5")], pa.decimal128(precision, 1))[0] == kind


def test_small_integers_keep_their_width():
    assert physical([1], pa.int8()) == ("INT32", "Int(bitWidth=8, isSigned=true)")
    assert physical([1], pa.int16()) == ("INT32", "Int(bitWidth=16, isSigned=true)")


def test_required_columns_are_required_in_the_file():
    schema = pa.schema([pa.field("c", pa.int64(), nullable=False)])
    data = encode_parquet(pa.table({"c": [1]}, schema=schema))
    assert not pq.read_schema(pa.BufferReader(data)).field("c").nullable


def test_no_metadata_of_arrow_or_pandas_is_written():
    table = pa.table({"c": [1]}).replace_schema_metadata({"pandas": "{}"})
    schema = pa.schema([pa.field("c", pa.int64(), metadata={"delta.x": "1"})], {"a": "b"})
    data = encode_parquet(table.cast(schema))
    assert pq.ParquetFile(pa.BufferReader(data)).metadata.metadata is None


def test_a_flipped_bit_in_a_page_shows():
    values = [f"value {i}" for i in range(50)]
    data = bytearray(encode_parquet(pa.table({"c": values}), compression="none"))
    data[data.index(b"value 7")] ^= 1
    file = pq.ParquetFile(pa.BufferReader(bytes(data)), page_checksum_verification=True)
    with pytest.raises(OSError, match="CRC"):
        file.read()


def test_each_write_is_one_row_group():
    table = pa.table({"c": [1, 2, 3]})
    encoder = ParquetEncoder(table.schema, rows=3)
    encoder.write(table)
    encoder.write(table.slice(1))
    size = encoder.size_bytes
    data = encoder.finish()
    metadata = pq.ParquetFile(pa.BufferReader(data)).metadata
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [3, 2]
    assert 0 < size < data.size
