"""Messages become Arrow columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Message

import streamlake as sl
from streamlake_kafka.schema import HEADERS, TIMESTAMP, kafka_schema

MAX_MILLIS = (2**63 - 1) // 1000


def messages_to_table(messages: Sequence[Message], *, headers: bool = True) -> pa.Table:
    """Lay messages out as the columns of ``kafka_schema``, in their order.

    One pass per column in C; the ``headers`` column costs next to nothing where no message has any.

    Args:
        messages: Messages without an error.
        headers: Whether the ``headers`` column is wanted.

    Returns:
        One row per message.

    Raises:
        SourceError: A timestamp is too far from now to be counted in microseconds.
    """
    times, kinds = _timestamps(messages)
    columns: list[pa.Array[Any]] = [
        pa.array(list(map(Message.key, messages)), pa.binary()),
        pa.array(list(map(Message.value, messages)), pa.binary()),
        _topics(messages),
        pa.array(list(map(Message.partition, messages)), pa.int32()),
        pa.array(list(map(Message.offset, messages)), pa.int64()),
        times,
        kinds,
    ]
    if headers:
        columns.append(_headers(messages))
    return pa.table(columns, schema=kafka_schema(include_headers=headers))


def _topics(messages: Sequence[Message]) -> pa.StringArray:
    """The topic of each message; one topic for all is the common case."""
    names = list(map(Message.topic, messages))
    if len(set(names)) == 1:
        return pa.repeat(pa.scalar(names[0], pa.string()), len(names))
    return pa.array(names, pa.string())


def _timestamps(messages: Sequence[Message]) -> tuple[pa.Array[Any], pa.Array[Any]]:
    """Times in microseconds and their kinds: librdkafka counts the kinds from 0, Kafka from -1."""
    pairs = list(map(Message.timestamp, messages))
    if not pairs:
        return pa.array([], TIMESTAMP), pa.array([], pa.int32())
    kinds, millis = zip(*pairs, strict=True)
    try:
        times = pc.multiply_checked(pa.array(millis, pa.int64()), 1000).cast(TIMESTAMP)
    except pa.ArrowInvalid as error:
        raise _out_of_range(messages, millis) from error
    kind = pc.subtract(pa.array(kinds, pa.int32()), pa.scalar(1, pa.int32()))
    if TIMESTAMP_NOT_AVAILABLE in kinds:
        times = pc.if_else(
            pc.equal(kind, pa.scalar(-1, pa.int32())), pa.scalar(None, TIMESTAMP), times
        )
    return times, kind


def _out_of_range(messages: Sequence[Message], millis: Sequence[int]) -> sl.SourceError:
    """The error of the first message whose time is no time."""
    at = next(i for i, milli in enumerate(millis) if abs(milli) > MAX_MILLIS)
    message = messages[at]
    return sl.SourceError(
        "The timestamp of a message is not within the range of a column of microseconds.",
        where=f"{message.topic()}/{message.partition()}, offset {message.offset()}",
        found=f"{millis[at]}, where Kafka counts milliseconds since 1970",
        remedy="Correct its producer, and have the brokers refuse such messages by the topic's "
        "message.timestamp.after.max.ms. To go on without this one, read up to it with "
        "ReadLimits(max_batch_rows=1) (in Spark maxOffsetsPerTrigger=1), delete it "
        "(kafka-delete-records), and read on with fail_on_data_loss=False (failOnDataLoss).",
    )


def _headers(messages: Sequence[Message]) -> pa.Array[Any]:
    """The headers of each message; null where it has none."""
    headers = list(map(Message.headers, messages))
    if not any(headers):
        return pa.nulls(len(headers), HEADERS)
    return pa.array([found or None for found in headers], HEADERS)
