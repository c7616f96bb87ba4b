"""Kafka as a Spark data source that needs no extra jar, the format ``streamlake_kafka``.

PySpark finds ``DefaultSource`` by the package's name, and imports this package at every look-up of
a data source: nothing heavy is imported before the format is used.

    options    what ``.option(...)`` may say, named as Spark's Kafka source names it
    client     a consumer, and what its errors mean
    offsets    positions by topic-partition, their JSON, how a batch is limited
    cluster    what the driver asks Kafka: partitions, first and last offsets
    positions  what a user asks for as offsets; what Kafka has lost
    ranges     offset ranges, and how they become tasks
    reading    what a task does: consume its ranges into Arrow
    stream     the stream reader
    batch      the batch reader
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader
    from pyspark.sql.types import StructType

    from pyspark_streamlake_kafka.options import KafkaOptions

__all__ = ["DefaultSource"]

FORMAT_NAME = "streamlake_kafka"
COLUMNS_DDL = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "timestampType int"
)
HEADERS_DDL = "headers array<struct<key: string, value: binary>>"


class DefaultSource(DataSource):
    """The format ``streamlake_kafka``: rows as Spark's own Kafka source gives them.

    Delivery: replayable. Positions are Spark's to keep, in the checkpoint of the query; the same
    offset range gives the same rows for as long as Kafka holds them.
    """

    @classmethod
    def name(cls) -> str:
        """What ``.format(...)`` takes."""
        return FORMAT_NAME

    def schema(self) -> str:
        """The columns, as DDL; also where wrong options are told, before a query starts.

        Raises:
            InvalidInputError: An option that is unknown, missing or malformed.
            ImportError: confluent-kafka is not installed.
        """
        with_headers = self._options().include_headers
        return f"{COLUMNS_DDL}, {HEADERS_DDL}" if with_headers else COLUMNS_DDL

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002 (PySpark's)
        """A reader for ``spark.readStream``.

        Raises:
            InvalidInputError: As ``schema``, or an option that only a batch can have.
        """
        from pyspark_streamlake_kafka.stream import KafkaStreamReader  # noqa: PLC0415 (light import)

        return KafkaStreamReader(self._options().checked_for_stream())

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 (PySpark's)
        """A reader for ``spark.read``.

        Raises:
            InvalidInputError: As ``schema``, or an option that only a stream can have.
        """
        from pyspark_streamlake_kafka.batch import KafkaBatchReader  # noqa: PLC0415 (light import)

        return KafkaBatchReader(self._options().checked_for_batch())

    def _options(self) -> KafkaOptions:
        from pyspark_streamlake_kafka.options import parse_options  # noqa: PLC0415 (light import)

        return parse_options(self.options)
