"""What the driver asks Kafka: which partitions there are, and whether a gap holds records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing

import streamlake as sl
from pyspark_streamlake_kafka.cluster import Cluster
from pyspark_streamlake_kafka.offsets import TopicPartition
from pyspark_streamlake_kafka.options import CLIENT_PREFIX, KafkaOptions, parse_options
from pyspark_streamlake_kafka.ranges import OffsetRange
from pyspark_streamlake_kafka.reading import read_ranges


class KafkaProbe:
    """Questions to Kafka, each over a connection of its own: they are rare."""

    def __init__(self, client: Mapping[str, str]) -> None:
        self._client = dict(client)

    def partitions(self, topics: Sequence[str]) -> tuple[tuple[str, int], ...]:
        """The partitions of ``topics``.

        Raises:
            TopicNotFoundError: One does not exist.
            SourceUnavailableError: No broker answers.
        """
        with closing(Cluster(self._options(",".join(topics)))) as cluster:
            return tuple((tp.topic, tp.partition) for tp in cluster.partitions())

    def latest(self, topics: Sequence[str]) -> dict[tuple[str, int], int]:
        """The offset after the last one of each partition of ``topics``.

        Raises:
            TopicNotFoundError: One does not exist.
            SourceUnavailableError: No broker answers.
        """
        with closing(Cluster(self._options(",".join(topics)))) as cluster:
            return {
                (tp.topic, tp.partition): end
                for tp, end in cluster.latest(cluster.partitions()).items()
            }

    def first_record(self, tp: tuple[str, int], start: int, end: int) -> int | None:
        """The offset of the first record in [start, end) that Kafka still holds; None without one.

        Offsets of transactions' ends, of aborted and of compacted messages are no records.

        Raises:
            SourceUnavailableError: No broker answers.
        """
        partition, options = TopicPartition(*tp), self._options(tp[0])
        with closing(Cluster(options)) as cluster:
            low, high = (ask([partition])[partition] for ask in (cluster.earliest, cluster.latest))
        held = OffsetRange(partition, max(start, low), min(end, high))
        if len(held) <= 0:
            return None
        for batch in read_ranges((held,), options, clock=sl.SYSTEM_CLOCK):
            return int(batch.column("offset")[0].as_py())
        return None

    def _options(self, topics: str) -> KafkaOptions:
        client = {f"{CLIENT_PREFIX}{name}": value for name, value in self._client.items()}
        return parse_options({**client, "subscribe": topics})
