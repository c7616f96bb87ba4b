"""Dates and times by the calendar that changed in 1582."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamlake.data import plain_columns, read_file
from streamlake.errors import UnsupportedFeatureError
from streamlake.protocol import AddFile
from streamlake.storage.memory import MemoryStore


def read(table: pa.Table) -> pa.Table:
    store = MemoryStore()
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    data = sink.getvalue()
    store.put("f.parquet", memoryview(data))
    add = AddFile("f.parquet", {}, len(data), 0, data_change=True)
    return read_file(store, add, plain_columns(table.schema))


OLD = {
    "d": date(1500, 1, 1),
    "t": datetime(1899, 12, 31, tzinfo=UTC),
    "l": [{"x": [date(1, 1, 1)]}],
}
OLD_TYPES = {
    "d": pa.date32(),
    "t": pa.timestamp("us", "UTC"),
    "l": pa.list_(pa.struct([("x", pa.list_(pa.date32()))])),
}


def marked(values: dict[str, Any], metadata: dict[str, str]) -> pa.Table:
    schema = pa.schema([(name, OLD_TYPES[name]) for name in values], metadata=metadata)
    return pa.Table.from_pylist([values, dict.fromkeys(values)], schema=schema)


@pytest.mark.parametrize(
    ("footer", "name"),
    [
        (footer, name)
        for footer, names in (
            ({"org.apache.spark.version": "2.4.8"}, "dtl"),
            ({"org.apache.spark.version": "3.0.3"}, "t"),
            ({"org.apache.spark.version": "3.5.0", "org.apache.spark.legacyDateTime": ""}, "dtl"),
            ({"org.apache.spark.version": "3.5.0", "org.apache.spark.legacyINT96": ""}, "t"),
        )
        for name in names
    ],
)
def test_dates_of_the_old_calendar_are_refused_not_guessed(footer, name):
    rows = marked({name: OLD[name]}, footer)
    with pytest.raises(UnsupportedFeatureError, match=f"'{name}' has dates or times") as error:
        read(rows)
    assert error.value.where.endswith("/f.parquet")


@pytest.mark.parametrize(
    "footer", [{}, {"org.apache.spark.version": "3.5.0"}, {"org.apache.spark.version": "?"}]
)
def test_the_same_dates_are_read_where_the_file_is_not_marked(footer):
    rows = marked(OLD, footer)
    assert read(rows).to_pylist()[0] == OLD


def test_dates_are_read_where_the_file_is_marked_for_its_times_alone():
    rows = marked({"d": OLD["d"]}, {"org.apache.spark.version": "3.0.3"})
    assert read(rows).to_pylist()[0] == {"d": OLD["d"]}


def test_later_dates_of_a_marked_file_are_read():
    late = {
        "d": date(1582, 10, 15),
        "t": datetime(1900, 1, 1, tzinfo=UTC),
        "l": [{"x": [date(2024, 1, 1)]}],
    }
    rows = marked(late, {"org.apache.spark.version": "2.4.8"})
    assert read(rows).to_pylist()[0] == late
