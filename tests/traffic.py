"""Messages into a topic while a test goes on, and what must come of them."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaError, Message, Producer

import streamlake as sl

FLUSH_TIMEOUT_S = 30
KEYS = 50


class Traffic:
    """Sends numbered messages to a topic, at a steady rate, from enter to exit."""

    def __init__(self, bootstrap_servers: str, topic: str, *, rate: int = 2000) -> None:
        self._producer = Producer(
            {"bootstrap.servers": bootstrap_servers, "enable.idempotence": True, "linger.ms": 5}
        )
        self._topic = topic
        self._rate = rate
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.sent: set[tuple[object, ...]] = set()
        """Partition, offset, key and value of each message that the broker has confirmed."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        self._thread.join()
        assert self._producer.flush(FLUSH_TIMEOUT_S) == 0

    def _run(self) -> None:
        number = 0
        while not self._stopping.wait(0.01):
            for _ in range(self._rate // 100):
                number += 1
                self._producer.produce(
                    self._topic,
                    key=f"key-{number % KEYS}",
                    value=f"message {number}",
                    on_delivery=self._confirmed,
                )
            self._producer.poll(0)

    def _confirmed(self, error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        place = (message.partition(), message.offset(), message.key(), message.value())
        self.sent.add(place)


def stored(table: sl.Table) -> list[tuple[int, int, bytes, bytes]]:
    """What ``Traffic.sent`` tells, of each row of a table."""
    rows = table.snapshot().to_arrow(columns=["partition", "offset", "key", "value"])
    return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))


def assert_once_each(table: sl.Table, traffic: Traffic) -> None:
    """The table has every message that was sent, once, and nothing else."""
    found = stored(table)
    assert len(traffic.sent) > 0
    assert set(found) == traffic.sent, "lost, or never sent"
    assert len(found) == len(traffic.sent), "repeated"
