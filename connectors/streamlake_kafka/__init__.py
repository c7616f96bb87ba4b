"""Kafka for streamlake: topics as a source of batches, and as a sink. No Spark, no JVM.

sl.Pipeline(
    KafkaSource({"bootstrap.servers": servers}, topics=["orders"]),
    sl.TableSink(url, app_id="orders-ingest", schema=kafka_schema()),
).run()
"""

try:
    import confluent_kafka as _confluent_kafka  # noqa: F401 (only to see that it is there)
except ImportError as error:
    raise ImportError(
        "streamlake_kafka needs confluent-kafka: pip install 'streamlake[kafka]'"
    ) from error

from streamlake_kafka.limits import ReadLimits
from streamlake_kafka.messages import messages_to_table
from streamlake_kafka.schema import kafka_schema
from streamlake_kafka.sink import KafkaSink
from streamlake_kafka.source import KafkaSource

__all__ = [
    "KafkaSink",
    "KafkaSource",
    "ReadLimits",
    "kafka_schema",
    "messages_to_table",
]
