"""Options are those of Spark's Kafka source; a wrong one is told by name."""

from __future__ import annotations

import pytest

import streamlake as sl
from pyspark_streamlake_kafka.offsets import TopicPartition
from pyspark_streamlake_kafka.options import parse_options

KAFKA = {"kafka.bootstrap.servers": "127.0.0.1:9092"}
ORDERS = {**KAFKA, "subscribe": "orders"}


def test_names_are_taken_in_any_case_as_spark_hands_them_on():
    options = parse_options({**ORDERS, "startingoffsets": "Earliest", "MAXOFFSETSPERTRIGGER": "7"})
    assert options.starting == "earliest"
    assert options.max_offsets_per_trigger == 7


def test_kafka_options_go_to_librdkafka_without_their_prefix():
    options = parse_options({**ORDERS, "kafka.group.id": "mine"})
    assert options.client == {"bootstrap.servers": "127.0.0.1:9092", "group.id": "mine"}


def test_a_topic_list_may_have_spaces_and_repeats():
    options = parse_options({**KAFKA, "subscribe": "orders, refunds,orders,"})
    assert options.subscription.topics == ("orders", "refunds")


def test_an_assignment_names_partitions():
    options = parse_options({**KAFKA, "assign": '{"orders": [1, 0]}'})
    wanted = (TopicPartition("orders", 1), TopicPartition("orders", 0))
    assert options.subscription.assigned == wanted


def test_starting_offsets_may_be_json_with_the_edges_as_negative_numbers():
    options = parse_options(
        {**ORDERS, "startingOffsets": '{"orders": {"0": 23, "1": -2, "2": -1}}'}
    )
    assert options.starting is not None
    assert not isinstance(options.starting, str)
    assert [options.starting[TopicPartition("orders", n)] for n in range(3)] == [23, -2, -1]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"subscribe": "orders"}, "kafka.bootstrap.servers"),
        (KAFKA, "subscribe, subscribePattern, assign"),
        ({**ORDERS, "assign": '{"orders": [0]}'}, "subscribe, assign"),
        ({**ORDERS, "maxOffsetPerTrigger": "7"}, "'maxOffsetsPerTrigger'"),
        ({**ORDERS, "maxOffsetsPerTrigger": "0"}, "above 0"),
        ({**ORDERS, "failOnDataLoss": "no"}, "true or false"),
        ({**ORDERS, "startingOffsets": "first"}, "startingOffsets"),
        ({**ORDERS, "startingOffsets": '{"orders": {"0": -3}}'}, "-2 is earliest"),
        ({**ORDERS, "startingOffsets": '{"orders": {"zero": 1}}'}, "startingOffsets"),
        ({**KAFKA, "assign": "orders"}, "assign"),
        ({**KAFKA, "assign": "{}"}, "assign"),
        ({**KAFKA, "subscribe": " , "}, "subscribe"),
        ({**KAFKA, "subscribePattern": "("}, "subscribePattern"),
        ({**ORDERS, "kafka.auto.offset.reset": "latest"}, "kafka.auto.offset.reset"),
    ],
)
def test_a_wrong_option_is_refused_by_name(given, told):
    with pytest.raises(sl.InvalidInputError) as caught:
        parse_options(given)
    assert told in str(caught.value)


def test_a_stream_has_no_ending_offsets():
    with pytest.raises(sl.InvalidInputError, match="endingOffsets"):
        parse_options({**ORDERS, "endingOffsets": "latest"}).checked_for_stream()


def test_a_batch_neither_starts_at_the_latest_nor_ends_at_the_earliest():
    with pytest.raises(sl.InvalidInputError, match="startingOffsets"):
        parse_options({**ORDERS, "startingOffsets": "latest"}).checked_for_batch()
    with pytest.raises(sl.InvalidInputError, match="endingOffsets"):
        parse_options({**ORDERS, "endingOffsets": '{"orders": {"0": -2}}'}).checked_for_batch()


def test_passwords_are_not_shown():
    assert "hush" not in repr(parse_options({**ORDERS, "kafka.sasl.password": "hush"}))
