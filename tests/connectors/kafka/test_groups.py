"""Two members of a consumer group write one table; one dies, or stands still and wakes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

import streamlake as sl
from kafka_broker import KafkaBroker, MakeTopic
from kafka_kit import QUICK, Kept, drain, produce
from streamlake_kafka import KafkaSource, kafka_schema

Config = dict[str, str | int]
PARTITIONS = 4
MEMBER = Path(__file__).with_name("group_member.py")
RANGE: Config = {"session.timeout.ms": 3000, "heartbeat.interval.ms": 500}
COOPERATIVE: Config = {**RANGE, "partition.assignment.strategy": "cooperative-sticky"}
NEXT_GENERATION: Config = {"group.protocol": "consumer"}


class Run:
    """A topic that is written to, a table, and the members between them."""

    def __init__(self, servers: str, topic: str, url: Path, settings: Config) -> None:
        self.config = {"bootstrap.servers": servers, "group.id": f"{topic}-group", **settings}
        self.topic = topic
        self.servers = servers
        self.table = sl.Table.create(str(url), schema=kafka_schema())
        self.members: list[subprocess.Popen[bytes]] = []
        self.sent = 0

    def start_member(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, str(MEMBER), json.dumps(self.config), self.topic, self.table.url]
        roots = os.pathsep.join(path for path in sys.path if path)
        member = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": roots})
        self.members.append(member)
        return member

    def shares(self) -> list[int]:
        """How many partitions each member of the group has."""
        group = str(self.config["group.id"])
        admin = AdminClient({"bootstrap.servers": self.servers})
        try:
            members = admin.describe_consumer_groups([group])[group].result(30).members
        except KafkaException:  # the coordinator is not there yet
            return []
        return sorted(len(member.assignment.topic_partitions) for member in members)

    def send(self, count: int) -> None:
        """The same number of messages to each partition."""
        values = [str(self.sent + i) for i in range(count)]
        for partition in range(PARTITIONS):
            produce(self.servers, self.topic, values, partition=partition)
        self.sent += count

    def stored(self) -> dict[int, int]:
        """By partition, how many messages the table accounts for."""
        markers = self.table.markers()
        names = {number: f"ingest/{self.topic}/{number}" for number in range(PARTITIONS)}
        return {n: markers[name].version + 1 if name in markers else 0 for n, name in names.items()}

    def send_until(self, is_enough: Callable[[dict[int, int]], bool], *, seconds: float) -> None:
        """Go on sending until the table accounts for enough."""
        deadline = time.monotonic() + seconds
        while not is_enough(self.stored()):
            assert all(member.poll() is None for member in self.members)
            assert time.monotonic() < deadline, f"sent {self.sent}, stored {self.stored()}"
            self.send(50)

    def wait_for_all(self, *, seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while any(count < self.sent for count in self.stored().values()):
            assert time.monotonic() < deadline, f"sent {self.sent}, stored {self.stored()}"
            time.sleep(0.1)

    def assert_nothing_lost_or_repeated(self) -> None:
        rows = self.table.snapshot().to_arrow(columns=["partition", "offset", "value"]).to_pylist()
        found = sorted((row["partition"], row["offset"], row["value"]) for row in rows)
        wanted = [(p, i, b"%d" % i) for p in range(PARTITIONS) for i in range(self.sent)]
        assert found == wanted


@pytest.fixture
def start_run(
    kafka: KafkaBroker, make_topic: MakeTopic, tmp_path: Path
) -> Iterator[Callable[[Config], Run]]:
    runs: list[Run] = []

    def start(settings: Config) -> Run:
        topic = make_topic(partitions=PARTITIONS)
        run = Run(kafka.bootstrap_servers, topic, tmp_path / "table", settings)
        runs.append(run)
        run.start_member()
        run.start_member()
        run.send_until(lambda _: run.shares() == [2, 2], seconds=60)
        run.send_until(lambda stored: min(stored.values()) > 0, seconds=60)
        return run

    yield start
    for run in runs:
        for member in run.members:
            member.kill()
            member.wait()


@pytest.mark.parametrize("settings", [RANGE, COOPERATIVE, NEXT_GENERATION])
def test_a_member_killed_at_any_moment_loses_and_repeats_nothing(
    start_run: Callable[[Config], Run], settings: Config
) -> None:
    run = start_run(settings)
    members = list(run.members)
    run.members.pop().kill()
    members[1].wait()
    before = run.stored()
    run.send_until(lambda now: all(now[p] > before[p] + 100 for p in now), seconds=60)
    run.start_member()
    run.send(500)
    run.wait_for_all()
    run.assert_nothing_lost_or_repeated()


def test_a_member_that_stood_still_and_wakes_up_is_fenced(
    start_run: Callable[[Config], Run],
) -> None:
    run = start_run(COOPERATIVE)
    before = run.stored()
    run.members[0].send_signal(signal.SIGSTOP)
    run.send_until(lambda now: all(now[p] > before[p] + 100 for p in now), seconds=60)
    run.members[0].send_signal(signal.SIGCONT)
    run.send(500)
    run.wait_for_all()
    run.assert_nothing_lost_or_repeated()


@pytest.mark.parametrize("settings", [RANGE, COOPERATIVE, NEXT_GENERATION])
def test_members_of_a_bounded_run_end_each_with_its_share(
    kafka: KafkaBroker, make_topic: MakeTopic, settings: Config
) -> None:
    topic = make_topic(partitions=PARTITIONS)
    servers = kafka.bootstrap_servers
    for partition in range(PARTITIONS):
        produce(servers, topic, [f"{partition}-{i}" for i in range(100)], partition=partition)
    config = {"bootstrap.servers": servers, "group.id": topic, **settings}
    kept = Kept()
    for members in range(2):
        source = KafkaSource(config, topics=[topic], group=True, stop="latest", limits=QUICK)
        kept.batches += drain(source, kept.positions).batches
        kept.positions |= {name: at for b in kept.batches for name, at in b.positions.items()}
        assert kept.rows.num_rows == 400, f"after member {members}"


def test_a_member_that_starts_at_the_latest_notes_it_for_the_others_too(
    kafka: KafkaBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic(partitions=PARTITIONS)
    servers = kafka.bootstrap_servers
    for partition in range(PARTITIONS - 1):
        produce(servers, topic, "old", partition=partition)
    config = {"bootstrap.servers": servers, "group.id": topic, **RANGE}
    members = [
        KafkaSource(config, topics=[topic], group=True, start="latest", limits=QUICK)
        for _ in range(2)
    ]
    for member in members:
        member.open(dict)
    running = [member.batches() for member in members]
    deadline = time.monotonic() + 60
    first: list[set[str]] = [set(), set()]
    while not all(first):
        assert time.monotonic() < deadline
        for number, batches in enumerate(running):
            batch = next(batches)
            first[number] = first[number] or set(batch.positions if batch is not None else ())
    for member in members:
        member.close()
    assert first == [{f"{topic}/{partition}" for partition in range(PARTITIONS - 1)}] * 2


def test_a_rebalance_in_the_middle_of_a_batch_repeats_and_loses_nothing(
    kafka: KafkaBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic(partitions=PARTITIONS)
    servers = kafka.bootstrap_servers
    config = {"bootstrap.servers": servers, "group.id": topic, **RANGE}
    kept = Kept()
    members = [KafkaSource(config, topics=[topic], group=True, limits=QUICK) for _ in range(3)]
    running = []
    for number, member in enumerate(members):
        member.open(lambda: dict(kept.positions))
        running.append(member.batches())
        for partition in range(PARTITIONS):
            produce(servers, topic, [f"{number}"] * 200, partition=partition)
        while sum(kept.positions.values()) < PARTITIONS * (200 * (number + 1) - 1):
            for batches in running:
                batch = next(batches)
                if batch is not None:
                    kept.keep(batch)
    for member in members:
        member.close()
    found = sorted(zip(kept.column("partition"), kept.column("offset"), strict=True))
    assert found == [(p, i) for p in range(PARTITIONS) for i in range(600)]
