"""What tests of every floor share: the real broker, and an environment that stays local."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
os.environ.setdefault("TZ", "UTC")

from kafka_broker import (
    ContainerBroker,
    ExternalBroker,
    KafkaBroker,
    MakeTopic,
    create_topic,
    shared_broker,
)
from kafka_jars import BrokerError, JavaMissingError

# How fast examples come depends on what else the machine does: no test fails by the clock.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


ON_SPARK = (
    "acceptance/test_bridge",
    "acceptance/test_demo",
    "connectors/spark/",
    "examples/",
    "project/test_docs",
)
"""Tests that run on Spark: they take the longest, and one Spark at a time is enough."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Where several processes share the tests, say which belong together.

    Those on Spark go to one process, and begin at once; of the others each file stays whole, for
    what its tests share is made once.
    """
    here = Path(__file__).parent

    def group(item):
        path = item.path.relative_to(here).as_posix()
        return "spark" if path.startswith(ON_SPARK) else path

    for item in items:
        item.add_marker(pytest.mark.xdist_group(group(item)))
    items.sort(key=lambda item: group(item) != "spark")


def give_up(error: BrokerError) -> None:
    """Fail with the reason; skip only where Java is missing and nobody insists on a broker."""
    insist = os.environ.get("CI") or os.environ.get("STREAMLAKE_REQUIRE_KAFKA")
    if isinstance(error, JavaMissingError) and not insist:
        pytest.skip(f"no Kafka broker: {error}")
    pytest.fail(f"no Kafka broker: {error}", pytrace=False)


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaBroker | ContainerBroker | ExternalBroker]:
    """The broker that the tests share (one per test process), each on topics of its own."""
    try:
        broker = shared_broker()
    except BrokerError as error:
        give_up(error)
        raise
    yield broker
    broker.stop()


@pytest.fixture(scope="module")
def own_kafka() -> Iterator[KafkaBroker]:
    """A broker of the module's own, to be killed, restarted or paused; leave it running."""
    broker = KafkaBroker()
    try:
        broker.start()
    except BrokerError as error:
        give_up(error)
        raise
    yield broker
    broker.stop()


@pytest.fixture(scope="session")
def topic_names() -> Iterator[str]:
    """Topic names that no other test run has used on this broker."""
    run = os.urandom(4).hex()
    return (f"topic-{run}-{number}" for number in count())


@pytest.fixture
def make_topic(kafka: KafkaBroker, topic_names: Iterator[str]) -> MakeTopic:
    """Create a fresh topic on the shared broker: ``make_topic(partitions=1, **config) -> name``."""

    def make(partitions: int = 1, **config: str) -> str:
        name = next(topic_names)
        create_topic(kafka.bootstrap_servers, name, partitions=partitions, **config)
        return name

    return make


@pytest.fixture
def topic(make_topic: MakeTopic) -> str:
    """A fresh topic of one partition."""
    return make_topic()
