"""Values of partition columns, and the folders that they name."""

# ruff: noqa: DTZ001 - timestamps without a zone are a type of their own

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

from strategies import partition_types, text, typed_partition_values
from streamlake.errors import CorruptTableError, InvalidInputError, LimitExceededError
from streamlake.protocol import (
    decode_partition_value,
    encode_partition_value,
    partition_path,
)
from streamlake.protocol.partition import MAX_PARTITION_VALUE_CHARS

TIMESTAMP = pa.timestamp("us", "UTC")
TIMESTAMP_NTZ = pa.timestamp("us")


@given(typed_partition_values)
def test_every_value_comes_back_as_it_was(typed):
    kind, value = typed
    again = decode_partition_value(encode_partition_value(value, kind), kind)
    if value in ("", b""):
        assert again is None
    elif isinstance(value, float):
        assert again == value or (math.isnan(again) and math.isnan(value))
        assert math.copysign(1, again) == math.copysign(1, value) or math.isnan(value)
    else:
        assert again == value
        assert type(again) is type(value)


@given(typed_partition_values)
def test_what_is_decoded_is_a_value_of_the_type(typed):
    kind, value = typed
    again = decode_partition_value(encode_partition_value(value, kind), kind)
    assert pa.scalar(again, kind).as_py() == again or math.isnan(again)


@given(partition_types, text)
def test_any_text_is_a_value_or_a_typed_error(kind, text_given):
    try:
        value = decode_partition_value(text_given, kind)
    except CorruptTableError:
        return
    assert value is None or pa.scalar(value, kind).is_valid


@pytest.mark.parametrize("kind", [pa.string(), pa.int32(), pa.binary(), pa.bool_(), pa.null()])
def test_null_and_the_empty_string_are_one(kind):
    assert encode_partition_value(None, kind) is None
    assert decode_partition_value(None, kind) is None
    assert decode_partition_value("", kind) is None


@pytest.mark.parametrize(
    ("value", "kind", "written"),
    [
        ("a=b/ü %", pa.string(), "a=b/ü %"),
        ("", pa.string(), None),
        (-128, pa.int8(), "-128"),
        (2**63 - 1, pa.int64(), "9223372036854775807"),
        (0.1, pa.float64(), "0.1"),
        (0.10000000149011612, pa.float32(), "0.1"),
        (3.4028234663852886e38, pa.float32(), "3.40282347e+38"),
        (1.401298464324817e-45, pa.float32(), "1e-45"),
        (-0.0, pa.float64(), "-0.0"),
        (math.nan, pa.float32(), "NaN"),
        (math.inf, pa.float64(), "Infinity"),
        (-math.inf, pa.float32(), "-Infinity"),
        (Decimal(1), pa.decimal128(10, 2), "1.00"),
        (Decimal("-1E+2"), pa.decimal128(5, 0), "-100"),
        (Decimal("1E-38"), pa.decimal128(38, 38), "0." + "0" * 37 + "1"),
        (True, pa.bool_(), "true"),
        (False, pa.bool_(), "false"),
        (date(1, 2, 3), pa.date32(), "0001-02-03"),
        (datetime(1970, 1, 1, tzinfo=UTC), TIMESTAMP, "1970-01-01T00:00:00.000000Z"),
        (
            datetime(2020, 1, 1, 1, 0, 0, 5, tzinfo=timezone(timedelta(hours=1))),
            TIMESTAMP,
            "2020-01-01T00:00:00.000005Z",
        ),
        (datetime(1970, 1, 1), TIMESTAMP_NTZ, "1970-01-01 00:00:00"),
        (datetime(1970, 1, 1, 0, 0, 0, 123456), TIMESTAMP_NTZ, "1970-01-01 00:00:00.123456"),
        (b"\x01\x02\x03", pa.binary(), "\x01\x02\x03"),
        (b"", pa.binary(), None),
        ("ü".encode(), pa.binary(), "ü"),
        (b"\xff\x00", pa.binary(), "\\u00FF\\u0000"),
        (b"\\u0041", pa.binary(), "\\u005C\\u0075\\u0030\\u0030\\u0034\\u0031"),
    ],
)
def test_values_are_written_as_the_protocol_says(value, kind, written):
    assert encode_partition_value(value, kind) == written


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1970-01-01 00:00:00", datetime(1970, 1, 1, tzinfo=UTC)),
        ("1970-01-01 00:00:00.5", datetime(1970, 1, 1, 0, 0, 0, 500000, tzinfo=UTC)),
        ("1970-01-01 00:00:00.123456", datetime(1970, 1, 1, 0, 0, 0, 123456, tzinfo=UTC)),
        ("1970-01-01T00:00:00.123456Z", datetime(1970, 1, 1, 0, 0, 0, 123456, tzinfo=UTC)),
        ("1970-01-01T00:00:00Z", datetime(1970, 1, 1, tzinfo=UTC)),
        ("1970-01-01T00:00:00.123456000Z", datetime(1970, 1, 1, 0, 0, 0, 123456, tzinfo=UTC)),
        ("1970-01-01T02:00:00+02:00", datetime(1970, 1, 1, tzinfo=UTC)),
        ("1969-12-31T22:30:00-0130", datetime(1970, 1, 1, tzinfo=UTC)),
        ("1970-1-1 0:0:0", datetime(1970, 1, 1, tzinfo=UTC)),
        ("1970-01-01", datetime(1970, 1, 1, tzinfo=UTC)),
    ],
)
def test_timestamps_of_every_writer_are_read(written, value):
    assert decode_partition_value(written, TIMESTAMP) == value


@pytest.mark.parametrize(
    ("written", "kind", "value"),
    [
        ("1970-01-01T00:00:01", TIMESTAMP_NTZ, datetime(1970, 1, 1, 0, 0, 1)),
        ("+7", pa.int8(), 7),
        ("1E3", pa.float64(), 1000.0),
        ("inf", pa.float32(), math.inf),
        ("-infinity", pa.float64(), -math.inf),
        ("1e1", pa.decimal128(5, 2), Decimal("10.00")),
        ("TRUE", pa.bool_(), True),
        ("2020-1-2", pa.date32(), date(2020, 1, 2)),
        ("\\u0001\\u00ff", pa.binary(), b"\x01\xff"),
    ],
)
def test_spellings_of_other_writers_are_read(written, kind, value):
    assert decode_partition_value(written, kind) == value


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("128", pa.int8()),
        ("1_0", pa.int32()),
        (" 1", pa.int32()),
        ("\u0661", pa.int32()),
        ("9" * 5000, pa.int64()),
        ("1.0", pa.int64()),
        ("x", pa.float64()),
        ("0x10", pa.float64()),
        ("1e39", pa.float32()),
        ("NaN", pa.decimal128(5, 2)),
        ("1.234", pa.decimal128(5, 2)),
        ("1000", pa.decimal128(5, 2)),
        ("1e99999", pa.decimal128(5, 2)),
        ("1", pa.bool_()),
        ("2020-02-30", pa.date32()),
        ("20200101", pa.date32()),
        ("1970-01-01 24:00:00", TIMESTAMP),
        ("1970-01-01T00:00:00.0000001Z", TIMESTAMP),
        ("1970-01-01T00:00:00Z", TIMESTAMP_NTZ),
        ("0001-01-01T00:00:00+01:00", TIMESTAMP),
        ("x", pa.null()),
    ],
)
def test_text_that_spells_no_value_is_a_corrupt_table(written, kind):
    with pytest.raises(CorruptTableError, match=re.escape(f"type {kind}")):
        decode_partition_value(written, kind)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (128, pa.int8()),
        (True, pa.int8()),
        (1.0, pa.int8()),
        ("1", pa.int8()),
        (1, pa.bool_()),
        (1, pa.string()),
        ("\ud800", pa.string()),
        ("x", pa.float64()),
        (1e39, pa.float32()),
        (Decimal("1.234"), pa.decimal128(5, 2)),
        (Decimal(1000), pa.decimal128(5, 2)),
        (Decimal("NaN"), pa.decimal128(5, 2)),
        (Decimal("Infinity"), pa.decimal128(5, 2)),
        (datetime(2020, 1, 1), pa.date32()),
        (datetime(2020, 1, 1), TIMESTAMP),
        (datetime(2020, 1, 1, tzinfo=UTC), TIMESTAMP_NTZ),
        (date(2020, 1, 1), TIMESTAMP),
        ("x", pa.binary()),
        (1, pa.null()),
    ],
)
def test_a_value_of_another_type_is_refused(value, kind):
    with pytest.raises(InvalidInputError, match="partition column"):
        encode_partition_value(value, kind)


@pytest.mark.parametrize("kind", [pa.list_(pa.int8()), pa.struct([]), pa.uint8(), pa.time32("s")])
def test_types_that_can_not_partition_are_refused(kind):
    with pytest.raises(InvalidInputError, match="can't partition"):
        encode_partition_value(None, kind)
    with pytest.raises(InvalidInputError, match="can't partition"):
        decode_partition_value(None, kind)


@pytest.mark.parametrize(
    ("value", "folder"),
    [
        ("1", "p=1/"),
        (None, "p=__HIVE_DEFAULT_PARTITION__/"),
        ("", "p=__HIVE_DEFAULT_PARTITION__/"),
        ("a b&c", "p=a b&c/"),
        ("..", "p=../"),
        ("é😀", "p=é😀/"),
        ("\x01\x1f\x7f\"#%'*/:=?\\{[]^", "p=%01%1F%7F%22%23%25%27%2A%2F%3A%3D%3F%5C%7B%5B%5D%5E/"),
        ("\x00", "p=%00/"),
        ("1970-01-01T00:00:00.000000Z", "p=1970-01-01T00%3A00%3A00.000000Z/"),
    ],
)
def test_folders_are_named_as_spark_names_them(value, folder):
    assert partition_path(["p"], {"p": value}) == folder


def test_folders_come_in_the_tables_order_and_escape_column_names_too():
    values: dict[str, str | None] = {"b": "2", "a:x": "1"}
    assert partition_path(["a:x", "b"], values) == "a%3Ax=1/b=2/"
    assert partition_path([], values) == ""


@given(st.lists(st.text(min_size=1), min_size=2, max_size=2, unique=True))
def test_different_values_have_different_folders(values):
    one, other = (partition_path(["p"], {"p": value}) for value in values)
    assert one != other or "__HIVE_DEFAULT_PARTITION__" in values


@given(text)
def test_a_value_never_makes_a_folder_of_its_own(value):
    assert partition_path(["p"], {"p": value}).count("/") == 1


def test_a_partition_value_past_the_limit_is_refused():
    longest = "x" * MAX_PARTITION_VALUE_CHARS
    assert decode_partition_value(longest, pa.string()) == longest
    for kind in (pa.string(), pa.int64(), pa.decimal128(38, 0)):
        with pytest.raises(LimitExceededError, match="MAX_PARTITION_VALUE_CHARS"):
            decode_partition_value("1" * (MAX_PARTITION_VALUE_CHARS + 1), kind)
