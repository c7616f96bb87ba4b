"""ForeachBatchSink with Kafka markers: exactly once whatever becomes of the checkpoint folder."""

from __future__ import annotations

import json
import shutil

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException

import streamlake as sl
from kafka_kit import produce, produce_in_transaction
from pyspark_streamlake import ForeachBatchSink
from spark_session import drain, kafka_rows


@pytest.fixture
def carry(spark, kafka, kafka_table, topic, checkpoint):
    """Run a query from the topic into the table over what is there now."""

    def run(sink=None, *, starting="earliest", steps=lambda rows: rows, folder=checkpoint, **more):
        rows = kafka_rows(
            spark,
            kafka.bootstrap_servers,
            subscribe=topic,
            startingOffsets=starting,
            **more,
        )
        drain(steps(rows), sink or sink_for(kafka, kafka_table, topic), folder)

    return run


def sink_for(kafka, table, *topics, app_id="ingest"):
    client = {"bootstrap.servers": kafka.bootstrap_servers}
    return ForeachBatchSink(table.url, app_id=app_id, markers="kafka", kafka=client, topics=topics)


def values(table):
    rows = (
        table.snapshot().to_arrow().sort_by([("partition", "ascending"), ("offset", "ascending")])
    )
    return [value.decode() for value in rows["value"].to_pylist()]


def markers(table):
    return {app_id: marker.version for app_id, marker in table.markers().items()}


def test_rows_and_the_offsets_they_account_for_are_in_one_commit(kafka, kafka_table, topic, carry):
    produce(kafka.bootstrap_servers, topic, "abc")
    carry()
    assert values(kafka_table) == ["a", "b", "c"]
    assert markers(kafka_table) == {f"ingest/{topic}/0": 2}
    assert kafka_table.version == 1


def test_a_lost_checkpoint_repeats_no_row(kafka, kafka_table, topic, carry, checkpoint):
    produce(kafka.bootstrap_servers, topic, "abc")
    carry()
    shutil.rmtree(checkpoint)
    produce(kafka.bootstrap_servers, topic, "de")
    carry(starting="earliest")
    assert values(kafka_table) == list("abcde")
    assert markers(kafka_table) == {f"ingest/{topic}/0": 4}


def test_offset_0_is_a_marker_like_any_other(kafka, kafka_table, topic, carry, tmp_path):
    produce(kafka.bootstrap_servers, topic, "a")
    carry(folder=tmp_path / "one")
    carry(folder=tmp_path / "two")
    assert values(kafka_table) == ["a"]
    assert markers(kafka_table) == {f"ingest/{topic}/0": 0}


def test_two_topics_in_one_table_have_markers_of_their_own(
    kafka, kafka_table, make_topic, spark, checkpoint
):
    one, two = make_topic(), make_topic()
    produce(kafka.bootstrap_servers, one, "abc")
    produce(kafka.bootstrap_servers, two, "xy")
    sink = sink_for(kafka, kafka_table, one, two)
    started = {"subscribe": f"{one},{two}", "startingOffsets": sink.starting_offsets()}
    drain(kafka_rows(spark, kafka.bootstrap_servers, **started), sink, checkpoint)
    assert sorted(values(kafka_table)) == list("abcxy")
    assert markers(kafka_table) == {f"ingest/{one}/0": 2, f"ingest/{two}/0": 1}


def test_a_checkpoint_that_is_behind_repeats_no_row(kafka, kafka_table, topic, carry, tmp_path):
    produce(kafka.bootstrap_servers, topic, "abc")
    carry(folder=tmp_path / "newer")
    shutil.copytree(tmp_path / "newer", tmp_path / "older")
    produce(kafka.bootstrap_servers, topic, "de")
    carry(folder=tmp_path / "newer")
    produce(kafka.bootstrap_servers, topic, "f")
    carry(folder=tmp_path / "older")
    assert values(kafka_table) == list("abcdef")


def test_starting_offsets_go_on_behind_the_markers(
    kafka, kafka_table, make_topic, spark, checkpoint
):
    topic = make_topic(partitions=2)
    produce(kafka.bootstrap_servers, topic, "abc", partition=1)
    sink = sink_for(kafka, kafka_table, topic)
    assert json.loads(sink.starting_offsets()) == {topic: {"0": -2, "1": -2}}
    rows = kafka_rows(
        spark, kafka.bootstrap_servers, subscribe=topic, startingOffsets=sink.starting_offsets()
    )
    drain(rows, sink, checkpoint)
    assert json.loads(sink.starting_offsets()) == {topic: {"0": -2, "1": 3}}
    assert values(kafka_table) == ["a", "b", "c"]


def test_a_start_that_would_leave_out_records_is_refused(
    kafka, kafka_table, topic, carry, checkpoint
):
    produce(kafka.bootstrap_servers, topic, "ab")
    carry()
    shutil.rmtree(checkpoint)
    produce(kafka.bootstrap_servers, topic, "cde")
    with pytest.raises(StreamingQueryException, match="Kafka still holds 2") as caught:
        carry(starting=json.dumps({topic: {"0": 4}}))
    assert "sink.starting_offsets()" in str(caught.value)
    assert values(kafka_table) == ["a", "b"]


def test_a_start_behind_nothing_but_the_end_of_a_transaction_leaves_out_no_record(
    kafka, kafka_table, topic, carry, checkpoint
):
    produce(kafka.bootstrap_servers, topic, "a")
    carry()
    shutil.rmtree(checkpoint)
    produce_in_transaction(kafka.bootstrap_servers, topic, "xy", commit=False)
    produce(kafka.bootstrap_servers, topic, "b")
    carry(starting=json.dumps({topic: {"0": 4}}))
    assert values(kafka_table) == ["a", "b"]


def test_a_new_owner_may_start_at_the_latest_unless_it_asked_where_to_start(
    kafka, kafka_table, topic, carry, tmp_path
):
    produce(kafka.bootstrap_servers, topic, "abc")
    here = json.dumps({topic: {"0": 2}})
    sink = sink_for(kafka, kafka_table, topic)
    sink.starting_offsets()
    with pytest.raises(StreamingQueryException, match="Kafka still holds 0"):
        carry(sink, starting=here, folder=tmp_path / "one")
    carry(starting=here, folder=tmp_path / "other")
    assert values(kafka_table) == ["c"]


def test_the_markers_account_for_gaps_and_for_filtered_rows(kafka, kafka_table, topic, carry):
    produce(kafka.bootstrap_servers, topic, "abcd")
    produce_in_transaction(kafka.bootstrap_servers, topic, "xy", commit=False)
    carry(steps=lambda rows: rows.where("cast(value as string) < 'c'"))
    assert values(kafka_table) == ["a", "b"]
    assert markers(kafka_table) == {f"ingest/{topic}/0": 6}


def test_a_batch_of_which_no_row_is_left_still_moves_the_markers(kafka, kafka_table, topic, carry):
    produce(kafka.bootstrap_servers, topic, "ab")
    carry(steps=lambda rows: rows.where("false"))
    assert kafka_table.snapshot().files() == ()
    assert markers(kafka_table) == {f"ingest/{topic}/0": 1}


def test_shuffled_rows_are_trimmed_all_the_same(kafka, kafka_table, topic, carry, checkpoint):
    produce(kafka.bootstrap_servers, topic, "abc")
    carry(steps=lambda rows: rows.repartition(2))
    shutil.rmtree(checkpoint)
    produce(kafka.bootstrap_servers, topic, "de")
    carry(steps=lambda rows: rows.repartition(2))
    assert values(kafka_table) == list("abcde")


def test_a_fenced_owner_takes_over_what_the_other_has_stored(kafka, kafka_table, topic, carry):
    produce(kafka.bootstrap_servers, topic, "abcdef")
    sink = sink_for(kafka, kafka_table, topic)

    def overtaken(rows, batch_id):
        if batch_id == 1:  # the batch is "cd": the other owner has stored "c" of it
            other = sl.Table.open(kafka_table.url)
            row = rows.where("offset = 2").toArrow()
            marker = other.markers()[f"ingest/{topic}/0"]
            txn = sl.SetTransaction(marker.app_id, 2)
            other.append(row, txn=txn, expect={marker.app_id: marker})
        sink(rows, batch_id)

    carry(overtaken, maxOffsetsPerTrigger="2")
    assert values(kafka_table) == list("abcdef")
    assert markers(kafka_table) == {f"ingest/{topic}/0": 5}


def test_a_marker_that_was_set_back_meanwhile_shows_the_gap(
    kafka, kafka_table, topic, carry, tmp_path
):
    produce(kafka.bootstrap_servers, topic, "abcdef")
    sink = sink_for(kafka, kafka_table, topic)

    def set_back(rows, batch_id):
        if batch_id == 1:  # as a restore of the table to an older version does
            back = {"txn": {"appId": f"ingest/{topic}/0", "version": 0, "lastUpdated": 1}}
            commit = tmp_path / "table/_delta_log" / f"{2:020}.json"
            commit.write_text(json.dumps(back) + "\n")
        sink(rows, batch_id)

    with pytest.raises(StreamingQueryException, match="Kafka still holds 1"):
        carry(set_back, maxOffsetsPerTrigger="2")
    assert values(kafka_table) == ["a", "b"]


def test_the_columns_of_the_position_must_be_there(kafka, topic, carry):
    produce(kafka.bootstrap_servers, topic, "a")
    with pytest.raises(StreamingQueryException, match="missing: offset"):
        carry(steps=lambda rows: rows.drop("offset"))


def test_rows_whose_offsets_the_batch_did_not_read_are_refused(kafka, kafka_table, topic, carry):
    produce(kafka.bootstrap_servers, topic, "abc")
    with pytest.raises(StreamingQueryException, match="no marker accounts for") as caught:
        carry(steps=lambda rows: rows.withColumn("offset", rows["offset"] + 1))
    assert "rows of [1, 3]; the batch reads [0, 3)" in str(caught.value)
    assert kafka_table.snapshot().files() == ()


def test_a_query_that_reads_no_kafka_is_refused(kafka, kafka_table, spark):
    rate = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
    rows = rate.selectExpr("'t' as topic", "0 as partition", "value as offset")
    query = rows.writeStream.foreachBatch(sink_for(kafka, kafka_table)).start()
    with pytest.raises(StreamingQueryException, match="needs a query that reads Kafka"):
        query.awaitTermination(60)


def test_an_app_id_with_a_marker_of_batches_is_refused(kafka, kafka_table, topic, carry):
    kafka_table.append(kafka_table.schema.empty_table(), txn=sl.SetTransaction("ingest", 3))
    produce(kafka.bootstrap_servers, topic, "a")
    with pytest.raises(StreamingQueryException, match="markers of another kind"):
        carry()


def test_an_app_id_with_the_marker_of_a_table_is_refused(kafka, kafka_table, topic):
    marker = sl.SetTransaction("ingest/5a6b3e52-6d8e-4a57-9a58-4d3f39a3a7cf", 3)
    kafka_table.append(kafka_table.schema.empty_table(), txn=marker)
    with pytest.raises(sl.InvalidInputError, match="markers of another kind"):
        sink_for(kafka, kafka_table, topic).starting_offsets()


def test_markers_of_the_one_process_pipeline_are_the_same(kafka, kafka_table, topic, carry):
    produce(kafka.bootstrap_servers, topic, "abc")
    with_marker = sl.TableSink(kafka_table.url, app_id="ingest")
    with_marker.open()
    with_marker.committed()
    rows = pa.table({"value": [b"a"]}, schema=pa.schema([("value", pa.binary())]))
    with_marker.write(sl.Batch(data=rows, positions={f"{topic}/0": 0}))
    with_marker.close()
    carry()
    assert sorted(values(kafka_table)) == ["a", "b", "c"]


def test_starting_offsets_need_topics(kafka, kafka_table):
    with pytest.raises(sl.InvalidInputError, match="told of topics"):
        sink_for(kafka, kafka_table).starting_offsets()


def test_starting_offsets_of_a_missing_topic_are_refused(kafka, kafka_table):
    with pytest.raises(sl.TopicNotFoundError, match="no-such-topic"):
        sink_for(kafka, kafka_table, "no-such-topic").starting_offsets()
