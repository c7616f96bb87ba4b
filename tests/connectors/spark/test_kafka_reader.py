"""The stream reader on a real broker: what the driver plans, and what a task reads."""

from __future__ import annotations

import json
import pickle

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

import streamlake as sl
from kafka_broker import create_topic
from kafka_kit import add_partitions, delete_records, produce, produce_in_transaction
from pyspark_streamlake_kafka import cluster, stream
from pyspark_streamlake_kafka.options import parse_options
from streamlake.testing import ManualClock

ALL = ReadAllAvailable()


@pytest.fixture
def reader(kafka):
    """Make a reader of topics: ``reader("orders", startingOffsets="earliest")``."""
    made = []

    def make(topic, **options):
        given = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "subscribe": topic, **options}
        made.append(stream.KafkaStreamReader(parse_options(given)))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def values(reader, start, end):
    tasks = reader.partitions(start, end)
    batches = [batch for task in tasks for batch in reader.read(task)]
    return [value.decode() for batch in batches for value in batch.column("value").to_pylist()]


def test_a_new_query_starts_at_the_latest_offset_by_default(kafka, topic, reader):
    produce(kafka.bootstrap_servers, topic, ["a", "b"])
    assert reader(topic).initialOffset() == {topic: {"0": 2}}


def test_starting_offsets_may_name_an_offset_or_an_edge_of_each_partition(
    kafka, make_topic, reader
):
    topic = make_topic(partitions=3)
    for partition in range(3):
        produce(kafka.bootstrap_servers, topic, ["a", "b"], partition=partition)
    named = json.dumps({topic: {"0": 1, "1": -1, "2": -2}})
    assert reader(topic, startingOffsets=named).initialOffset() == {topic: {"0": 1, "1": 2, "2": 0}}


def test_starting_offsets_that_leave_out_a_partition_are_refused(make_topic, reader):
    topic = make_topic(partitions=2)
    with pytest.raises(sl.InvalidInputError, match="every partition") as caught:
        reader(topic, startingOffsets=json.dumps({topic: {"0": 0, "7": 0}})).initialOffset()
    assert f"missing: {topic}/1; not read: {topic}/7" in caught.value.found


def test_starting_offsets_past_the_end_are_out_of_range(topic, reader):
    with pytest.raises(sl.OffsetOutOfRangeError, match="Offset 5 of"):
        reader(topic, startingOffsets=json.dumps({topic: {"0": 5}})).initialOffset()


def test_a_task_gives_the_rows_of_its_range_and_no_other(kafka, topic, reader):
    produce(kafka.bootstrap_servers, topic, "abcdef")
    assert values(reader(topic), {topic: {"0": 2}}, {topic: {"0": 5}}) == list("cde")


def test_one_task_reads_several_partitions_each_in_order(kafka, make_topic, reader):
    topic = make_topic(partitions=3)
    for partition in range(3):
        sent = [f"{partition}-{number:03}" for number in range(100)]
        produce(kafka.bootstrap_servers, topic, sent, partition=partition)
    start, end = ({topic: {str(p): edge for p in range(3)}} for edge in (10, 90))
    found = values(reader(topic), start, end)
    assert len(reader(topic).partitions(start, end)) == 1
    assert sorted(found) == [f"{p}-{n:03}" for p in range(3) for n in range(10, 90)]
    assert all(
        [v for v in found if v[0] == p] == sorted(v for v in found if v[0] == p) for p in "012"
    )


def test_the_same_worker_reads_again_what_it_has_read(kafka, topic, reader):
    produce(kafka.bootstrap_servers, topic, "abc")
    one = reader(topic)
    ends = {topic: {"0": 0}}, {topic: {"0": 3}}
    assert values(one, *ends) == values(one, *ends) == list("abc")


def test_a_reader_pickles_as_spark_sends_it_to_its_tasks(kafka, topic, reader):
    produce(kafka.bootstrap_servers, topic, "abc")
    one = reader(topic)
    one.initialOffset()
    copy = pickle.loads(pickle.dumps(one))  # noqa: S301 (our own)
    assert values(copy, {topic: {"0": 0}}, {topic: {"0": 3}}) == list("abc")


def test_ends_of_transactions_and_aborted_messages_are_passed_over(kafka, topic, reader):
    servers = kafka.bootstrap_servers
    produce_in_transaction(servers, topic, ["a", "b"])
    produce_in_transaction(servers, topic, ["x", "y"], commit=False)
    one = reader(topic, startingOffsets="earliest")
    end = one.latestOffset(one.initialOffset(), ALL)
    assert end == {topic: {"0": 6}}
    assert values(one, {topic: {"0": 0}}, end) == ["a", "b"]
    assert values(one, {topic: {"0": 2}}, end) == []


def test_a_batch_is_limited_and_the_rest_follows(kafka, topic, reader):
    produce(kafka.bootstrap_servers, topic, "abcdef")
    one = reader(topic, startingOffsets="earliest", maxOffsetsPerTrigger="4")
    assert one.getDefaultReadLimit() == ReadMaxRows(4)
    first = one.latestOffset(one.initialOffset(), one.getDefaultReadLimit())
    assert first == {topic: {"0": 4}}
    assert one.latestOffset(first, one.getDefaultReadLimit()) == {topic: {"0": 6}}


def test_available_now_ends_at_what_was_there_when_it_was_prepared(kafka, topic, reader):
    produce(kafka.bootstrap_servers, topic, "abc")
    one = reader(topic, startingOffsets="earliest")
    one.prepareForTriggerAvailableNow()
    produce(kafka.bootstrap_servers, topic, "def")
    end = one.latestOffset(one.initialOffset(), ALL)
    assert end == {topic: {"0": 3}}
    assert one.latestOffset(end, ALL) == end


def test_a_partition_that_is_added_is_soon_read_from_its_beginning(kafka, topic):
    clock = ManualClock()
    servers = kafka.bootstrap_servers
    given = {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest"}
    one = stream.KafkaStreamReader(parse_options(given), clock=clock)
    start = one.initialOffset()
    assert one.latestOffset(start, ALL) == start == {topic: {"0": 0}}
    add_partitions(servers, topic, 2)
    produce(servers, topic, ["new"], partition=1)
    assert one.latestOffset(start, ALL) == start
    clock.advance(cluster.DISCOVERY_INTERVAL_S)
    end = one.latestOffset(start, ALL)
    assert end == {topic: {"0": 0, "1": 1}}
    assert values(one, start, end) == ["new"]
    one.stop()


def test_offsets_that_kafka_has_removed_are_told(kafka, topic, reader):
    produce(kafka.bootstrap_servers, topic, "abcdef")
    delete_records(kafka.bootstrap_servers, topic, 4)
    with pytest.raises(sl.OffsetOutOfRangeError, match="not in Kafka any more") as caught:
        values(reader(topic), {topic: {"0": 1}}, {topic: {"0": 6}})
    assert caught.value.found == "Kafka holds [4, 6)"


def test_without_fail_on_data_loss_what_is_left_is_read(kafka, topic, reader):
    produce(kafka.bootstrap_servers, topic, "abcdef")
    delete_records(kafka.bootstrap_servers, topic, 4)
    lenient = reader(topic, failOnDataLoss="false")
    assert values(lenient, {topic: {"0": 1}}, {topic: {"0": 6}}) == ["e", "f"]
    assert values(lenient, {topic: {"0": 1}}, {topic: {"0": 3}}) == []


def test_a_topic_that_was_made_anew_is_told(kafka, topic, reader):
    produce(kafka.bootstrap_servers, topic, "abc")
    with pytest.raises(sl.OffsetOutOfRangeError, match="holds less now"):
        reader(topic).latestOffset({topic: {"0": 9}}, ALL)


def test_without_fail_on_data_loss_a_topic_made_anew_is_read_from_where_it_is(kafka, topic, reader):
    produce(kafka.bootstrap_servers, topic, "abc")
    lenient = reader(topic, failOnDataLoss="false")
    assert lenient.latestOffset({topic: {"0": 9}}, ALL) == {topic: {"0": 3}}
    assert lenient.latestOffset({topic: {"0": 9}}, ReadMaxRows(1)) == {topic: {"0": 3}}
    assert values(lenient, {topic: {"0": 9}}, {topic: {"0": 3}}) == []


def test_a_partition_that_is_gone_is_told(topic, reader):
    with pytest.raises(sl.OffsetOutOfRangeError, match="are gone") as caught:
        reader(topic).latestOffset({topic: {"0": 0, "1": 4}}, ALL)
    assert caught.value.found == f"{topic}/1"


def test_a_missing_topic_is_told(reader):
    with pytest.raises(sl.TopicNotFoundError, match="no-such-topic"):
        reader("no-such-topic").initialOffset()


def test_an_assignment_of_a_missing_partition_is_told(kafka, topic):
    given = {
        "kafka.bootstrap.servers": kafka.bootstrap_servers,
        "assign": json.dumps({topic: [0, 5]}),
    }
    with pytest.raises(sl.TopicNotFoundError) as caught:
        stream.KafkaStreamReader(parse_options(given)).initialOffset()
    assert caught.value.found == f"{topic}/5"


def test_a_pattern_reads_the_topics_whose_whole_name_matches(kafka, make_topic):
    one, other = make_topic(), make_topic()
    given = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "subscribePattern": f"{one}|x"}
    assert stream.KafkaStreamReader(parse_options(given)).initialOffset() == {one: {"0": 0}}
    assert other != one


def test_brokers_that_are_away_are_waited_for_and_then_told(free_port_servers):
    given = {
        "kafka.bootstrap.servers": free_port_servers,
        "subscribe": "orders",
        "kafkaConsumer.pollTimeoutMs": "400",
    }
    one = stream.KafkaStreamReader(parse_options(given))
    with pytest.raises(sl.SourceUnavailableError, match="does not tell"):
        one.initialOffset()
    start = {"orders": {"0": 3}}
    assert one.latestOffset(start, ALL) == start
    with pytest.raises(sl.SourceUnavailableError):
        all(one.latestOffset(start, ALL) == start for _ in range(100))


def test_silence_is_not_taken_for_the_end_of_what_was_there(own_kafka):
    create_topic(own_kafka.bootstrap_servers, "orders")
    produce(own_kafka.bootstrap_servers, "orders", "abc")
    given = {
        "kafka.bootstrap.servers": own_kafka.bootstrap_servers,
        "subscribe": "orders",
        "kafkaConsumer.pollTimeoutMs": "1000",
    }
    one = stream.KafkaStreamReader(parse_options(given))
    one.prepareForTriggerAvailableNow()
    own_kafka.kill()
    with pytest.raises(sl.SourceUnavailableError):
        one.latestOffset({"orders": {"0": 1}}, ALL)


def test_a_task_that_gets_nothing_says_what_it_waited_for(free_port_servers, topic):
    given = {
        "kafka.bootstrap.servers": free_port_servers,
        "subscribe": topic,
        "kafkaConsumer.pollTimeoutMs": "300",
    }
    one = stream.KafkaStreamReader(parse_options(given))
    task = one.partitions({topic: {"0": 0}}, {topic: {"0": 2}})[0]
    with pytest.raises(sl.SourceUnavailableError, match=r"nothing for 0\.3 s") as caught:
        list(one.read(task))
    assert f"{topic}/0 [0, 2)" in caught.value.where


def test_an_unknown_setting_of_librdkafka_is_refused_by_name(topic, reader):
    with pytest.raises(sl.InvalidInputError) as caught:
        reader(topic, **{"kafka.no.such.setting": "5"}).initialOffset()
    assert "no.such.setting" in caught.value.found


def test_headers_come_when_they_are_asked_for(kafka, topic, reader):
    produce(kafka.bootstrap_servers, topic, "a")
    one = reader(topic, includeHeaders="true")
    task = one.partitions({topic: {"0": 0}}, {topic: {"0": 1}})[0]
    (batch,) = one.read(task)
    assert batch.column("headers").type == pa.list_(
        pa.struct([("key", pa.string()), ("value", pa.binary())])
    )


def test_newest_offsets_are_reported_without_asking_again(topic, reader):
    one = reader(topic, startingOffsets="earliest")
    assert one.reportLatestOffset() is None
    one.latestOffset(one.initialOffset(), ALL)
    assert one.reportLatestOffset() == {topic: {"0": 0}}
