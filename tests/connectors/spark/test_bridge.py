"""The bridge, on a real broker and a real Spark, through kill -9 and lost checkpoint folders."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException

import streamlake as sl
from kafka_broker import create_topic
from kafka_kit import add_partitions, produce, produce_at
from pyspark_streamlake import BridgeOptions, bridge_query
from spark_session import QUERY_TIMEOUT_S

PROGRAMS = Path(__file__).resolve().parents[2] / "spark_programs.py"
SENT = [f"{number:03}" for number in range(200)]


@contextmanager
def running(program, **options):
    """A program while the block runs; what is left of it, its JVM too, is killed in the end."""
    command = [sys.executable, str(PROGRAMS), program, json.dumps(options)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as child:
        try:
            yield child
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)


def wait_for(child, line):
    told = iter(child.stdout.readline, "")
    assert any(found.strip() == line for found in told), f"ended without {line!r}"


def options_for(kafka, url, topic, **more):
    client = {"bootstrap.servers": kafka.bootstrap_servers}
    return {"kafka": client, "topics": [topic], "url": str(url), "app_id": "bridge", **more}


@pytest.fixture
def carry(spark, kafka, topic, tmp_path, checkpoint):
    """Bridge what is there now, in this process's Spark."""

    def run(url=tmp_path / "table", **more):
        options = BridgeOptions(**options_for(kafka, url, topic, until_latest=True, **more))
        query = bridge_query(spark, options, checkpoint=str(checkpoint))
        try:
            assert query.awaitTermination(QUERY_TIMEOUT_S)
        finally:
            query.stop()
        return sl.Table.open(url)

    return run


def values(table):
    rows = table.snapshot().to_arrow().sort_by("offset")
    return [value.decode() for value in rows["value"].to_pylist()]


@pytest.mark.parametrize("keep_checkpoint", [True, False])
def test_kill_9_after_a_commit_neither_loses_nor_repeats(
    kafka, topic, tmp_path, carry, keep_checkpoint
):
    produce(kafka.bootstrap_servers, topic, SENT[:100])
    table, checkpoint = tmp_path / "table", tmp_path / "checkpoint"
    options = options_for(kafka, table, topic, checkpoint=str(checkpoint))
    with running("bridge", die=True, max_offsets_per_trigger=30, **options) as child:
        wait_for(child, "committed")
        assert child.wait(60) == -signal.SIGKILL
    assert len(values(sl.Table.open(table))) == 30
    if not keep_checkpoint:
        shutil.rmtree(checkpoint)
    produce(kafka.bootstrap_servers, topic, SENT[100:])
    assert values(carry()) == SENT


def test_batch_markers_survive_kill_9_after_a_commit(spark, tmp_path):
    url, arrivals = tmp_path / "table", tmp_path / "arrivals"
    arrivals.mkdir()
    for number in range(3):
        (arrivals / f"{number}.json").write_text(f'{{"id": {number}, "name": "x"}}\n')
    schema = spark.createDataFrame([], "id bigint, name string").toArrow().schema
    table = sl.Table.create(url, schema=schema)
    paths = {"arrivals": str(arrivals), "url": str(url), "checkpoint": str(tmp_path / "folder")}
    for die, exit_code in ((True, -signal.SIGKILL), (False, 0)):
        with running("batches", die=die, **paths) as child:
            assert child.wait(QUERY_TIMEOUT_S) == exit_code
    assert sorted(table.snapshot().to_arrow()["id"].to_pylist()) == [0, 1, 2]
    assert table.snapshot().txn_version("agg") == 2


def test_a_bridge_waits_for_its_broker_and_ends_in_good_order(own_kafka, tmp_path):
    create_topic(own_kafka.bootstrap_servers, "orders", partitions=2)
    own_kafka.kill()
    options = options_for(own_kafka, tmp_path / "table", "orders")
    with running("bridge", die=False, **options) as child:
        wait_for(child, "away")
        own_kafka.restart()
        produce(own_kafka.bootstrap_servers, "orders", SENT, partition=1)
        wait_for(child, "committed")
        child.send_signal(signal.SIGTERM)
        wait_for(child, "stopped")
        assert child.wait(60) == 0
    assert values(sl.Table.open(tmp_path / "table")) == SENT


def test_a_bridge_goes_on_where_another_folder_left_off(kafka, topic, carry, checkpoint):
    produce(kafka.bootstrap_servers, topic, SENT[:5])
    carry()
    shutil.rmtree(checkpoint)
    produce(kafka.bootstrap_servers, topic, SENT[5:9])
    assert values(carry()) == SENT[:9]


def test_a_folder_that_is_ahead_of_the_table_is_refused(kafka, topic, carry, tmp_path):
    produce(kafka.bootstrap_servers, topic, SENT[:5])
    carry()
    produce(kafka.bootstrap_servers, topic, SENT[5:9])
    with pytest.raises(StreamingQueryException, match="Kafka still holds 0"):
        carry(url=tmp_path / "another")
    assert values(sl.Table.open(tmp_path / "another")) == []


def test_a_bridge_that_starts_at_the_latest_notes_so_before_it_reads(
    kafka, topic, carry, checkpoint
):
    produce(kafka.bootstrap_servers, topic, SENT[:5])
    assert values(carry(start="latest")) == []
    shutil.rmtree(checkpoint)
    produce(kafka.bootstrap_servers, topic, SENT[5:9])
    assert values(carry(start="latest")) == SENT[5:9]


def test_a_bridge_from_the_latest_loses_nothing_of_partitions_that_were_empty_or_not_there(
    kafka, make_topic, carry, checkpoint
):
    topic, servers = make_topic(partitions=2), kafka.bootstrap_servers
    produce(servers, topic, SENT[:5])
    assert values(carry(topics=[topic], start="latest")) == []
    shutil.rmtree(checkpoint)
    produce(servers, topic, ["was empty"], partition=1)
    add_partitions(servers, topic, 3)
    produce(servers, topic, ["0", "was not there"], partition=2)
    found = values(carry(topics=[topic], start="latest"))
    assert sorted(found) == ["0", "was empty", "was not there"]


def test_a_bridge_from_the_latest_of_an_empty_topic_finds_it_anew(kafka, topic, carry, checkpoint):
    assert carry(start="latest").markers() == {}
    shutil.rmtree(checkpoint)
    produce(kafka.bootstrap_servers, topic, SENT[:5])
    table = carry(start="latest")
    assert values(table) == []
    assert table.markers()[f"bridge/{topic}/0"].version == 4


def test_a_timestamp_out_of_range_names_its_message(kafka, make_topic, carry):
    topic = make_topic(message_timestamp_after_max_ms=str(2**63 - 1))
    produce(kafka.bootstrap_servers, topic, ["a"])
    produce_at(kafka.bootstrap_servers, topic, "b", millis=1_790_000_000_000_000_000)
    with pytest.raises(StreamingQueryException, match=rf"where: {topic}/0, offset 1"):
        carry(topics=[topic])


def test_a_table_without_headers_gets_none(kafka, topic, carry, kafka_table):
    produce(kafka.bootstrap_servers, topic, SENT[:2])
    table = carry(url=kafka_table.log.store.root)
    assert "headers" not in table.schema.names
    assert values(table) == SENT[:2]


def test_a_bridge_of_a_missing_topic_is_refused_before_it_starts(kafka, tmp_path, spark):
    options = BridgeOptions(**options_for(kafka, tmp_path / "table", "no-such-topic"))
    with pytest.raises(sl.TopicNotFoundError, match="no-such-topic"):
        bridge_query(spark, options, checkpoint=str(tmp_path / "folder"))


def test_secrets_are_not_shown():
    options = BridgeOptions(kafka={"sasl.password": "hush"}, topics=("a",), url="u", app_id="b")
    assert "hush" not in repr(options)
