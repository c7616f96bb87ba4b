"""What the driver asks Kafka: which partitions there are, and their first and last offsets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import streamlake as sl
from pyspark_streamlake_kafka.client import open_consumer, reason, typed_error
from pyspark_streamlake_kafka.confluent import ck
from pyspark_streamlake_kafka.offsets import EARLIEST, LATEST, TopicPartition
from pyspark_streamlake_kafka.options import SERVERS, KafkaOptions

REQUEST_TIMEOUT_S = 10.0
"""Of one question to the brokers; who asks decides whether to ask again."""
DISCOVERY_INTERVAL_S = 5.0
"""How old the list of partitions may become while a query runs."""


class Cluster:
    """The brokers as the driver sees them. Connects at the first question."""

    def __init__(self, options: KafkaOptions, *, clock: sl.Clock = sl.SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._known: tuple[TopicPartition, ...] = ()
        self._known_until = clock.monotonic()
        self._subscription = options.subscription
        self._servers = options.client[SERVERS]
        self._timeout_s = min(REQUEST_TIMEOUT_S, options.poll_timeout_ms / 1000)
        self._consumer, self._last_error = open_consumer(options.client)

    def partitions(self) -> tuple[TopicPartition, ...]:
        """The partitions that the query reads, as they are now.

        Raises:
            TopicNotFoundError: A topic that is named does not exist.
            SourceUnavailableError: No broker answers.
        """
        subscription = self._subscription
        if subscription.pattern is not None:
            return self._matching(re.compile(subscription.pattern))
        topics = subscription.topics or tuple({tp.topic for tp in subscription.assigned})
        found = tuple(tp for topic in topics for tp in self._of_topic(topic))
        if not subscription.assigned:
            return tuple(sorted(found))
        self._check_assigned(found)
        return tuple(sorted(subscription.assigned))

    def known_partitions(self) -> tuple[TopicPartition, ...]:
        """The partitions as they were at most ``DISCOVERY_INTERVAL_S`` ago.

        Raises:
            TopicNotFoundError: A topic that is named does not exist.
            SourceUnavailableError: No broker answers.
        """
        if not self._known or self._clock.monotonic() >= self._known_until:
            self._known = self.partitions()
            self._known_until = self._clock.monotonic() + DISCOVERY_INTERVAL_S
        return self._known

    def earliest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset that each partition still holds.

        Raises:
            SourceUnavailableError: No broker answers.
        """
        return self._offsets(partitions, EARLIEST)

    def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset after the last one that may be read of each partition.

        With the isolation level ``read_committed`` (librdkafka's default) that is where the first
        open transaction begins.

        Raises:
            SourceUnavailableError: No broker answers.
        """
        return self._offsets(partitions, LATEST)

    def close(self) -> None:
        """Let go of the connections. Idempotent."""
        self._consumer.close()

    def _of_topic(self, topic: str) -> list[TopicPartition]:
        metadata = self._topics(topic)[topic]
        if metadata.error is not None:
            raise typed_error(
                metadata.error, what=f"Topic {topic!r} can't be read.", where=self._servers
            )
        return [TopicPartition(topic, number) for number in metadata.partitions]

    def _matching(self, pattern: re.Pattern[str]) -> tuple[TopicPartition, ...]:
        topics = [name for name in self._topics() if pattern.fullmatch(name)]
        if not topics:
            raise sl.TopicNotFoundError(
                f"No topic matches subscribePattern {pattern.pattern!r}.", where=self._servers
            )
        return tuple(sorted(tp for topic in topics for tp in self._of_topic(topic)))

    def _check_assigned(self, found: Iterable[TopicPartition]) -> None:
        missing = sorted(set(self._subscription.assigned) - set(found))
        if missing:
            raise sl.TopicNotFoundError(
                "Partitions that `assign` names do not exist.",
                where=self._servers,
                found=", ".join(map(str, missing)),
            )

    def _topics(self, name: str | None = None) -> Mapping[str, Any]:
        """What Kafka says of one topic, or of all, by name."""
        only = {} if name is None else {"topic": name}
        try:
            return dict(self._consumer.list_topics(**only, timeout=self._timeout_s).topics)
        except ck.KafkaException as error:
            raise self._told(error, "Kafka does not tell its topics.") from error

    def _offsets(
        self, partitions: Iterable[TopicPartition], which: int
    ) -> dict[TopicPartition, int]:
        asked = [ck.TopicPartition(tp.topic, tp.partition, which) for tp in partitions]
        if not asked:
            return {}
        try:  # times -1 and -2 stand for the ends: one request a broker for all partitions
            answers = self._consumer.offsets_for_times(asked, timeout=self._timeout_s)
        except ck.KafkaException as error:
            raise self._told(error, "Kafka does not tell its offsets.") from error
        for answer in answers:
            if answer.error is not None:
                raise typed_error(
                    answer.error,
                    what=f"Kafka does not tell the offsets of {answer.topic}/{answer.partition}.",
                    where=self._servers,
                )
        return {TopicPartition(a.topic, a.partition): a.offset for a in answers}

    def _told(self, error: ck.KafkaException, what: str) -> sl.SourceError:
        found = self._last_error.text or reason(error)
        return typed_error(error.args[0], what=what, where=self._servers, found=found)
