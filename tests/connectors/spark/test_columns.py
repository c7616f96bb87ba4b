"""What the columns of a query must be: Kafka's position, and types that a table can have."""

from __future__ import annotations

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F  # noqa: N812 (its usual name)

import streamlake as sl
from kafka_kit import produce
from pyspark_streamlake import ForeachBatchSink
from spark_session import drain, kafka_rows


@pytest.fixture
def rows(spark, kafka, topic):
    produce(kafka.bootstrap_servers, topic, "abc")
    return kafka_rows(
        spark, kafka.bootstrap_servers, subscribe=topic, startingOffsets="earliest"
    ).select("topic", "partition", "offset", "value")


@pytest.fixture
def sink(kafka, tmp_path):
    client = {"bootstrap.servers": kafka.bootstrap_servers}
    url = tmp_path / "new"
    return ForeachBatchSink(url, app_id="ingest", markers="kafka", kafka=client, create=True)


@pytest.mark.parametrize(
    ("retyped", "told"),
    [
        ("topic binary", "topic is binary, not string"),
        ("partition string", "partition is string, not int or bigint"),
        ("offset string", "offset is string, not int or bigint"),
        ("offset double", "offset is double, not int or bigint"),
    ],
)
def test_a_position_of_another_type_is_refused(rows, sink, checkpoint, retyped, told):
    column, kind = retyped.split()
    changed = rows.withColumn(column, F.col(column).cast(kind))
    with pytest.raises(StreamingQueryException, match=r"errors\.InvalidInputError") as caught:
        drain(changed, sink, checkpoint)
    assert told in str(caught.value)


def test_what_is_refused_makes_no_table(rows, sink, checkpoint, tmp_path):
    with pytest.raises(StreamingQueryException, match="missing: offset"):
        drain(rows.drop("offset"), sink, checkpoint)
    assert not (tmp_path / "new").exists()


def test_a_position_that_is_there_twice_is_refused(rows, sink, checkpoint):
    with pytest.raises(StreamingQueryException, match="offset is bigint and bigint"):
        drain(rows.select("*", "offset"), sink, checkpoint)


def test_positions_in_integers_of_another_width_are_taken_and_trimmed(
    kafka, topic, rows, sink, tmp_path
):
    retyped = rows.withColumn("partition", F.col("partition").cast("long"))
    retyped = retyped.withColumn("offset", F.col("offset").cast("int"))
    drain(retyped, sink, tmp_path / "one")
    produce(kafka.bootstrap_servers, topic, "de")
    drain(retyped, sink, tmp_path / "two")
    written = sl.Table.open(tmp_path / "new").snapshot().to_arrow()
    assert sorted(written["offset"].to_pylist()) == [0, 1, 2, 3, 4]


def test_a_second_dataframe_of_one_batch_is_refused(rows, sink, checkpoint, tmp_path):
    def write(batch, batch_id):
        sink(batch.where("offset < 2"), batch_id)
        sink(batch.where("offset >= 2"), batch_id + 1)

    with pytest.raises(StreamingQueryException, match="one dataframe a batch"):
        drain(rows, write, checkpoint)
    assert sl.Table.open(tmp_path / "new").snapshot().to_arrow()["offset"].to_pylist() == [0, 1]


@pytest.mark.parametrize(
    ("expression", "named"),
    [
        ("parse_json('1')", "n"),
        ("named_struct('a', array(parse_json('1')))", "n.a.element"),
        ("map('a', parse_json('1'))", "n.value"),
    ],
)
def test_a_variant_does_not_become_a_column_of_a_new_table(
    spark, checkpoint, tmp_path, expression, named
):
    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 2).load()
    sink = ForeachBatchSink(tmp_path / "new", app_id="agg", create=True)
    with pytest.raises(StreamingQueryException, match=f"Column '{named}' has a type") as caught:
        drain(rate.withColumn("n", F.expr(expression)), sink, checkpoint)
    assert "found: variant" in str(caught.value)
    assert not (tmp_path / "new").exists()
