"""The format streamlake_kafka in a real Spark, on a real broker."""

from __future__ import annotations

import json

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException

from kafka_kit import produce
from spark_session import drain, kafka_rows


class Batches:
    """Keeps the values of each batch, by its number."""

    def __init__(self):
        self.values = {}

    def __call__(self, rows, batch_id):
        self.values[batch_id] = [bytes(row.value).decode() for row in rows.collect()]


def test_columns_are_those_of_sparks_own_source(spark, kafka, topic):
    rows = kafka_rows(spark, kafka.bootstrap_servers, subscribe=topic, includeHeaders="true")
    assert rows.isStreaming
    assert [f"{name} {kind}" for name, kind in rows.dtypes] == [
        "key binary",
        "value binary",
        "topic string",
        "partition int",
        "offset bigint",
        "timestamp timestamp",
        "timestampType int",
        "headers array<struct<key:string,value:binary>>",
    ]


def test_a_query_reads_what_is_there_and_goes_on_from_its_checkpoint(
    spark, kafka, topic, checkpoint
):
    rows = kafka_rows(spark, kafka.bootstrap_servers, subscribe=topic, startingOffsets="earliest")
    produce(kafka.bootstrap_servers, topic, ["a", "b"])
    batches = Batches()
    drain(rows, batches, checkpoint)
    produce(kafka.bootstrap_servers, topic, ["c"])
    drain(rows, batches, checkpoint)
    assert batches.values == {0: ["a", "b"], 1: ["c"]}


def test_a_limit_cuts_what_is_there_into_batches(spark, kafka, topic, checkpoint):
    produce(kafka.bootstrap_servers, topic, "abcde")
    batches = Batches()
    rows = kafka_rows(
        spark,
        kafka.bootstrap_servers,
        subscribe=topic,
        startingOffsets="earliest",
        maxOffsetsPerTrigger="2",
    )
    drain(rows, batches, checkpoint)
    assert batches.values == {0: ["a", "b"], 1: ["c", "d"], 2: ["e"]}


def test_a_batch_read_takes_a_range_and_all_of_its_columns(spark, kafka, topic):
    produce(kafka.bootstrap_servers, topic, "abcde", key="k")
    ends = {"startingOffsets": {topic: {"0": 1}}, "endingOffsets": {topic: {"0": 4}}}
    rows = (
        spark.read.format("streamlake_kafka")
        .option("kafka.bootstrap.servers", kafka.bootstrap_servers)
        .option("subscribe", topic)
        .options(**{name: json.dumps(offsets) for name, offsets in ends.items()})
        .load()
    )
    found = rows.orderBy("offset").collect()
    assert [(bytes(row.key), bytes(row.value), row.offset) for row in found] == [
        (b"k", b"b", 1),
        (b"k", b"c", 2),
        (b"k", b"d", 3),
    ]
    assert {(row.topic, row.partition, row.timestampType) for row in found} == {(topic, 0, 0)}


def test_a_misspelt_option_fails_at_load_by_name(spark, kafka):
    with pytest.raises(AnalysisException, match=r"Did you mean 'startingOffsets'\?"):
        kafka_rows(spark, kafka.bootstrap_servers, subscribe="orders", startingOffset="earliest")


def test_a_missing_topic_fails_the_query_by_name(spark, kafka, checkpoint):
    rows = kafka_rows(spark, kafka.bootstrap_servers, subscribe="no-such-topic")
    with pytest.raises(StreamingQueryException, match=r"TopicNotFoundError.*no-such-topic"):
        drain(rows, Batches(), checkpoint)
