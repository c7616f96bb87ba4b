"""The topic beside a topic that says how far its writer has come."""

from __future__ import annotations

from typing import Final

import msgspec
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

import streamlake as sl
from streamlake_kafka.codes import PARTITION_EOF
from streamlake_kafka.connection import Connection, refused
from streamlake_kafka.health import Health
from streamlake_kafka.parts import Part
from streamlake_kafka.settings import Config, admin_settings

KEY: Final = b"positions"
TOPIC_CONFIG: Final = {
    "cleanup.policy": "compact",
    "segment.bytes": str(2**20),
    "min.cleanable.dirty.ratio": "0.1",
}
"""Only the newest record counts; compaction keeps the rest small."""
REQUEST_TIMEOUT_S: Final = 30.0
READ_TIMEOUT_S: Final = 60.0
CHUNK_MESSAGES: Final = 1000


class PositionsTopic:
    """A compacted topic of one partition and one writer, whose newest record holds all positions.

    The record is written in the transaction of the rows that it accounts for. Group offsets would
    not do: Kafka drops those of a group that rests for a week.
    """

    def __init__(self, name: str, *, config: Config, health: Health, clock: sl.Clock) -> None:
        self.name = name
        """The topic's name."""
        self._config = config
        self._health = health
        self._clock = clock

    @staticmethod
    def record(positions: sl.Positions) -> bytes:
        """The newest record: a JSON object of all positions by name."""
        return msgspec.json.encode(dict(positions), order="sorted")

    def create(self) -> None:
        """Create the topic where it is not there yet.

        Raises:
            SourceError: It can't be created, or is there and does not keep its newest record.
        """
        admin = AdminClient(admin_settings(self._config))
        new = NewTopic(self.name, num_partitions=1, config=dict(TOPIC_CONFIG))
        try:
            admin.create_topics([new], request_timeout=REQUEST_TIMEOUT_S)[self.name].result()
        except KafkaException as failure:
            error = failure.args[0]
            if error.code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise refused(error, where=self.name) from failure
            self._check_policy(admin)

    def read(self) -> dict[str, int]:
        """The positions of the last transaction that was committed; none where there was none.

        Raises:
            SourceError: The record is not one of ours.
            SourceUnavailableError: The brokers do not answer.
        """
        newest = self._newest()
        if newest is None:
            return {}
        try:
            return msgspec.json.decode(newest, type=dict[str, int])
        except msgspec.DecodeError as error:
            raise sl.SourceError(
                f"The topic {self.name!r} holds something else than positions.",
                where=self.name,
                found=repr(newest[:100]),
                remedy="Find out who else writes to it, or use another app_id.",
            ) from error

    def _newest(self) -> bytes | None:
        """The value of the last record, found by reading the topic to its end."""
        config = {**self._config, "isolation.level": "read_committed"}
        connection = Connection(config, health=self._health, clock=self._clock)
        part = Part(self.name, 0)
        newest: bytes | None = None
        try:
            connection.assign({part: connection.spans([part])[part].low})
            deadline = self._clock.monotonic() + READ_TIMEOUT_S
            while self._clock.monotonic() < deadline:
                for message in connection.read(CHUNK_MESSAGES, 0.1):
                    error = message.error()
                    if error is None:
                        newest = message.value() if message.key() == KEY else newest
                    elif error.code() == PARTITION_EOF:
                        return newest
                    else:
                        raise refused(error, where=self.name)
        finally:
            connection.close()
        raise self._health.unavailable()

    def _check_policy(self, admin: AdminClient) -> None:
        resource = ConfigResource(ResourceType.TOPIC, self.name)
        found = admin.describe_configs([resource], request_timeout=REQUEST_TIMEOUT_S)[resource]
        policy = found.result()["cleanup.policy"].value
        if policy != "compact":
            raise sl.SourceError(
                f"The topic {self.name!r} would lose positions.",
                where=self.name,
                found=f"cleanup.policy={policy}",
                remedy="Set its cleanup.policy to compact.",
            )
