"""KafkaSink on a real broker: what it sends, and that a batch is there once or not at all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import streamlake as sl
from kafka_broker import KafkaBroker, MakeTopic, create_topic
from kafka_kit import QUICK, Kept, drain, produce
from streamlake_kafka import KafkaSink, KafkaSource


@pytest.fixture
def servers(kafka: KafkaBroker) -> str:
    return kafka.bootstrap_servers


def sink_of(servers: str, topic: str, *, app_id: str | None = "out") -> KafkaSink:
    return KafkaSink({"bootstrap.servers": servers}, topic=topic, app_id=app_id, value="value")


def batch(*values: bytes | None, **positions: int) -> sl.Batch:
    data = pa.table({"value": pa.array(values, pa.binary())})
    return sl.Batch(data=data, positions=positions)


def sent(servers: str, topic: str) -> Kept:
    source = KafkaSource(
        {"bootstrap.servers": servers}, topics=[topic], stop="latest", limits=QUICK
    )
    return drain(source)


def test_rows_and_positions_are_stored_together(servers: str, topic: str) -> None:
    with closing(sink_of(servers, topic)) as sink:
        sink.open()
        assert sink.committed() == {}
        sink.write(batch(b"a", b"b", table=5))
        sink.write(batch(b"c", None, table=6, other=0))
        assert sink.committed() == {"table": 6, "other": 0}
    with closing(sink_of(servers, topic)) as again:
        again.open()
        assert again.committed() == {"table": 6, "other": 0}
    assert sent(servers, topic).column("value") == [b"a", b"b", b"c", None]


def test_positions_move_without_rows(servers: str, topic: str) -> None:
    with closing(sink_of(servers, topic)) as sink:
        sink.open()
        sink.write(batch(table=5))
    with closing(sink_of(servers, topic)) as again:
        again.open()
        assert again.committed() == {"table": 5}


def test_a_batch_that_is_stored_already_is_not_sent_again(servers: str, topic: str) -> None:
    with closing(sink_of(servers, topic)) as sink:
        sink.open()
        sink.write(batch(b"a", table=5))
        sink.write(batch(b"a", table=5))
        with pytest.raises(sl.PartlyCommittedError):
            sink.write(batch(b"a", table=5, other=1))
    assert sent(servers, topic).column("value") == [b"a"]


def test_the_sink_opened_last_fences_the_one_before(servers: str, topic: str) -> None:
    with closing(sink_of(servers, topic)) as zombie, closing(sink_of(servers, topic)) as owner:
        zombie.open()
        zombie.write(batch(b"a", table=1))
        owner.open()
        for _ in range(2):
            with pytest.raises(sl.FencedError, match="under the app_id"):
                zombie.write(batch(b"stale", table=2))
        with pytest.raises(sl.FencedError):
            zombie.committed()
        owner.write(batch(b"b", table=2))
    assert sent(servers, topic).column("value") == [b"a", b"b"]


def test_app_ids_do_not_disturb_each_other(servers: str, topic: str) -> None:
    with (
        closing(sink_of(servers, topic, app_id="one")) as one,
        closing(sink_of(servers, topic, app_id="two")) as two,
    ):
        one.open()
        two.open()
        one.write(batch(b"a", table=1))
        two.write(batch(b"b", table=9))
        assert (one.committed(), two.committed()) == ({"table": 1}, {"table": 9})


def test_a_message_too_large_is_refused_and_nothing_of_its_batch_is_there(
    servers: str, topic: str
) -> None:
    with closing(sink_of(servers, topic)) as sink:
        sink.open()
        with pytest.raises(sl.InvalidInputError, match=r"message.max.bytes"):
            sink.write(batch(b"a", b"x" * 2**21, table=1))
        sink.write(batch(b"b", table=1))
    assert sent(servers, topic).column("value") == [b"b"]


def test_a_message_that_the_broker_refuses_aborts_the_batch(
    servers: str, make_topic: MakeTopic
) -> None:
    topic = make_topic(max_message_bytes="1000")
    with closing(sink_of(servers, topic)) as sink:
        sink.open()
        with pytest.raises(sl.CommitError, match="aborted") as aborted:
            sink.write(batch(b"a", b"x" * 2000, table=1))
        assert "too large" in aborted.value.found
        assert sink.committed() == {}
        sink.write(batch(b"b", table=1))
    assert sent(servers, topic).column("value") == [b"b"]


def test_without_an_app_id_rows_are_sent_and_no_positions_kept(servers: str, topic: str) -> None:
    with closing(sink_of(servers, topic, app_id=None)) as sink:
        sink.open()
        sink.write(batch(b"a", b"b", table=1))
        assert sink.committed() == {}
    assert sent(servers, topic).column("value") == [b"a", b"b"]


def test_a_plain_sink_tells_what_the_broker_refuses(servers: str, make_topic: MakeTopic) -> None:
    topic = make_topic(max_message_bytes="1000")
    with closing(sink_of(servers, topic, app_id=None)) as sink:
        sink.open()
        with pytest.raises(sl.SourceError, match="refuses") as refused:
            sink.write(batch(b"x" * 2000))
        assert "too large" in refused.value.found


def test_rows_without_a_value_column_are_json(servers: str, topic: str) -> None:
    table = pa.table(
        {"id": [1, None], "name": ["ä", "b"], "at": pa.array([0, 1], pa.timestamp("us"))}
    )
    with closing(KafkaSink({"bootstrap.servers": servers}, topic=topic, key="id")) as sink:
        sink.open()
        sink.write(sl.Batch(data=table))
    kept = sent(servers, topic)
    assert kept.column("key") == [b"1", None]
    assert [json.loads(str(value, "utf-8")) for value in kept.column("value")] == [
        {"id": 1, "name": "ä", "at": "1970-01-01T00:00:00"},
        {"id": None, "name": "b", "at": "1970-01-01T00:00:00.000001"},
    ]


def test_keys_values_and_headers_go_from_topic_to_topic_unchanged(
    servers: str, make_topic: MakeTopic
) -> None:
    here, there = make_topic(), make_topic()
    produce(servers, here, [None, b"", "🚀"], key=b"k", headers=[("h", None), ("h", b"\xff")])
    config = {"bootstrap.servers": servers}
    sink = KafkaSink(
        config, topic=there, app_id="copy", key="key", value="value", headers="headers"
    )
    source = KafkaSource(config, topics=[here], stop="latest", limits=QUICK)
    sl.Pipeline(source, sink).run()
    columns = ["key", "value", "headers"]
    assert sent(servers, there).rows.select(columns) == sent(servers, here).rows.select(columns)


@pytest.mark.parametrize("name", ["", "a/b", "a.b", "x" * 250])
def test_an_app_id_that_can_not_name_a_topic_is_refused(name: str) -> None:
    with pytest.raises(sl.InvalidInputError, match="can't be a part"):
        sink_of("127.0.0.1:1", "topic", app_id=name)


def test_a_column_that_is_not_there_or_of_no_use_is_named(servers: str, topic: str) -> None:
    with closing(sink_of(servers, topic)) as sink:
        sink.open()
        with pytest.raises(sl.SchemaMismatchError, match="no column 'value'"):
            sink.write(sl.Batch(data=pa.table({"v": [1]}), positions={"table": 1}))
        with pytest.raises(sl.SchemaMismatchError, match="can't be the key or the value"):
            sink.write(sl.Batch(data=pa.table({"value": [[1]]}), positions={"table": 1}))
        twice = pa.table([[b"a"], [b"b"]], names=["value", "value"])
        with pytest.raises(sl.SchemaMismatchError, match="more than one column 'value'"):
            sink.write(sl.Batch(data=twice, positions={"table": 1}))
        sink.write(batch(b"a", table=1))


PAIRS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
NUMBERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.int64())]))
OTHER_NAMES = pa.list_(pa.struct([("k", pa.string()), ("v", pa.binary())]))


def with_headers(found: pa.Array[Any], position: int) -> sl.Batch:
    data = pa.table({"value": [f"{position}"] * len(found), "h": found})
    return sl.Batch(data=data, positions={"table": position})


def test_headers_of_no_use_are_refused_and_the_next_batch_is_stored(
    servers: str, topic: str
) -> None:
    config = {"bootstrap.servers": servers}
    wrong = [
        pa.array([b"xx"]),
        pa.array([[1]]),
        pa.array([[{"key": "k", "value": 1}]], NUMBERS),
        pa.array([[{"k": "k", "v": b"1"}]], OTHER_NAMES),
    ]
    sink = KafkaSink(config, topic=topic, app_id="out", value="value", headers="h")
    with closing(sink):
        sink.open()
        for number, found in enumerate(wrong):
            with pytest.raises(sl.SchemaMismatchError, match="'h' can't be the headers"):
                sink.write(with_headers(found, number))
            sink.write(with_headers(pa.array([[{"key": "k", "value": b"1"}], None], PAIRS), number))
    kept = sent(servers, topic)
    assert kept.column("headers") == [[{"key": "k", "value": b"1"}], None] * len(wrong)


def test_headers_may_be_a_map_or_nothing_but_nulls(servers: str, topic: str) -> None:
    config = {"bootstrap.servers": servers}
    with closing(KafkaSink(config, topic=topic, value="value", headers="h")) as sink:
        sink.open()
        sink.write(with_headers(pa.array([[("k", "1")]], pa.map_(pa.string(), pa.string())), 0))
        sink.write(with_headers(pa.nulls(1), 1))
    assert sent(servers, topic).column("headers") == [[{"key": "k", "value": b"1"}], None]


@pytest.mark.parametrize("pair", [None, {"key": None, "value": b"1"}])
def test_a_header_without_a_key_is_refused_and_the_next_batch_is_stored(
    servers: str, topic: str, pair: dict[str, object] | None
) -> None:
    config = {"bootstrap.servers": servers}
    sink = KafkaSink(config, topic=topic, app_id="out", value="value", headers="h")
    with closing(sink):
        sink.open()
        with pytest.raises(sl.InvalidInputError, match="no key"):
            sink.write(with_headers(pa.array([[pair]], PAIRS), 1))
        sink.write(with_headers(pa.array([[]], PAIRS), 1))
    assert sent(servers, topic).column("value") == [b"1"]


def test_a_row_that_json_can_not_hold_is_refused_and_the_next_batch_is_stored(
    servers: str, topic: str
) -> None:
    far = pa.array([2**62], pa.timestamp("us"))
    with closing(KafkaSink({"bootstrap.servers": servers}, topic=topic, app_id="out")) as sink:
        sink.open()
        with pytest.raises(sl.InvalidInputError, match="JSON object"):
            sink.write(sl.Batch(data=pa.table({"at": far}), positions={"table": 1}))
        sink.write(sl.Batch(data=pa.table({"n": [1]}), positions={"table": 1}))
    assert sent(servers, topic).column("value") == [b'{"n":1}']


def test_a_topic_that_does_not_exist_is_an_error_before_anything_is_created(servers: str) -> None:
    with closing(sink_of(servers, "no-such-topic")) as sink, pytest.raises(sl.TopicNotFoundError):
        sink.open()


def test_a_sink_that_is_not_open_says_so() -> None:
    sink = sink_of("127.0.0.1:1", "orders")
    sink.close()
    with pytest.raises(sl.InvalidInputError, match="not open"):
        sink.write(batch(b"a"))
    assert repr(sink) == "KafkaSink('127.0.0.1:1', topic='orders')"


def test_a_positions_topic_that_forgets_is_refused(servers: str, make_topic: MakeTopic) -> None:
    topic = make_topic()
    beside = f"{topic}.out.positions"
    create_topic(servers, beside)
    with closing(sink_of(servers, topic)) as sink, pytest.raises(sl.SourceError) as refused:
        sink.open()
    assert refused.value.found == "cleanup.policy=delete"


class Follower:
    """A child process that follows a table into a topic."""

    def __init__(self, servers: str, topic: str, url: str) -> None:
        self.command = [sys.executable, str(Path(__file__).with_name("table_to_topic.py"))]
        self.command += [servers, topic, url]
        self.start()

    def start(self) -> None:
        roots = os.pathsep.join(path for path in sys.path if path)
        self.child = subprocess.Popen(self.command, env={**os.environ, "PYTHONPATH": roots})

    def kill(self) -> None:
        self.child.kill()
        self.child.wait()


@pytest.fixture
def follower(servers: str, topic: str, tmp_path: Path) -> Iterator[Follower]:
    sl.Table.create(str(tmp_path), schema=pa.schema({"n": pa.int64()}))
    follower = Follower(servers, topic, str(tmp_path))
    yield follower
    follower.kill()


def test_a_table_followed_into_a_topic_is_there_exactly_once_through_kills(
    servers: str, topic: str, tmp_path: Path, follower: Follower
) -> None:
    table = sl.Table.open(str(tmp_path))

    def numbers() -> list[int]:
        return [json.loads(str(v, "utf-8"))["n"] for v in sent(servers, topic).column("value")]

    deadline = time.monotonic() + 120
    for kill in range(4):
        for i in range(50):
            table.append(pa.table({"n": [kill * 50 + i]}))
        while len(numbers()) <= kill * 50:
            assert time.monotonic() < deadline, f"after {kill} kills: {numbers()}"
        follower.kill()
        follower.start()
    while len(numbers()) < 200:
        assert time.monotonic() < deadline, f"{len(numbers())} of 200"
    assert numbers() == list(range(200))
