"""How far a table is behind the Kafka topics that are bridged into it."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from streamlake import StreamlakeError, Table

ANSWER_TIMEOUT_S = 5.0
_EARLIEST = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
_LATEST = OffsetSpec.latest()  # type: ignore[no-untyped-call]
_logger = logging.getLogger("streamlake.cli.lag.librdkafka")


class KafkaLag:
    """Counts messages that Kafka has and the table has not, whichever engine carries them.

    The table's markers say what it has; the ends of the partitions are Kafka's. Messages that no
    consumer is ever handed (markers of transactions) count until the bridge has passed them.
    """

    def __init__(
        self,
        kafka: Mapping[str, str],
        topics: Sequence[str],
        *,
        app_id: str,
        table: str,
        storage_options: Mapping[str, str],
    ) -> None:
        self._admin = AdminClient(dict(kafka), logger=_logger)
        self._topics = topics
        self._app_id = app_id
        self._url = table
        self._storage_options = storage_options
        self._table: Table | None = None

    def __call__(self) -> int | None:
        """How many messages the table is behind now; None where nobody answers."""
        try:
            if self._table is None:
                self._table = Table.open(self._url, storage_options=self._storage_options)
            markers = self._table.markers()
            first, last = self._ends(_EARLIEST), self._ends(_LATEST)
        except (KafkaException, StreamlakeError):
            return None
        behind = 0
        for (topic, partition), end in last.items():
            marker = markers.get(f"{self._app_id}/{topic}/{partition}")
            done = first.get((topic, partition), 0) if marker is None else marker.version + 1
            behind += max(0, end - done)
        return behind

    def _ends(self, spec: OffsetSpec) -> dict[tuple[str, int], int]:
        """The first or the next offset of each partition."""
        asked = {}
        for topic in self._topics:
            found = self._admin.list_topics(topic, timeout=ANSWER_TIMEOUT_S).topics[topic]
            asked.update({TopicPartition(topic, number): spec for number in found.partitions})
        answers = self._admin.list_offsets(asked, request_timeout=ANSWER_TIMEOUT_S)
        return {
            (part.topic, part.partition): answer.result(ANSWER_TIMEOUT_S).offset
            for part, answer in answers.items()
        }
