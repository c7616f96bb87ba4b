"""Messages become columns, whatever is in them."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest
from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    TIMESTAMP_NOT_AVAILABLE,
    Message,
)
from hypothesis import given
from hypothesis import strategies as st

import streamlake as sl
from streamlake_kafka import kafka_schema, messages_to_table

MILLIS = st.integers(min_value=0, max_value=4_102_444_800_000)
BYTES = st.none() | st.binary(max_size=20)
HEADERS = st.none() | st.lists(st.tuples(st.text(max_size=5), BYTES), max_size=3)
ROWS = st.lists(
    st.tuples(
        BYTES,
        BYTES,
        st.sampled_from(["orders", "payments"]),
        st.integers(0, 2**31 - 1),
        st.integers(0, 2**63 - 1),
        MILLIS,
        HEADERS,
    ),
    max_size=20,
)


def test_columns_are_those_of_sparks_kafka_source() -> None:
    assert ",".join(kafka_schema().names) == (
        "key,value,topic,partition,offset,timestamp,timestampType,headers"
    )
    assert "headers" not in kafka_schema(include_headers=False).names
    assert all(field.nullable for field in kafka_schema())


@given(ROWS)
def test_every_value_arrives_unchanged(rows: list[tuple[object, ...]]) -> None:
    messages = [
        Message(topic, number, offset, key, value, headers, timestamp=(1, millis))
        for key, value, topic, number, offset, millis, headers in rows
    ]
    found = messages_to_table(messages).to_pylist()
    assert messages_to_table(messages).schema == kafka_schema()
    for (key, value, topic, number, offset, millis, headers), row in zip(rows, found, strict=True):
        assert (row["key"], row["value"], row["topic"]) == (key, value, topic)
        assert (row["partition"], row["offset"]) == (number, offset)
        assert row["timestamp"] == dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(
            milliseconds=int(str(millis))
        )
        pairs = [(header["key"], header["value"]) for header in row["headers"] or ()]
        assert pairs == (headers or [])


def test_kinds_of_timestamps_count_as_kafka_counts_them() -> None:
    kinds = [TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME, TIMESTAMP_NOT_AVAILABLE]
    messages = [Message("t", 0, i, timestamp=(kind, i)) for i, kind in enumerate(kinds)]
    table = messages_to_table(messages, headers=False)
    assert table["timestampType"].to_pylist() == [0, 1, -1]
    assert table["timestamp"].is_null().to_pylist() == [False, False, True]


@pytest.mark.parametrize("bad", [1_790_000_000_000_000_000, 2**63 // 1000 + 1, -(2**63)])
def test_a_time_that_microseconds_can_not_count_names_the_first_such_message(bad: int) -> None:
    times = [5, 2**63 // 1000, bad, bad]
    messages = [Message("t", 3, 7 + i, timestamp=(1, millis)) for i, millis in enumerate(times)]
    with pytest.raises(sl.SourceError, match="timestamp") as refused:
        messages_to_table(messages)
    assert refused.value.where == "t/3, offset 9"
    assert refused.value.found.startswith(f"{bad},")
    assert messages_to_table(messages[:2])["timestamp"].cast(pa.int64()).to_pylist() == [
        5000,
        2**63 // 1000 * 1000,
    ]


def test_no_messages_are_no_rows() -> None:
    assert messages_to_table([]) == kafka_schema().empty_table()


def test_a_topic_can_be_stored_in_a_table(tmp_path: str) -> None:
    from streamlake import Table  # noqa: PLC0415 (only here)

    table = Table.create(f"{tmp_path}/t", schema=kafka_schema())
    rows = messages_to_table([Message("t", 0, 0, b"k", b"v", [("h", None)], timestamp=(1, 5))])
    table.append(rows)
    stored = table.snapshot().to_arrow()
    assert isinstance(stored, pa.Table)
    assert stored.to_pylist() == rows.to_pylist()
    assert stored.schema.equals(kafka_schema())
