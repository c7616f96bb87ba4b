"""From librdkafka's queue to rows that follow our positions."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping

import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import KafkaError, Message

from streamlake_kafka.codes import (
    AWAY,
    MAX_POLL_EXCEEDED,
    NO_SUCH_TOPIC,
    OUT_OF_RANGE,
    PARTITION_EOF,
)
from streamlake_kafka.connection import Connection, refused
from streamlake_kafka.health import Health
from streamlake_kafka.messages import messages_to_table
from streamlake_kafka.parts import Part, Progress
from streamlake_kafka.schema import kafka_schema

logger = logging.getLogger(__name__)


class Reader:
    """Takes messages and events, keeps what follows the positions, and moves those.

    Every row's offset is compared with its part's position: where librdkafka begins is never relied
    on.
    """

    def __init__(
        self,
        connection: Connection,
        progress: Progress,
        *,
        health: Health,
        ends: Mapping[Part, int],
        headers: bool,
    ) -> None:
        self._connection = connection
        self._progress = progress
        self._health = health
        self._ends = ends
        self._headers = headers
        self._lost: set[Part] = set()
        self.no_rows = kafka_schema(include_headers=headers).empty_table()
        """A table of our columns without rows."""

    def read(self, max_rows: int, wait_s: float, *, until_full: bool) -> list[Message]:
        """Messages and events. Group callbacks run in here.

        Args:
            max_rows: The most to take.
            wait_s: How long to wait where there are too few.
            until_full: Whether to wait for ``max_rows``, or only for the first.
        """
        if until_full:
            return self._connection.read(max_rows, wait_s)
        return self._connection.read(max_rows, 0.0) or self._connection.read(1, wait_s)

    def take(self, messages: list[Message]) -> pa.Table:
        """The rows among them that follow our positions, which move on.

        Raises:
            TopicNotFoundError: A topic was deleted.
            SourceError: Kafka refuses.
        """
        if not any(map(Message.error, messages)):
            return self._rows(messages)
        rows = self._rows([message for message in messages if message.error() is None])
        for message in messages:
            error = message.error()
            if error is not None:
                self._meet(message, error)
        return rows

    def take_lost(self) -> set[Part]:
        """The parts whose next offset is not there, since this was asked last."""
        lost, self._lost = self._lost, set()
        return lost

    def is_through(self) -> bool:
        """Whether every part that we own is at its end."""
        positions = self._progress.positions()
        return all(at >= self._ends.get(part, -1) for part, at in positions.items())

    def _rows(self, messages: list[Message]) -> pa.Table:
        if not messages:
            return self.no_rows
        table = messages_to_table(messages, headers=self._headers)
        reach = table.group_by(["topic", "partition"]).aggregate(
            [("offset", "min"), ("offset", "max")]
        )
        rows = zip(*(column.to_pylist() for column in reach.columns), strict=True)
        found = {Part(topic, number): (low, high) for topic, number, low, high in rows}
        if any(self._needs_trim(part, low, high) for part, (low, high) in found.items()):
            table = self._trim(table, found)
        next_offsets = self._connection.next_offsets(found)
        for part, (_, high) in found.items():
            self._advance(part, max(high, next_offsets.get(part, 0) - 1))
        return table

    def _needs_trim(self, part: Part, low: int, high: int) -> bool:
        position = self._progress.read(part)
        return position is None or low <= position or high > self._ends.get(part, high)

    def _trim(self, table: pa.Table, parts: Collection[Part]) -> pa.Table:
        """Only rows of parts that we own, behind their position and not behind their end."""
        offset = pc.field("offset")
        kept = pc.scalar(False)  # noqa: FBT003 (Arrow's own)
        for part in parts:
            position = self._progress.read(part)
            if position is not None:
                mine = (pc.field("topic") == part.topic) & (pc.field("partition") == part.number)
                behind_end = offset > self._ends.get(part, 2**63 - 1)
                kept |= mine & (offset > position) & ~behind_end
        return table.filter(kept)

    def _advance(self, part: Part, position: int) -> None:
        """Move a position on, but in a bounded run never behind the part's end."""
        self._progress.advance(part, min(position, self._ends.get(part, position)))

    def _meet(self, event: Message, error: KafkaError) -> None:
        """Act on an event: an end, a loss, a refusal."""
        topic, number, offset = event.topic(), event.partition(), event.offset()
        code = error.code()
        if code == MAX_POLL_EXCEEDED:
            logger.warning("the group took our partitions: storing took too long: %s", error.str())
        elif code in AWAY:
            logger.warning("Kafka: %s", error.str())
        elif topic is None or number is None or offset is None:
            raise refused(error, where=self._health.servers)
        elif code == PARTITION_EOF:
            self._advance(Part(topic, number), offset - 1)
        elif code in OUT_OF_RANGE:
            self._lost.add(Part(topic, number))
        elif code in NO_SUCH_TOPIC:
            self._connection.parts([topic])  # raises, unless it is there after all
        else:
            raise refused(error, where=f"{topic}/{number}")
