"""A connection to a cluster: topics, spans, assignments, and an end that does not hang."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

import streamlake as sl
from streamlake_kafka.codes import AWAY, NO_SUCH_TOPIC
from streamlake_kafka.health import Health
from streamlake_kafka.parts import Part, Span
from streamlake_kafka.settings import Config, bad_setting, consumer_settings

logger = logging.getLogger(__name__)

REQUEST_TIMEOUT_S = 10.0
PROBE_TIMEOUT_S = 1.0
RETRY_PAUSE_S = 0.2
CLOSE_TIMEOUT_S = 5.0
"""librdkafka's own close waits up to a minute for brokers that are away."""
TOPIC_TRIES = 5
"""A topic that was created a moment ago may not be known to every broker yet."""
SHOWN_TOPICS = 8

BEGINNING = -2
END = -1
NO_OFFSET = -1001

Answer = TypeVar("Answer")


def topic_partition(part: Part, offset: int = NO_OFFSET) -> TopicPartition:
    """The name for librdkafka of a part, with an offset."""
    return TopicPartition(part.topic, part.number, offset)


def part_of(named: TopicPartition) -> Part:
    """The part that librdkafka names."""
    return Part(named.topic, named.partition)


class Connection:
    """A consumer, and what can be asked of its cluster.

    What is asked is asked again until the brokers answer; an outage is told through ``health``, and
    raised only after its bound.
    """

    def __init__(self, config: Config, *, health: Health, clock: sl.Clock) -> None:
        self._health = health
        self._clock = clock
        self._is_incremental = (
            "cooperative" in str(config.get("partition.assignment.strategy", ""))
            or config.get("group.protocol") == "consumer"
        )
        self._is_grouped = False
        settings = consumer_settings(config)
        settings |= {"error_cb": health.on_error, "on_commit": _log_failed_commit}
        try:
            self._consumer: Consumer | None = Consumer(settings)
        except KafkaException as error:
            raise bad_setting(error, config) from None

    @property
    def consumer(self) -> Consumer:
        """The consumer; it is ours until ``close``."""
        if self._consumer is None:
            raise sl.InvalidInputError("The source is closed.", remedy="Make a new one.")
        return self._consumer

    def connect(self) -> None:
        """Wait until the brokers answer.

        Raises:
            SourceUnavailableError: They do not, for longer than Health allows.
        """
        while not self.probe():
            self.consumer.poll(0)  # brings the reason to Health; no message is lost by it
            self._clock.sleep(RETRY_PAUSE_S * (0.5 + self._clock.jitter()))

    def probe(self) -> bool:
        """Whether the brokers answer now; Health is told either way."""
        try:
            self.consumer.list_topics(timeout=PROBE_TIMEOUT_S)
        except KafkaException as error:
            self._health.failed(error.args[0])
            return False
        self._health.answered()
        return True

    def parts(self, topics: Sequence[str]) -> list[Part]:
        """The parts of these topics, as they are now.

        Raises:
            TopicNotFoundError: One of them does not exist.
            SourceUnavailableError: The brokers do not answer, for longer than Health allows.
        """
        return [Part(topic, number) for topic in topics for number in self._partitions(topic)]

    def spans(self, parts: Collection[Part]) -> dict[Part, Span]:
        """What each part holds now, for a reader of committed messages by default.

        Raises:
            TopicNotFoundError: One of them does not exist.
            SourceUnavailableError: The brokers do not answer, for longer than Health allows.
        """
        lows, highs = self._offsets(parts, BEGINNING), self._offsets(parts, END)
        return {part: Span(low=lows[part], high=max(lows[part], highs[part])) for part in parts}

    def group_offsets(self, parts: Collection[Part]) -> dict[Part, int]:
        """The next offset of the consumer group, of those parts where it has one."""
        if not parts:
            return {}
        wanted = [topic_partition(part) for part in parts]
        found = self._ask(lambda: self.consumer.committed(wanted, timeout=REQUEST_TIMEOUT_S))
        return {part_of(named): named.offset for named in found if named.offset >= 0}

    def subscribe(
        self,
        topics: Sequence[str],
        *,
        on_assign: Callable[[list[Part]], None],
        on_revoke: Callable[[list[Part]], None],
    ) -> None:
        """Join the consumer group. The callbacks run inside ``read``.

        What is assigned is not to be read from where librdkafka begins: say where by ``assign``.
        """

        def assigned(consumer: Consumer, parts: list[TopicPartition]) -> None:
            at_first = [topic_partition(part_of(named), BEGINNING) for named in parts]
            if self._is_incremental:
                consumer.incremental_assign(at_first)
            else:
                consumer.assign(at_first)
            on_assign([part_of(named) for named in parts])

        def revoked(_: Consumer, parts: list[TopicPartition]) -> None:
            on_revoke([part_of(named) for named in parts])

        self._is_grouped = True
        self.consumer.subscribe(
            list(topics), on_assign=assigned, on_revoke=revoked, on_lost=revoked
        )

    def assign(self, offsets: Mapping[Part, int]) -> None:
        """Read these parts and no others, each from an offset; forget what was fetched before."""
        parts = [topic_partition(part, offset) for part, offset in offsets.items()]
        if self._is_grouped and self._is_incremental:
            self.consumer.incremental_unassign(self.consumer.assignment())
            self.consumer.incremental_assign(parts)
        else:
            self.consumer.assign(parts)

    def read(self, max_messages: int, timeout_s: float) -> list[Message]:
        """Messages and events, as they come until there are enough or time is up."""
        messages: list[Message] = self.consumer.consume(max_messages, max(timeout_s, 0.0))
        return messages

    def next_offsets(self, parts: Iterable[Part]) -> dict[Part, int]:
        """The offset behind what ``read`` has returned or passed over, where it is known."""
        found = self.consumer.position([topic_partition(part) for part in parts])
        return {part_of(named): named.offset for named in found if named.offset >= 0}

    def commit(self, positions: Mapping[Part, int]) -> None:
        """Tell the group's offsets, for lag tools; in the background, failures are logged."""
        offsets = [topic_partition(part, position + 1) for part, position in positions.items()]
        try:
            self.consumer.commit(offsets=offsets, asynchronous=True)
        except KafkaException as error:
            logger.warning("could not commit the group's offsets: %s", error)

    def close(self) -> None:
        """Leave the group and disconnect, within a bound. Idempotent."""
        consumer, self._consumer = self._consumer, None
        if consumer is None:
            return
        closing = threading.Thread(
            target=consumer.close, name="streamlake-kafka-close", daemon=True
        )
        closing.start()
        closing.join(CLOSE_TIMEOUT_S)
        if closing.is_alive():
            logger.warning("Kafka does not answer; the consumer is left to close by itself")

    def _partitions(self, topic: str) -> list[int]:
        for _ in range(TOPIC_TRIES):
            metadata = self._ask(
                lambda: self.consumer.list_topics(topic, timeout=REQUEST_TIMEOUT_S)
            ).topics[topic]
            if metadata.error is None and metadata.partitions:
                return sorted(metadata.partitions)
            if metadata.error is not None and metadata.error.code() not in NO_SUCH_TOPIC | AWAY:
                raise refused(metadata.error, where=topic)
            self._clock.sleep(RETRY_PAUSE_S)
        raise self.topic_not_found(topic)

    def topic_not_found(self, topic: str) -> sl.TopicNotFoundError:
        """The error of a topic that does not exist; it names those that do."""
        known = self._ask(lambda: self.consumer.list_topics(timeout=REQUEST_TIMEOUT_S)).topics
        names = sorted(name for name in known if not name.startswith("__"))
        shown = ", ".join(names[:SHOWN_TOPICS]) or "none"
        more = f" and {len(names) - SHOWN_TOPICS} more" if len(names) > SHOWN_TOPICS else ""
        return sl.TopicNotFoundError(
            f"The topic {topic!r} does not exist.",
            where=self._health.servers,
            found=f"topics: {shown}{more}",
            remedy="Create it, or check its name and that the servers are the right ones.",
        )

    def _offsets(self, parts: Collection[Part], which: int) -> dict[Part, int]:
        if not parts:
            return {}
        wanted = [topic_partition(part, which) for part in parts]

        def ask() -> list[TopicPartition]:
            found = self.consumer.offsets_for_times(wanted, timeout=REQUEST_TIMEOUT_S)
            errors = [named.error for named in found if named.error is not None]
            if errors:
                raise KafkaException(errors[0])
            return found

        return {part_of(named): named.offset for named in self._ask(ask)}

    def _ask(self, request: Callable[[], Answer]) -> Answer:
        """Ask until there is an answer; each failure is told to Health, which bounds it."""
        while True:
            try:
                answer = request()
            except KafkaException as failure:
                error = failure.args[0]
                if error.code() not in AWAY:
                    raise refused(error, where=self._health.servers) from failure
                self._health.failed(error)
                self._clock.sleep(RETRY_PAUSE_S * (0.5 + self._clock.jitter()))
            else:
                self._health.answered()
                return answer


def refused(error: KafkaError, *, where: str) -> sl.SourceError:
    """The error of a request that the brokers answered with no."""
    if error.code() in NO_SUCH_TOPIC:
        return sl.TopicNotFoundError(
            "A topic or partition is not there any more.",
            where=where,
            found=error.str(),
            remedy="Create it, or check its name and that the servers are the right ones.",
        )
    return sl.SourceError(
        "Kafka refuses a request.",
        where=where,
        found=f"{error.name()}: {error.str()}",
        remedy="Check the rights of the user and the settings.",
    )


def _log_failed_commit(error: KafkaError | None, _: list[TopicPartition]) -> None:
    if error is not None:
        logger.warning("could not commit the group's offsets: %s", error.str())
