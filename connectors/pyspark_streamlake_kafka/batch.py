"""The batch reader: a range of a topic as a DataFrame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

import streamlake as sl
from pyspark_streamlake_kafka.cluster import Cluster
from pyspark_streamlake_kafka.options import KafkaOptions
from pyspark_streamlake_kafka.positions import DataLoss, ranges_between, resolve
from pyspark_streamlake_kafka.ranges import RangesPartition, plan_tasks
from pyspark_streamlake_kafka.reading import read_ranges


class KafkaBatchReader(DataSourceReader):
    """What Kafka holds between ``startingOffsets`` (earliest) and ``endingOffsets`` (latest)."""

    def __init__(self, options: KafkaOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        """The tasks, planned once, on the driver.

        Raises:
            InvalidInputError: Offsets that do not name every partition.
            OffsetOutOfRangeError: Offsets that Kafka does not hold.
            SourceError: Kafka does not answer, or there is no such topic.
        """
        options, loss = self._options, DataLoss(fail=self._options.fail_on_data_loss)
        cluster = Cluster(options)
        starting, ending = options.starting or "earliest", options.ending or "latest"
        try:
            start = resolve(starting, cluster, option="startingOffsets", loss=loss)
            end = resolve(ending, cluster, option="endingOffsets", loss=loss)
        finally:
            cluster.close()
        ranges = ranges_between(start, end)
        tasks = plan_tasks(ranges, min_partitions=options.min_partitions)
        return list(tasks) or [RangesPartition(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task; runs on an executor.

        Raises:
            OffsetOutOfRangeError: Offsets of the range are not in Kafka any more.
            SourceUnavailableError: Kafka does not deliver for ``kafkaConsumer.pollTimeoutMs``.
        """
        if not isinstance(partition, RangesPartition):
            raise TypeError(f"not a partition of this source: {partition!r}")
        return read_ranges(partition.ranges, self._options, clock=sl.SYSTEM_CLOCK)
