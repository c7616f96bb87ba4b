"""A Kafka topic as a Sink."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from confluent_kafka import KafkaError, KafkaException, Message, Producer

import streamlake as sl
from streamlake_kafka.codes import AWAY, FENCED
from streamlake_kafka.connection import Connection, refused
from streamlake_kafka.health import Health
from streamlake_kafka.positions import KEY, PositionsTopic
from streamlake_kafka.rows import Row, RowFormat
from streamlake_kafka.settings import Config, bad_setting, producer_settings, require_servers

CONNECT_TIMEOUT_S = 30.0
STEP_TIMEOUT_S = 10.0
QUEUE_PAUSE_S = 0.1
MAX_TOPIC_LENGTH = 249


class KafkaSink:
    """Sends each batch's rows to a topic, in order.

    Delivery: with an ``app_id`` exactly once, for readers of committed messages: the rows of a
    batch and the source's positions are in one Kafka transaction, and the sink that was opened last
    under the app_id fences all others. The positions are kept in the compacted topic
    ``"<topic>.<app_id>.positions"``, which ``open`` creates. Without an ``app_id`` at least once:
    no positions are kept, and the source begins where it likes.

    Keys land in the partitions that Kafka's Java clients choose for them.
    """

    def __init__(
        self,
        config: Config,
        *,
        topic: str,
        app_id: str | None = None,
        key: str | None = None,
        value: str | None = None,
        headers: str | None = None,
        commit_timeout_s: float = 60.0,
        on_event: Callable[[str], None] | None = None,
        clock: sl.Clock = sl.SYSTEM_CLOCK,
    ) -> None:
        """A sink that is not open yet; connects to nothing.

        Args:
            config: librdkafka's settings; ``bootstrap.servers`` at least.
            topic: Where rows go. It must exist.
            app_id: Under which name positions are kept; letters, digits, "_" and "-".
            key: The column of keys; None sends messages without.
            value: The column of values; None sends each whole row as a JSON object.
            headers: A column of headers as ``kafka_schema`` has it; None sends none.
            commit_timeout_s: How long a batch may take to be stored before its outcome is unknown.
            on_event: Told, in a sentence, of outages and of their end; they are logged too.
            clock: Where time comes from.

        Raises:
            InvalidInputError: No servers, or an app_id that can't name a topic.
        """
        servers = require_servers(config)
        positions_topic = f"{topic}.{app_id}.positions"
        is_named_well = app_id is None or re.fullmatch(r"[A-Za-z0-9_-]+", app_id)
        if not is_named_well or len(positions_topic) > MAX_TOPIC_LENGTH:
            raise sl.InvalidInputError(
                f"The app_id {app_id!r} can't be a part of a topic's name.",
                found=positions_topic,
                remedy='Use letters, digits, "_" and "-", and few of them.',
            )
        self._config = dict(config)
        self._topic = topic
        self._format = RowFormat(key=key, value=value, headers=headers)
        self._commit_timeout_s = commit_timeout_s
        self._clock = clock
        self._health = Health(servers, clock=clock, on_event=on_event)
        self._health.max_outage_s = CONNECT_TIMEOUT_S
        self._positions_topic = (
            None
            if app_id is None
            else PositionsTopic(positions_topic, config=config, health=self._health, clock=clock)
        )
        self._transactional_id = f"{topic}/{app_id}"
        self._producer: Producer | None = None
        self._positions: dict[str, int] = {}
        self._is_unsure = False
        self._fenced: sl.FencedError | None = None
        self._failures: list[KafkaError] = []

    def __repr__(self) -> str:
        """Servers and topic; no other settings, for they may be secret."""
        return f"KafkaSink({self._health.servers!r}, topic={self._topic!r})"

    def open(self) -> None:
        """Connect; with an app_id take it over from whoever has it, and read the positions.

        Raises:
            SourceUnavailableError: No broker answers.
            TopicNotFoundError: The topic does not exist.
            SourceError: Kafka refuses.
            InvalidInputError: librdkafka refuses the settings.
        """
        connection = Connection(self._config, health=self._health, clock=self._clock)
        try:
            connection.connect()
            connection.parts([self._topic])
        finally:
            connection.close()
        if self._positions_topic is not None:
            self._positions_topic.create()
        self._connect()

    def committed(self) -> sl.Positions:
        """The positions of the last committed transaction; none without an app_id.

        Raises:
            FencedError: Another sink was opened under the app_id since.
            SourceUnavailableError: The brokers do not answer.
        """
        self._renew()
        return dict(self._positions)

    def write(self, batch: sl.Batch) -> None:
        """Send rows, and with an app_id the positions, and wait until Kafka has stored them.

        Raises:
            SchemaMismatchError: A column for key, value or headers is not there, or of no use;
                nothing was sent.
            InvalidInputError: A row makes no message, or one that is too large; nothing was
                committed.
            FencedError: Another sink was opened under the app_id since; nothing was committed.
            CommitError: The transaction was aborted; nothing was committed.
            CommitUnknownError: The outcome could not be learnt in time.
            SourceError: Kafka refuses.
        """
        self._renew()
        rows = self._format.rows(batch.data)
        if self._positions_topic is None:
            self._send_plainly(rows)
        elif not self._is_repeat(batch.positions):
            self._send_in_transaction(rows, batch.positions, self._positions_topic)

    def close(self) -> None:
        """Disconnect; what was not committed is aborted. Idempotent."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.purge()
            producer.flush(0)

    def _opened(self) -> Producer:
        if self._producer is None:
            raise sl.InvalidInputError("The KafkaSink is not open.", remedy="Call open() first.")
        return self._producer

    def _renew(self) -> None:
        """After a failure begin anew with another producer; not after another sink took over."""
        self._opened()
        if self._fenced is not None:
            raise self._fenced
        if self._is_unsure:
            self._connect()

    def _connect(self) -> None:
        """Make a producer; a transactional one fences those before it, and ends their work."""
        beside = self._positions_topic
        ours = {} if beside is None else {"transactional_id": self._transactional_id}
        settings = producer_settings(self._config, **ours) | {"error_cb": self._health.on_error}
        try:
            producer = Producer(settings)
        except KafkaException as error:
            raise bad_setting(error, self._config) from None
        if beside is not None:
            self._take_over(producer)
            self._positions = beside.read()
        self._producer = producer
        self._is_unsure = False

    def _take_over(self, producer: Producer) -> None:
        try:
            self._until_done(producer.init_transactions, CONNECT_TIMEOUT_S)
        except KafkaException as failure:
            error = failure.args[0]
            if error.retriable() or error.code() in AWAY:
                self._health.failed(error)
                raise self._health.unavailable() from failure
            raise refused(error, where=self._transactional_id) from failure

    def _send_plainly(self, rows: Iterable[Row]) -> None:
        producer = self._opened()
        self._failures = []
        self._produce(producer, rows)
        waiting = producer.flush(self._commit_timeout_s)
        if self._failures:
            raise refused(self._failures[0], where=self._topic)
        if waiting:
            raise self._health.unavailable()

    def _send_in_transaction(
        self, rows: Iterable[Row], positions: sl.Positions, beside: PositionsTopic
    ) -> None:
        """One transaction of rows and positions."""
        producer = self._opened()
        self._failures = []
        after = {**self._positions, **positions}
        try:
            producer.begin_transaction()
            self._produce(producer, rows)
            if positions:
                producer.produce(beside.name, beside.record(after), KEY)
            self._until_done(producer.commit_transaction, self._commit_timeout_s)
        except KafkaException as failure:
            raise self._failed(producer, failure.args[0]) from failure
        except Exception:
            self._abort(producer)
            raise
        except BaseException:  # a Ctrl-C: it must not wait for the brokers
            self._is_unsure = True
            raise
        self._positions = after

    def _is_repeat(self, positions: sl.Positions) -> bool:
        """Whether positions are stored already."""
        stored = [name for name, at in positions.items() if at <= self._positions.get(name, -1)]
        if stored and len(stored) < len(positions):
            raise sl.PartlyCommittedError(
                "Of the positions of this batch some are stored already and some are not.",
                where=self._topic,
                found=f"stored: {', '.join(stored)}",
                remedy="Leave out the rows and positions that are stored, and send the rest.",
            )
        return bool(stored)

    def _produce(self, producer: Producer, rows: Iterable[Row]) -> None:
        """Queue messages; where the queue is full, wait until some have left."""
        for key, value, headers in rows:
            while True:
                try:
                    producer.produce(
                        self._topic, value, key, headers=headers, on_delivery=self._on_failure
                    )
                    break
                except BufferError:
                    producer.poll(QUEUE_PAUSE_S)
                except KafkaException as failure:
                    raise _bad_message(failure, len(value or b"")) from failure

    def _on_failure(self, error: KafkaError | None, _: Message) -> None:
        """Note a message that was not stored; called for those alone, in ``poll`` and ``flush``."""
        if error is not None:
            self._failures.append(error)

    def _until_done(self, request: Callable[[float], None], timeout_s: float) -> None:
        """Ask for a step of a transaction, which may be asked for again, until time is up."""
        deadline = self._clock.monotonic() + timeout_s
        left_s = timeout_s
        while True:
            try:
                request(min(left_s, STEP_TIMEOUT_S))
            except KafkaException as failure:
                left_s = deadline - self._clock.monotonic()
                if not failure.args[0].retriable() or left_s <= 0:
                    raise
                self._clock.sleep(QUEUE_PAUSE_S)
            else:
                self._health.answered()
                return

    def _failed(self, producer: Producer, error: KafkaError) -> sl.StreamlakeError:
        """What a failed transaction means, and the way back."""
        if error.code() in FENCED:
            return self._lost_to_another(error)
        if error.txn_requires_abort():
            reason = self._failures[0].str() if self._failures else error.str()
            self._abort(producer)
            self._is_unsure = True  # librdkafka 2.16 may fail the next transaction of this producer
            return self._fenced or sl.CommitError(
                f"The transaction to {self._topic!r} was aborted; nothing was stored.",
                where=self._topic,
                found=reason,
                remedy="Send it again from the stored positions, as a Pipeline does.",
            )
        self._is_unsure = True
        if error.retriable():
            return sl.CommitUnknownError(
                f"Kafka did not tell in time whether a transaction to {self._topic!r} is stored.",
                where=self._topic,
                found=error.str(),
                remedy="Ask for the stored positions and go on from there, as a Pipeline does.",
            )
        return refused(error, where=self._topic)

    def _abort(self, producer: Producer) -> None:
        try:
            self._until_done(producer.abort_transaction, self._commit_timeout_s)
        except KafkaException as failure:
            self._is_unsure = True  # the next producer's take-over aborts it
            if failure.args[0].code() in FENCED:
                self._lost_to_another(failure.args[0])

    def _lost_to_another(self, error: KafkaError) -> sl.FencedError:
        self._fenced = sl.FencedError(
            f"Another sink was opened under the app_id of {self._transactional_id!r}.",
            where=self._topic,
            found=error.str(),
            remedy="Two processes run under one app_id: stop one of them.",
        )
        return self._fenced


def _bad_message(failure: KafkaException, size: int) -> Exception:
    """The error of a message that the client does not take."""
    error = failure.args[0]
    if error.code() != KafkaError.MSG_SIZE_TOO_LARGE:
        return failure
    return sl.InvalidInputError(
        f"A message of {size} bytes is larger than message.max.bytes.",
        found=error.str(),
        remedy="Raise message.max.bytes here and max.message.bytes of the topic.",
    )
