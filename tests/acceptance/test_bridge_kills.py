import random
import shutil
import subprocess
import time

import pytest

import streamlake as sl
from programs import kill, running, streamlake
from streamlake.cli.engine import missing_for_spark
from streamlake_kafka import kafka_schema
from traffic import Traffic, assert_once_each

PROGRESS_TIMEOUT_S = 90


@pytest.fixture
def table(tmp_path):
    return sl.Table.create(tmp_path / "table", schema=kafka_schema())


def bridge(kafka, topic, table, *more):
    where = ("--bootstrap-servers", kafka.bootstrap_servers, "--topic", topic)
    return ("bridge", *where, "--table", table.url, "--app-id", "ingest", *more)


def wait_for_commits(table, count):
    """Wait until the table is ``count`` versions further."""
    deadline = time.monotonic() + PROGRESS_TIMEOUT_S
    target = table.snapshot().version + count
    while table.snapshot().version < target:
        assert time.monotonic() < deadline, "the bridge makes no progress"
        time.sleep(0.002)


def live_on(process, seconds):
    """Let a process run for a while, so that its end comes at any moment of its work."""
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(seconds)


def test_killed_at_any_moment_the_bridge_loses_and_repeats_nothing(kafka, make_topic, table):
    topic = make_topic(partitions=3)
    chance = random.Random(7)
    arguments = bridge(kafka, topic, table, "--engine", "local", "--linger-ms", 20)
    with Traffic(kafka.bootstrap_servers, topic) as traffic:
        for _ in range(8):
            with running(*arguments) as process:
                wait_for_commits(table, chance.randint(1, 4))
                live_on(process, chance.uniform(0.0, 0.05))
                kill(process)
    streamlake(*arguments, "--until", "latest")
    assert_once_each(table, traffic)


@pytest.mark.skipif(bool(missing_for_spark()), reason=missing_for_spark())
def test_with_spark_neither_kills_nor_a_lost_checkpoint_lose_or_repeat(
    kafka, make_topic, table, tmp_path
):
    topic = make_topic(partitions=2)
    checkpoint = tmp_path / "checkpoint"
    spark = (
        "--engine",
        "spark",
        "--checkpoint",
        checkpoint,
        "--spark-conf",
        "spark.master=local[2]",
    )
    arguments = bridge(kafka, topic, table, *spark)
    with Traffic(kafka.bootstrap_servers, topic, rate=500) as traffic:
        with running(*arguments) as process:
            wait_for_commits(table, 3)
            kill(process)
        shutil.rmtree(checkpoint)
        with running(*arguments) as process:
            wait_for_commits(table, 2)
            kill(process)
    streamlake(*arguments, "--until", "latest")
    assert_once_each(table, traffic)


@pytest.mark.skipif(bool(missing_for_spark()), reason=missing_for_spark())
def test_a_bridge_moves_from_one_engine_to_the_other(kafka, topic, table):
    local = bridge(kafka, topic, table, "--engine", "local")
    with Traffic(kafka.bootstrap_servers, topic, rate=500) as traffic, running(*local):
        wait_for_commits(table, 2)
    streamlake(*bridge(kafka, topic, table, "--engine", "spark", "--until", "latest"))
    streamlake(*local, "--until", "latest")
    assert_once_each(table, traffic)
