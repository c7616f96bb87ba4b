import signal
import subprocess

import msgspec
import pytest
from confluent_kafka import Producer

import streamlake as sl
from kafka_broker import create_topic
from programs import running
from streamlake_kafka import kafka_schema
from traffic import Traffic, assert_once_each


@pytest.fixture
def local(kafka, topic, tmp_path):
    """The arguments of a bridge from ``topic`` in one process."""
    where = ("--bootstrap-servers", kafka.bootstrap_servers, "--topic", topic)
    return ("bridge", *where, "--table", tmp_path / "t", "--app-id", "ingest", "--engine", "local")


@pytest.fixture
def send(kafka, topic):
    """Put messages into the topic."""

    def produce(*values):
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
        for value in values:
            producer.produce(topic, value=value)
        assert producer.flush(30) == 0

    return produce


def values(path):
    return sl.Table.open(path).snapshot().to_arrow()["value"].to_pylist()


def test_carries_what_is_there_into_a_new_table_and_ends(cli, local, send, tmp_path):
    send("one", "two")
    done = cli(*local, "--until", "latest", "--json")
    assert values(tmp_path / "t") == [b"one", b"two"]
    last = [line for line in done.json if line["event"] == "progress"][-1]
    assert (last["rows"], last["commits"], last["version"]) == (2, 1, 1)


def test_goes_on_where_the_table_says(cli, local, send, tmp_path):
    for value in ("one", "two"):
        send(value)
        cli(*local, "--until", "latest")
    assert values(tmp_path / "t") == [b"one", b"two"]


def test_a_table_without_a_column_for_headers_is_bridged_without_them(cli, local, send, tmp_path):
    sl.Table.create(tmp_path / "t", schema=kafka_schema(include_headers=False))
    send("one")
    cli(*local, "--until", "latest")
    assert values(tmp_path / "t") == [b"one"]


def test_begins_at_the_latest_on_request(cli, local, send, tmp_path):
    send("before")
    cli(*local, "--until", "latest", "--start", "latest")
    send("after")
    cli(*local, "--until", "latest")
    assert values(tmp_path / "t") == [b"after"]


def test_ends_in_good_order_when_told_to(kafka, topic, local, tmp_path, cli):
    with (
        Traffic(kafka.bootstrap_servers, topic, rate=500) as traffic,
        running(*local, "--json", stderr=subprocess.PIPE) as process,
    ):
        while msgspec.json.decode(process.stdout.readline()).get("rows", 0) == 0:
            pass
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0, process.stderr.read()
    cli(*local, "--until", "latest")
    assert_once_each(sl.Table.open(tmp_path / "t"), traffic)


def test_tells_how_far_the_table_is_behind(local, send):
    send("one", "two")
    with running(*local, "--json") as process:
        lines = map(msgspec.json.decode, process.stdout)
        assert next(line for line in lines if line.get("behind") == 0)["rows"] == 2


def test_a_topic_that_does_not_exist_is_told(cli, kafka, tmp_path):
    where = ("--bootstrap-servers", kafka.bootstrap_servers, "--topic", "no-such-topic")
    done = cli(
        "bridge", *where, "--table", tmp_path / "t", "--app-id", "a", "--engine", "local", code=1
    )
    assert "no-such-topic" in done.err
    assert "do:" in done.err


def test_a_broker_that_is_away_is_told_of_and_waited_for(own_kafka, tmp_path):
    create_topic(own_kafka.bootstrap_servers, "orders")
    own_kafka.kill()
    where = ("--bootstrap-servers", own_kafka.bootstrap_servers, "--topic", "orders")
    arguments = ("bridge", *where, "--table", tmp_path / "t", "--app-id", "a", "--engine", "local")
    with running(*arguments, "--until", "latest", stderr=subprocess.PIPE) as process:
        assert b"does not answer, trying again" in process.stderr.readline()
        own_kafka.restart()
        assert b"answers again" in process.stderr.read()
        assert process.wait() == 0
