"""What the documentation's code talks to: a broker with its topics, and Spark."""

import contextlib

import pytest
from confluent_kafka import KafkaException

from kafka_broker import create_topic
from kafka_kit import produce
from spark_session import spark

__all__ = ["orders", "spark"]


@pytest.fixture(scope="session")
def orders(kafka):
    """A broker with the topics that the documents name; there are messages in ``orders``."""
    for name in ("orders", "decoded"):
        with contextlib.suppress(KafkaException):  # a broker of the user's may have it
            create_topic(kafka.bootstrap_servers, name, partitions=2)
    produce(kafka.bootstrap_servers, "orders", ["1", "2", "3"])
    return kafka.bootstrap_servers
