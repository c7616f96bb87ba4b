"""The demo's Kafka (librdkafka's mock cluster, or one that runs already) and its producer."""

from __future__ import annotations

import logging
import threading
from types import TracebackType
from typing import Self

import msgspec
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from streamlake import SourceUnavailableError
from streamlake.cli.demo.orders import Order, OrderBook
from streamlake.clock import Clock

PARTITIONS = 4
TICK_S = 0.02
MAX_UNCONFIRMED = 50_000
ANSWER_TIMEOUT_S = 10.0
FLUSH_TIMEOUT_S = 30
_logger = logging.getLogger("streamlake.cli.demo.librdkafka")


class OrderStream:
    """A thread that sends orders to a topic at a steady rate, from ``start`` to ``stop``.

    Without ``bootstrap_servers`` it holds a mock cluster, which lives as long as this object.
    """

    def __init__(self, *, clock: Clock, rate: int, bootstrap_servers: str | None) -> None:
        self._clock = clock
        self._rate = rate
        self._embedded = bootstrap_servers is None
        where = {"test.mock.num.brokers": 1} if self._embedded else {}
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers or "",
                "enable.idempotence": True,
                "linger.ms": 5,
                **where,
            },
            logger=_logger,
        )
        self.topic = f"orders-{clock.new_id()[:8]}"
        self.orders = OrderBook(clock)
        self.acknowledged = 0
        """Orders that Kafka has confirmed."""
        self.failure: str | None = None
        """Why an order could not be sent."""
        self.bootstrap_servers = self._connect(bootstrap_servers)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="orders", daemon=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        if not self._embedded:
            AdminClient({"bootstrap.servers": self.bootstrap_servers}).delete_topics([self.topic])

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def stop(self) -> None:
        """End sending, and wait until Kafka has confirmed what was sent. Idempotent."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._producer.flush(FLUSH_TIMEOUT_S):
            self.failure = self.failure or "Kafka did not confirm the last orders in time"

    def _connect(self, bootstrap_servers: str | None) -> str:
        """Make the topic; returns where clients connect to."""
        try:
            if bootstrap_servers is None:
                self._producer.list_topics(self.topic, timeout=ANSWER_TIMEOUT_S)
                brokers = self._producer.list_topics(timeout=ANSWER_TIMEOUT_S).brokers.values()
                return ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
            self._producer.list_topics(timeout=ANSWER_TIMEOUT_S)
            admin = AdminClient({"bootstrap.servers": bootstrap_servers}, logger=_logger)
            created = admin.create_topics(
                [NewTopic(self.topic, PARTITIONS)], request_timeout=ANSWER_TIMEOUT_S
            )
            created[self.topic].result()
        except KafkaException as error:
            raise SourceUnavailableError(
                "The demo's topic can't be made.",
                where=bootstrap_servers or "the embedded Kafka",
                found=error.args[0].str(),
                remedy="Check --bootstrap-servers, or leave it out for an embedded Kafka.",
            ) from error
        return bootstrap_servers

    def _run(self) -> None:
        start = self._clock.monotonic()
        sent = 0
        while not self._stopping.is_set() and self.failure is None:
            due = int((self._clock.monotonic() - start) * self._rate)
            for _ in range(due - sent):
                self._send(self.orders.next_order())
            sent = max(sent, due)
            self._producer.poll(TICK_S)

    def _send(self, order: Order) -> None:
        while len(self._producer) >= MAX_UNCONFIRMED:
            self._producer.poll(TICK_S)
        self._producer.produce(
            self.topic,
            key=order.customer,
            value=msgspec.json.encode(order),
            timestamp=order.created_ms,
            on_delivery=self._confirmed,
        )

    def _confirmed(self, error: KafkaError | None, _message: object) -> None:
        if error is None:
            self.acknowledged += 1
        else:
            self.failure = f"Kafka refused an order: {error}"
