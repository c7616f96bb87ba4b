"""The columns of a Kafka message, as Spark's Kafka source names and types them."""

from __future__ import annotations

import pyarrow as pa

TIMESTAMP = pa.timestamp("us", tz="UTC")
HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))

TYPES: dict[str, pa.DataType] = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": TIMESTAMP,
    "timestampType": pa.int32(),
}


def kafka_schema(*, include_headers: bool = True) -> pa.Schema:
    """The schema of what a KafkaSource hands on.

    All columns are nullable, as Spark's are. ``timestampType`` is 0 for the producer's time, 1 for
    the broker's, and -1 where the message carries none (``timestamp`` is null then). ``headers`` is
    null for a message without any.

    Args:
        include_headers: Whether the ``headers`` column is part of it.

    Returns:
        ``key, value, topic, partition, offset, timestamp, timestampType`` and perhaps ``headers``.
    """
    return pa.schema({**TYPES, "headers": HEADERS} if include_headers else TYPES)
