"""What is made of messages and events, whatever librdkafka hands over."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import KafkaError, Message

import streamlake as sl
from streamlake.testing import ManualClock
from streamlake_kafka.codes import PARTITION_EOF
from streamlake_kafka.connection import Connection
from streamlake_kafka.health import Health
from streamlake_kafka.parts import Part, Progress
from streamlake_kafka.reader import Reader

OURS, OTHER = Part("orders", 0), Part("orders", 1)
NOBODY = "127.0.0.1:1"


class Bench:
    """A reader of one part that stands at position 4; nothing is connected."""

    def __init__(self, connection: Connection, health: Health, *, end: int | None) -> None:
        self.progress = Progress(ManualClock())
        self.progress.seat(OURS, 4, is_stored=True)
        ends = {} if end is None else {OURS: end}
        self.reader = Reader(connection, self.progress, health=health, ends=ends, headers=False)

    def take(self, *messages: Message) -> list[int | None]:
        return self.reader.take(list(messages))["offset"].to_pylist()

    @property
    def position(self) -> int | None:
        return self.progress.read(OURS)


@pytest.fixture
def bench_with() -> Iterator[Callable[..., Bench]]:
    clock = ManualClock()
    health = Health(NOBODY, clock=clock, on_event=None)
    connection = Connection({"bootstrap.servers": NOBODY}, health=health, clock=clock)
    yield lambda end=None: Bench(connection, health, end=end)
    connection.close()


@pytest.fixture
def bench(bench_with: Callable[..., Bench]) -> Bench:
    return bench_with()


def message(offset: int, part: Part = OURS) -> Message:
    return Message(part.topic, part.number, offset, timestamp=(1, 0))


def event(code: int, offset: int = 0, part: Part = OURS) -> Message:
    return Message(part.topic, part.number, offset, error=KafkaError(code))


def test_rows_at_or_below_the_position_are_dropped(bench: Bench) -> None:
    assert bench.take(*map(message, range(3, 8))) == [5, 6, 7]
    assert bench.take(*map(message, range(3, 8))) == []
    assert bench.position == 7


def test_rows_of_parts_that_are_not_ours_are_dropped(bench: Bench) -> None:
    assert bench.take(message(5), message(5, OTHER), message(6)) == [5, 6]
    assert bench.progress.read(OTHER) is None


def test_rows_behind_the_end_are_dropped_and_the_position_stops_there(
    bench_with: Callable[..., Bench],
) -> None:
    bench = bench_with(end=6)
    assert bench.take(message(5)) == [5]
    assert not bench.reader.is_through()
    assert bench.take(*map(message, range(6, 9))) == [6]
    assert bench.position == 6
    assert bench.reader.is_through()


def test_the_end_of_a_partition_moves_the_position_over_what_was_not_delivered(
    bench: Bench,
) -> None:
    assert bench.take(message(5), event(PARTITION_EOF, 9)) == [5]
    assert bench.position == 8
    bench.take(event(PARTITION_EOF, 7))
    assert bench.position == 8


def test_a_missing_offset_is_kept_for_who_asks(bench: Bench) -> None:
    bench.take(event(KafkaError.OFFSET_OUT_OF_RANGE))
    assert bench.reader.take_lost() == {OURS}
    assert bench.reader.take_lost() == set()


def test_rows_before_a_refusal_do_not_hide_it(bench: Bench) -> None:
    with pytest.raises(sl.SourceError, match="refuses") as refused:
        bench.take(message(5), event(KafkaError.TOPIC_AUTHORIZATION_FAILED))
    assert "TOPIC_AUTHORIZATION_FAILED" in refused.value.found


def test_what_passes_by_itself_is_only_logged(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert bench.take(event(KafkaError.NOT_LEADER_FOR_PARTITION), message(5)) == [5]
    assert "Kafka" in caplog.text
