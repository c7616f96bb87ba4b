"""Brokers that are away, at the start and in the middle, or that hang."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import closing

import pyarrow as pa
import pytest

import streamlake as sl
from kafka_broker import KafkaBroker, create_topic, free_ports
from kafka_kit import QUICK, drain, produce
from streamlake_kafka import KafkaSink, KafkaSource, ReadLimits

IMPATIENT = ReadLimits(poll_timeout_s=0.1, connect_timeout_s=0.5, max_outage_s=0.5)


@pytest.fixture
def outage_topic(own_kafka: KafkaBroker, topic_numbers: Iterator[int]) -> str:
    name = f"outage-{next(topic_numbers)}"
    create_topic(own_kafka.bootstrap_servers, name)
    return name


@pytest.fixture(scope="module")
def topic_numbers() -> Iterator[int]:
    return iter(range(1000))


class Told:
    """What the source tells, and what is done about it when it tells the first time."""

    def __init__(self, broker: KafkaBroker | None = None) -> None:
        self.broker = broker
        self.texts: list[str] = []

    def __call__(self, text: str) -> None:
        self.texts.append(text)
        if self.broker is not None and len(self.texts) == 1:
            self.broker.restart()


def test_no_broker_at_the_start_is_told_and_then_an_error_that_names_the_servers() -> None:
    servers = f"127.0.0.1:{free_ports(1)[0]}"
    told = Told()
    config = {"bootstrap.servers": servers}
    source = KafkaSource(config, topics=["orders"], limits=IMPATIENT, on_event=told)
    with pytest.raises(sl.SourceUnavailableError, match=servers) as away:
        source.open(dict)
    source.close()
    assert "Connection refused" in away.value.found
    assert servers in told.texts[0]
    assert "trying again" in told.texts[0]


def test_a_broker_that_comes_back_while_the_source_opens_is_waited_for(
    own_kafka: KafkaBroker, outage_topic: str
) -> None:
    servers = own_kafka.bootstrap_servers
    produce(servers, outage_topic, "abc")
    own_kafka.kill()
    told = Told(own_kafka)
    config = {"bootstrap.servers": servers}
    source = KafkaSource(config, topics=[outage_topic], stop="latest", limits=QUICK, on_event=told)
    assert drain(source).column("value") == [b"a", b"b", b"c"]
    assert "answers again" in told.texts[-1]


@pytest.mark.parametrize("group", [False, True])
def test_a_broker_killed_in_the_middle_is_waited_for_and_nothing_is_lost_or_repeated(
    own_kafka: KafkaBroker, outage_topic: str, *, group: bool
) -> None:
    servers = own_kafka.bootstrap_servers
    produce(servers, outage_topic, "abc")
    told = Told(own_kafka)
    source = KafkaSource(
        {"bootstrap.servers": servers, "group.id": outage_topic},
        topics=[outage_topic],
        group=group,
        limits=QUICK,
        on_event=told,
    )
    source.open(dict)
    rows: list[object] = []
    is_sent = False
    for batch in source.batches():
        rows += batch.data["value"].to_pylist() if batch is not None else []
        if len(rows) == 3 and not told.texts:
            own_kafka.kill()
        if any("answers again" in text for text in told.texts) and not is_sent:
            produce(servers, outage_topic, "def")
            is_sent = True
        if len(rows) >= 6:
            break
    source.close()
    assert rows == [b"a", b"b", b"c", b"d", b"e", b"f"]


def test_an_outage_beyond_its_bound_is_an_error(own_kafka: KafkaBroker, outage_topic: str) -> None:
    config = {"bootstrap.servers": own_kafka.bootstrap_servers}
    limits = ReadLimits(poll_timeout_s=0.1, max_outage_s=0.5, discovery_interval_s=0.2)
    source = KafkaSource(config, topics=[outage_topic], limits=limits)
    source.open(dict)
    own_kafka.kill()
    with pytest.raises(sl.SourceUnavailableError):
        list(source.batches())
    source.close()
    own_kafka.restart()


def test_a_broker_that_hangs_is_told_and_waited_for(
    own_kafka: KafkaBroker, outage_topic: str
) -> None:
    servers = own_kafka.bootstrap_servers
    told: list[str] = []

    def tell(text: str) -> None:
        told.append(text)
        own_kafka.resume()

    source = KafkaSource(
        {"bootstrap.servers": servers}, topics=[outage_topic], limits=QUICK, on_event=tell
    )
    source.open(dict)
    batches = source.batches()
    assert next(batches) is None
    own_kafka.pause()
    while not told:
        next(batches)
    produce(servers, outage_topic, "a")
    assert next(batch for batch in batches if batch is not None).data["value"][0].as_py() == b"a"
    source.close()


def test_closing_does_not_hang_where_the_broker_is_away(
    own_kafka: KafkaBroker, outage_topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    servers = own_kafka.bootstrap_servers
    produce(servers, outage_topic, "a")
    config = {
        "bootstrap.servers": servers,
        "group.id": outage_topic,
        "partition.assignment.strategy": "cooperative-sticky",
    }
    source = KafkaSource(config, topics=[outage_topic], group=True, limits=QUICK)
    source.open(dict)
    batch = next(batch for batch in source.batches() if batch is not None)
    own_kafka.kill()
    source.acknowledge(batch)
    with caplog.at_level(logging.WARNING):
        source.close()
    own_kafka.restart()
    assert "left to close by itself" in caplog.text


def one_row(position: int) -> sl.Batch:
    return sl.Batch(data=pa.table({"value": [f"{position}"]}), positions={"table": position})


def stored(servers: str, topic: str) -> list[object]:
    config = {"bootstrap.servers": servers}
    source = KafkaSource(config, topics=[topic], stop="latest", limits=QUICK)
    return drain(source).column("value")


def test_a_sink_waits_for_a_broker_that_hangs(own_kafka: KafkaBroker, outage_topic: str) -> None:
    servers = own_kafka.bootstrap_servers
    config = {"bootstrap.servers": servers}
    with closing(KafkaSink(config, topic=outage_topic, app_id="out", value="value")) as sink:
        sink.open()
        sink.write(one_row(1))
        own_kafka.pause()
        threading.Timer(1, own_kafka.resume).start()
        sink.write(one_row(2))
    assert stored(servers, outage_topic) == [b"1", b"2"]


def test_an_outcome_that_stays_unknown_is_an_error_and_is_learnt_by_asking_again(
    own_kafka: KafkaBroker, outage_topic: str
) -> None:
    servers = own_kafka.bootstrap_servers
    sink = KafkaSink(
        {"bootstrap.servers": servers},
        topic=outage_topic,
        app_id="out",
        value="value",
        commit_timeout_s=0.5,
    )
    with closing(sink):
        sink.open()
        sink.write(one_row(1))
        own_kafka.pause()
        with pytest.raises(sl.CommitUnknownError, match="did not tell in time"):
            sink.write(one_row(2))
        own_kafka.resume()
        position = sink.committed()["table"]
        assert stored(servers, outage_topic) == [b"1", b"2"][:position]
        sink.write(one_row(2))
    assert stored(servers, outage_topic) == [b"1", b"2"]
