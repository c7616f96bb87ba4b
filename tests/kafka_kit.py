"""What tests of Kafka do again and again: produce, read to the end, change a topic."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field

import pyarrow as pa
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

import streamlake as sl
from streamlake_kafka import KafkaSource, ReadLimits, kafka_schema

QUICK = ReadLimits(poll_timeout_s=0.1, linger_s=0.0, connect_timeout_s=30, discovery_interval_s=0.2)
"""Bounds of a source in tests: no waiting for company."""
Value = str | bytes | None


def produce(
    servers: str,
    topic: str,
    values: Iterable[Value],
    *,
    partition: int = 0,
    key: Value = None,
    headers: Sequence[tuple[str, bytes | None]] | None = None,
) -> None:
    """Send messages to one partition, and wait until the broker has them."""
    producer = Producer({"bootstrap.servers": servers, "message.max.bytes": 8 * 2**20})
    for value in values:
        producer.produce(topic, value, key, partition, headers=list(headers or ()))
    assert producer.flush(30) == 0


def produce_at(servers: str, topic: str, value: Value, *, millis: int) -> None:
    """Send one message that carries a time of our choice."""
    producer = Producer({"bootstrap.servers": servers})
    producer.produce(topic, value, partition=0, timestamp=millis)
    assert producer.flush(30) == 0


def produce_in_transaction(
    servers: str, topic: str, values: Iterable[Value], *, commit: bool = True
) -> None:
    """Send messages in one transaction, which takes one more offset for its end."""
    producer = Producer({"bootstrap.servers": servers, "transactional.id": f"{topic}-producer"})
    producer.init_transactions(30)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, partition=0)
    producer.flush(30)
    if commit:
        producer.commit_transaction(30)
    else:
        producer.abort_transaction(30)


def delete_records(servers: str, topic: str, before: int, *, partition: int = 0) -> None:
    """Remove what lies below an offset, as retention does."""
    admin = AdminClient({"bootstrap.servers": servers})
    below = TopicPartition(topic, partition, before)
    for done in admin.delete_records([below]).values():
        done.result(30)


def add_partitions(servers: str, topic: str, total: int) -> None:
    """Give a topic more partitions."""
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_partitions([NewPartitions(topic, total)])[topic].result(30)


@dataclass
class Kept:
    """What came out of a source, with the positions as a sink would have stored them."""

    positions: dict[str, int] = field(default_factory=dict)
    batches: list[sl.Batch] = field(default_factory=list)

    @property
    def rows(self) -> pa.Table:
        """All rows, in the order that they came in."""
        tables = [batch.data for batch in self.batches]
        return pa.concat_tables(tables) if tables else kafka_schema().empty_table()

    def column(self, name: str) -> list[object]:
        """One column of all rows."""
        return self.rows[name].to_pylist()

    def keep(self, batch: sl.Batch) -> None:
        """Store a batch with its positions; positions must go forward."""
        for name, position in batch.positions.items():
            assert position > self.positions.get(name, -1)
        self.positions.update(batch.positions)
        self.batches.append(batch)


def drain(
    source: KafkaSource,
    positions: Mapping[str, int] | None = None,
    *,
    until: Callable[[Kept], bool] = lambda _: False,
    after: Callable[[Kept], None] = lambda _: None,
) -> Kept:
    """Run a source from stored positions to its end, or until there is enough.

    ``after`` is called whenever the source has handed on a batch, or has said that there is none.
    """
    kept = Kept(dict(positions or {}))
    with closing(source):
        source.open(lambda: dict(kept.positions))
        for batch in source.batches():
            if batch is not None:
                kept.keep(batch)
                source.acknowledge(batch)
            if until(kept):
                break
            after(kept)
    return kept
