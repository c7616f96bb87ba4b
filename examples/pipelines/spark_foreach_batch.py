"""Orders from Kafka, parsed by Spark, into a table: exactly once, with or without its checkpoint.

    python spark_foreach_batch.py localhost:9092 orders /data/orders /tmp/checkpoint

The offsets of Kafka are the markers in the table (``markers="kafka"``), so the checkpoint folder
may be deleted at any time. That needs the columns topic, partition and offset in the rows.
"""

import os
import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, from_json

from pyspark_streamlake import ForeachBatchSink


def main(servers: str, topic: str, url: str, checkpoint: str) -> None:
    """Carry what the topic holds now into the table, which is made if there is none."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark's workers are this Python too
    spark = SparkSession.builder.master("local[2]").appName("orders").getOrCreate()
    sink = ForeachBatchSink(
        url,
        app_id="orders-ingest",
        markers="kafka",
        kafka={"bootstrap.servers": servers},
        topics=[topic],
        create=True,
    )
    messages = (
        spark.readStream.format("streamlake_kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .option("startingOffsets", sink.starting_offsets())
        .load()
    )
    order = from_json(col("value").cast("string"), "id long, item string, price double")
    orders = messages.select(order.alias("order"), "topic", "partition", "offset")
    query = (
        orders.select("order.*", "topic", "partition", "offset")
        .writeStream.foreachBatch(sink)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
