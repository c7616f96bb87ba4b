"""The stream reader: the driver plans offsets, tasks read ranges."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

import streamlake as sl
from pyspark_streamlake_kafka.cluster import Cluster
from pyspark_streamlake_kafka.offsets import (
    Offsets,
    TopicPartition,
    limited,
    offsets_from_json,
    offsets_to_json,
)
from pyspark_streamlake_kafka.options import KafkaOptions
from pyspark_streamlake_kafka.positions import (
    DataLoss,
    check_still_there,
    ranges_between,
    resolve,
    with_new_partitions,
)
from pyspark_streamlake_kafka.ranges import RangesPartition, plan_tasks
from pyspark_streamlake_kafka.reading import read_ranges

_log = logging.getLogger(__name__)


class KafkaStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Kafka as a stream source of Spark. Its position is ``{"topic": {"0": next offset}}``.

    The driver keeps one instance for the life of the query, and copies of it read in tasks: it
    pickles by its options. It waits for brokers that are away, up to
    ``kafkaConsumer.pollTimeoutMs``.

    Delivery: replayable.
    """

    def __init__(self, options: KafkaOptions, *, clock: sl.Clock = sl.SYSTEM_CLOCK) -> None:
        self._options = options
        self._clock = clock
        self._loss = DataLoss(fail=options.fail_on_data_loss)
        self._connected: Cluster | None = None
        self._target: Offsets | None = None
        self._newest: Offsets | None = None
        self._away_since: float | None = None

    def __reduce__(self) -> tuple[type[KafkaStreamReader], tuple[KafkaOptions]]:
        return type(self), (self._options,)

    def initialOffset(self) -> dict[str, Any]:
        """Where a new query starts: at ``startingOffsets``, by default the latest.

        Raises:
            InvalidInputError: Starting offsets that do not name every partition.
            OffsetOutOfRangeError: Starting offsets that Kafka does not hold.
            SourceError: Kafka does not answer, or there is no such topic.
        """
        position = self._options.starting or "latest"
        return _json(resolve(position, self._cluster, option="startingOffsets", loss=self._loss))

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """How far the next batch goes: to the newest offsets, within the limit.

        While Kafka is away it is ``start``: nothing new is known. A query that ends where there is
        nothing new (Trigger.AvailableNow) waits instead.

        Raises:
            OffsetOutOfRangeError: What comes after ``start`` is not in Kafka any more.
            SourceUnavailableError: Kafka has been away for ``kafkaConsumer.pollTimeoutMs``.
        """
        while True:
            try:
                newest = self._read_newest()
                known = self._known(offsets_from_json(start), newest)
            except sl.SourceUnavailableError as error:
                self._wait_for_kafka(error)
                if self._target is None:
                    return start
            else:
                break
        self._away_since = None
        if isinstance(limit, ReadMaxRows):
            newest = limited(known, newest, max_rows=limit.max_rows)
        return _json(newest)

    def getDefaultReadLimit(self) -> ReadLimit:
        """``maxOffsetsPerTrigger`` where it is set, else no limit."""
        max_rows = self._options.max_offsets_per_trigger
        return ReadAllAvailable() if max_rows is None else ReadMaxRows(max_rows)

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """The newest offsets that the driver knows of; asks nobody."""
        return None if self._newest is None else _json(self._newest)

    def prepareForTriggerAvailableNow(self) -> None:
        """Fix what "now" is: the query ends at these offsets.

        Raises:
            SourceError: Kafka does not answer, or there is no such topic.
        """
        self._target = self._cluster.latest(self._cluster.partitions())

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The tasks of one batch; the same two positions give the same rows.

        Raises:
            OffsetOutOfRangeError: A partition that is new since ``start`` has lost rows already.
            SourceUnavailableError: Kafka does not answer.
        """
        until = offsets_from_json(end)
        since = with_new_partitions(offsets_from_json(start), until, self._cluster, loss=self._loss)
        tasks: list[RangesPartition] = plan_tasks(
            ranges_between(since, until), min_partitions=self._options.min_partitions
        )
        return tasks

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task; runs on an executor.

        Raises:
            OffsetOutOfRangeError: Offsets of the range are not in Kafka any more.
            SourceUnavailableError: Kafka does not deliver for ``kafkaConsumer.pollTimeoutMs``.
        """
        if not isinstance(partition, RangesPartition):
            raise TypeError(f"not a partition of this source: {partition!r}")
        return read_ranges(partition.ranges, self._options, clock=self._clock)

    def stop(self) -> None:
        """Let go of the driver's connections."""
        if self._connected is not None:
            self._connected.close()
            self._connected = None

    @property
    def _cluster(self) -> Cluster:
        if self._connected is None:
            self._connected = Cluster(self._options, clock=self._clock)
        return self._connected

    def _read_newest(self) -> Offsets:
        self._newest = self._cluster.latest(self._cluster.known_partitions())
        if self._target is None:
            return self._newest
        return {
            tp: min(self._newest.get(tp, offset), offset) for tp, offset in self._target.items()
        }

    def _known(self, start: Offsets, newest: Offsets) -> dict[TopicPartition, int]:
        check_still_there(start, newest, loss=self._loss)
        return with_new_partitions(start, newest, self._cluster, loss=self._loss)

    def _wait_for_kafka(self, error: sl.SourceUnavailableError) -> None:
        now = self._clock.monotonic()
        if self._away_since is None:
            self._away_since = now
        away_s = now - self._away_since
        if away_s * 1000 >= self._options.poll_timeout_ms:
            raise error
        _log.warning("Kafka has been away for %.0f s, trying again: %s", away_s, error.found)


def _json(offsets: Mapping[TopicPartition, int]) -> dict[str, Any]:
    return dict(offsets_to_json(offsets))
