"""The broker that the tests run on is a real one."""

from __future__ import annotations

from confluent_kafka.admin import AdminClient

from kafka_broker import KafkaBroker, MakeTopic


def test_the_shared_broker_answers_and_shows_a_fresh_topic(
    kafka: KafkaBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic(partitions=3)
    metadata = AdminClient({"bootstrap.servers": kafka.bootstrap_servers}).list_topics(timeout=10)
    assert len(metadata.topics[topic].partitions) == 3
