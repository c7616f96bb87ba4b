"""KafkaSource on a real broker: where it begins, what it delivers, when it ends."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Consumer, TopicPartition

import streamlake as sl
from kafka_broker import KafkaBroker, MakeTopic
from kafka_kit import (
    QUICK,
    Kept,
    add_partitions,
    delete_records,
    drain,
    produce,
    produce_at,
    produce_in_transaction,
)
from streamlake.testing import ManualClock
from streamlake_kafka import KafkaSource, ReadLimits
from streamlake_kafka.resume import Start


@pytest.fixture
def servers(kafka: KafkaBroker) -> str:
    return kafka.bootstrap_servers


def bounded(
    servers: str, topic: str, *, start: Start = "earliest", fail_on_data_loss: bool = True
) -> KafkaSource:
    return KafkaSource(
        {"bootstrap.servers": servers},
        topics=[topic],
        start=start,
        stop="latest",
        fail_on_data_loss=fail_on_data_loss,
        limits=QUICK,
    )


def test_a_bounded_run_delivers_everything_in_order_and_ends(servers: str, topic: str) -> None:
    produce(servers, topic, [f"{i}" for i in range(1000)])
    kept = drain(bounded(servers, topic))
    assert kept.column("value") == [b"%d" % i for i in range(1000)]
    assert kept.column("offset") == list(range(1000))
    assert kept.positions == {f"{topic}/0": 999}


def test_a_stored_position_is_not_delivered_again(servers: str, topic: str) -> None:
    produce(servers, topic, "abcde")
    kept = drain(bounded(servers, topic), {f"{topic}/0": 2})
    assert kept.column("value") == [b"d", b"e"]


def test_position_zero_is_a_position(servers: str, topic: str) -> None:
    produce(servers, topic, "ab")
    assert drain(bounded(servers, topic), {f"{topic}/0": 0}).column("value") == [b"b"]


def test_a_position_at_the_end_delivers_nothing(servers: str, topic: str) -> None:
    produce(servers, topic, "ab")
    assert drain(bounded(servers, topic), {f"{topic}/0": 1}).batches == []


def test_an_empty_topic_ends_at_once_and_stores_nothing(servers: str, topic: str) -> None:
    assert drain(bounded(servers, topic)).batches == []


def test_empty_partitions_do_not_hold_up_the_end(servers: str, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=5)
    produce(servers, topic, "ab", partition=3)
    assert drain(bounded(servers, topic)).positions == {f"{topic}/3": 1}


def test_several_topics_and_partitions_come_whole(servers: str, make_topic: MakeTopic) -> None:
    topics = [make_topic(partitions=2), make_topic(partitions=3)]
    for topic, partition in ((topics[0], 1), (topics[1], 0), (topics[1], 2)):
        produce(servers, topic, [f"{partition}-{i}" for i in range(50)], partition=partition)
    config = {"bootstrap.servers": servers}
    kept = drain(KafkaSource(config, topics=topics, stop="latest", limits=QUICK))
    assert kept.rows.num_rows == 150
    assert kept.positions == {f"{topics[0]}/1": 49, f"{topics[1]}/0": 49, f"{topics[1]}/2": 49}
    assert set(kept.column("topic")) == set(topics)


def test_messages_that_come_after_the_start_are_not_part_of_a_bounded_run(
    servers: str, topic: str
) -> None:
    produce(servers, topic, "abc")
    source = bounded(servers, topic)
    source.open(dict)
    produce(servers, topic, "def")
    rows = [value for batch in source.batches() if batch for value in batch.data["value"]]
    source.close()
    assert [value.as_py() for value in rows] == [b"a", b"b", b"c"]


def test_markers_and_aborted_messages_at_the_end_do_not_hold_up_a_bounded_run(
    servers: str, topic: str
) -> None:
    produce_in_transaction(servers, topic, "abc")
    produce_in_transaction(servers, topic, "xyz", commit=False)
    kept = drain(bounded(servers, topic))
    assert kept.column("value") == [b"a", b"b", b"c"]
    assert kept.positions == {f"{topic}/0": 7}


def test_a_run_of_nothing_but_gaps_stores_the_position_without_rows(
    servers: str, topic: str
) -> None:
    produce_in_transaction(servers, topic, "xyz", commit=False)
    kept = drain(bounded(servers, topic))
    assert [batch.data.num_rows for batch in kept.batches] == [0]
    assert drain(bounded(servers, topic), kept.positions).batches == []


def test_a_gap_is_stored_without_rows_when_none_come_for_a_while(servers: str, topic: str) -> None:
    produce_in_transaction(servers, topic, "ab")
    clock = ManualClock()
    config = {"bootstrap.servers": servers}
    source = KafkaSource(config, topics=[topic], limits=QUICK, clock=clock)
    source.open(dict)
    batches = source.batches()
    first = next(batch for batch in batches if batch is not None)
    produce_in_transaction(servers, topic, "xy", commit=False)
    positions = dict(first.positions)
    while positions[f"{topic}/0"] < 5:
        clock.advance(1)
        batch = next(batches)
        positions |= batch.positions if batch is not None else {}
    source.close()
    assert first.data.num_rows == 2
    assert positions == {f"{topic}/0": 5}


def test_resuming_inside_a_gap_loses_and_repeats_nothing(servers: str, topic: str) -> None:
    produce_in_transaction(servers, topic, "ab")
    produce_in_transaction(servers, topic, "xy", commit=False)
    produce_in_transaction(servers, topic, "cd")
    for position, rest in ((1, b"cd"), (2, b"cd"), (4, b"cd"), (6, b"d"), (7, b"")):
        kept = drain(bounded(servers, topic), {f"{topic}/0": position})
        assert kept.column("value") == [bytes([letter]) for letter in rest]
        assert kept.positions == {f"{topic}/0": 8}


def test_start_latest_passes_over_what_is_there_and_stores_that_at_once(
    servers: str, topic: str
) -> None:
    produce(servers, topic, "abc")
    kept = drain(bounded(servers, topic, start="latest"))
    assert [(batch.data.num_rows, batch.positions) for batch in kept.batches] == [
        (0, {f"{topic}/0": 2})
    ]
    produce(servers, topic, "d")
    again = drain(bounded(servers, topic, start="latest"), kept.positions)
    assert again.column("value") == [b"d"]


def test_start_latest_is_stored_before_rows_come_in_an_endless_run(
    servers: str, topic: str
) -> None:
    produce(servers, topic, "abc")
    config = {"bootstrap.servers": servers}
    source = KafkaSource(config, topics=[topic], start="latest", limits=QUICK)
    kept = drain(source, until=lambda kept: bool(kept.batches))
    assert kept.positions == {f"{topic}/0": 2}


def test_start_latest_loses_nothing_of_a_partition_that_was_empty(
    servers: str, make_topic: MakeTopic
) -> None:
    topic = make_topic(partitions=2)
    produce(servers, topic, "abc")
    first = drain(bounded(servers, topic, start="latest"))
    assert first.positions == {f"{topic}/0": 2}
    produce(servers, topic, "de", partition=1)
    again = drain(bounded(servers, topic, start="latest"), first.positions)
    assert again.column("value") == [b"d", b"e"]


def test_start_latest_loses_nothing_of_a_partition_added_while_it_was_down(
    servers: str, topic: str
) -> None:
    produce(servers, topic, "abc")
    start: Start = {topic: {0: -1, 1: -1}}
    first = drain(bounded(servers, topic, start=start))
    add_partitions(servers, topic, 2)
    produce(servers, topic, "de", partition=1)
    for again in (start, "latest"):
        kept = drain(bounded(servers, topic, start=again), first.positions)
        assert kept.column("value") == [b"d", b"e"]


def test_start_latest_on_an_empty_topic_stores_nothing_and_is_found_anew(
    servers: str, topic: str
) -> None:
    assert drain(bounded(servers, topic, start="latest")).batches == []
    produce(servers, topic, "ab")
    kept = drain(bounded(servers, topic, start="latest"))
    assert (kept.column("value"), kept.positions) == ([], {f"{topic}/0": 1})


def test_a_latest_that_another_owner_found_before_us_is_the_one_that_counts(
    servers: str, make_topic: MakeTopic
) -> None:
    topic = make_topic(partitions=2)
    produce(servers, topic, "a")
    produce(servers, topic, "b", partition=1)
    source = bounded(servers, topic, start="latest")
    stored: dict[str, int] = {}
    source.open(lambda: stored)
    stored[f"{topic}/0"] = 0  # the other one found partition 1 empty
    source.rewind()
    rows = [value.as_py() for batch in source.batches() if batch for value in batch.data["value"]]
    source.close()
    assert rows == [b"b"]


def test_start_by_offset(servers: str, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=4)
    for partition in range(4):
        produce(servers, topic, "abc", partition=partition)
    kept = drain(bounded(servers, topic, start={topic: {0: 1, 1: -1, 2: 3}}))
    found = sorted(zip(kept.column("partition"), kept.column("value"), strict=True))
    assert found == [(0, b"b"), (0, b"c"), (3, b"a"), (3, b"b"), (3, b"c")]


def test_a_start_beyond_the_end_is_refused(servers: str, topic: str) -> None:
    produce(servers, topic, "abc")
    with pytest.raises(sl.OffsetOutOfRangeError, match=r"offset 4 .* not there yet") as refused:
        drain(bounded(servers, topic, start={topic: {0: 4}}))
    assert refused.value.found == "offsets 0 to 2"


def test_a_topic_that_does_not_exist_is_named_beside_those_that_do(
    servers: str, topic: str
) -> None:
    with pytest.raises(sl.TopicNotFoundError, match="'no-such-topic' does not exist") as missing:
        drain(bounded(servers, "no-such-topic"))
    assert "topic" in missing.value.found
    assert topic or missing.value.where == servers


def test_messages_removed_before_they_were_read_are_an_error(servers: str, topic: str) -> None:
    produce(servers, topic, "abcdef")
    delete_records(servers, topic, 4)
    with pytest.raises(sl.OffsetOutOfRangeError, match="removed offsets 2 to 3") as lost:
        drain(bounded(servers, topic), {f"{topic}/0": 1})
    assert lost.value.found == "offsets 4 to 5"
    assert "fail_on_data_loss=False" in lost.value.remedy


def test_a_loss_is_passed_over_where_that_is_wanted(servers: str, topic: str) -> None:
    produce(servers, topic, "abcdef")
    delete_records(servers, topic, 4)
    source = bounded(servers, topic, fail_on_data_loss=False)
    kept = drain(source, {f"{topic}/0": 1})
    assert kept.column("value") == [b"e", b"f"]


def test_a_position_just_below_what_is_left_is_no_loss(servers: str, topic: str) -> None:
    produce(servers, topic, "abcdef")
    delete_records(servers, topic, 4)
    assert drain(bounded(servers, topic), {f"{topic}/0": 3}).column("value") == [b"e", b"f"]


def test_a_first_run_on_a_topic_whose_beginning_is_gone_starts_at_what_is_left(
    servers: str, topic: str
) -> None:
    produce(servers, topic, "abcdef")
    delete_records(servers, topic, 6)
    kept = drain(bounded(servers, topic))
    assert kept.positions == {f"{topic}/0": 5}
    assert drain(bounded(servers, topic), kept.positions).batches == []


SLOW_FETCH: dict[str, int] = {"queued.min.messages": 1, "fetch.message.max.bytes": 1000}


def test_messages_removed_while_the_source_runs_are_an_error(servers: str, topic: str) -> None:
    produce(servers, topic, [b"x" * 1000] * 3000)
    limits = ReadLimits(max_batch_rows=10)
    source = KafkaSource(
        {"bootstrap.servers": servers, **SLOW_FETCH}, topics=[topic], limits=limits
    )
    source.open(dict)
    batches = source.batches()
    next(batches)
    delete_records(servers, topic, 3000)
    with pytest.raises(sl.OffsetOutOfRangeError, match=r"removed offsets \d+ to 2999"):
        list(batches)
    source.close()


def test_messages_removed_while_the_source_runs_are_passed_over_where_that_is_wanted(
    servers: str, topic: str
) -> None:
    produce(servers, topic, [b"x" * 1000] * 3000)
    source = KafkaSource(
        {"bootstrap.servers": servers, **SLOW_FETCH},
        topics=[topic],
        fail_on_data_loss=False,
        limits=ReadLimits(max_batch_rows=10),
    )
    source.open(dict)
    batches = source.batches()
    next(batches)
    delete_records(servers, topic, 3000)
    produce(servers, topic, [b"next"])
    rows = (row for batch in batches if batch for row in batch.data.to_pylist())
    assert next(row["offset"] for row in rows if row["value"] == b"next") == 3000
    source.close()


def test_compaction_leaves_gaps_that_are_accounted_for(servers: str, make_topic: MakeTopic) -> None:
    topic = make_topic(cleanup_policy="compact", segment_ms="10", min_cleanable_dirty_ratio="0.01")
    deadline = time.monotonic() + 60
    kept = sent = 0
    while kept == sent:
        assert time.monotonic() < deadline, "the broker compacts nothing"
        produce(servers, topic, "x", key="the same")
        sent += 1
        kept = len(drain(bounded(servers, topic)).column("offset"))
    after = drain(bounded(servers, topic), {f"{topic}/0": 0})
    assert after.positions == {f"{topic}/0": sent - 1}
    assert len(after.column("offset")) < sent


def test_a_position_beyond_the_end_tells_of_a_topic_made_anew(servers: str, topic: str) -> None:
    produce(servers, topic, "ab")
    with pytest.raises(sl.OffsetOutOfRangeError, match="beyond the end of the topic") as error:
        drain(bounded(servers, topic), {f"{topic}/0": 2})
    assert "created anew" in error.value.remedy


def test_rewind_reads_again_from_what_is_stored(servers: str, topic: str) -> None:
    produce(servers, topic, "abcdef")
    source = bounded(servers, topic)
    stored = {f"{topic}/0": 1}
    source.open(lambda: stored)
    batches = source.batches()
    first = next(batch for batch in batches if batch is not None)
    stored[f"{topic}/0"] = 3
    source.rewind()
    rest = [batch for batch in source.batches() if batch is not None]
    source.close()
    assert first.data["value"][0].as_py() == b"c"
    assert [value.as_py() for batch in rest for value in batch.data["value"]] == [b"e", b"f"]


def test_rewind_before_anything_is_stored_begins_where_it_began(servers: str, topic: str) -> None:
    produce(servers, topic, "abc")
    config = {"bootstrap.servers": servers}
    source = KafkaSource(config, topics=[topic], start="latest", limits=QUICK)
    source.open(dict)
    batches = source.batches()
    assert next(batches) is not None
    produce(servers, topic, "def")
    source.rewind()
    rows = next(batch for batch in batches if batch is not None and batch.data.num_rows)
    source.close()
    assert rows.data["value"][0].as_py() == b"d"


def test_partitions_added_while_it_runs_are_found_and_read_from_their_beginning(
    servers: str, topic: str
) -> None:
    produce(servers, topic, "a")
    config = {"bootstrap.servers": servers}
    source = KafkaSource(config, topics=[topic], start="latest", limits=QUICK)
    source.open(dict)
    batches = source.batches()
    next(batches)
    add_partitions(servers, topic, 3)
    produce(servers, topic, "xyz", partition=2)
    rows = next(batch for batch in batches if batch is not None and batch.data.num_rows)
    source.close()
    assert rows.data["value"].to_pylist() == [b"x", b"y", b"z"]


def test_partitions_found_while_rows_flow_repeat_and_lose_nothing(servers: str, topic: str) -> None:
    config = {"bootstrap.servers": servers}
    produce(servers, topic, "a")
    sent = 1

    def send_more(_: Kept) -> None:
        nonlocal sent
        produce(servers, topic, [f"{sent}"])
        sent += 1
        if sent == 20:
            add_partitions(servers, topic, 2)
            produce(servers, topic, "xyz", partition=1)

    kept = drain(
        KafkaSource(config, topics=[topic], limits=QUICK),
        until=lambda kept: kept.positions.get(f"{topic}/1") == 2,
        after=send_more,
    )
    found = zip(kept.column("partition"), kept.column("offset"), strict=True)
    offsets = [offset for partition, offset in found if partition == 0]
    assert offsets == list(range(len(offsets)))
    assert len(offsets) >= 20


def test_batches_keep_their_bounds(servers: str, topic: str) -> None:
    produce(servers, topic, [b"x" * 1000] * 3000)
    limits = ReadLimits(poll_timeout_s=0.1, max_batch_rows=700, max_batch_bytes=400_000)
    source = KafkaSource(
        {"bootstrap.servers": servers}, topics=[topic], stop="latest", limits=limits
    )
    kept = drain(source)
    assert kept.rows.num_rows == 3000
    assert max(batch.data.num_rows for batch in kept.batches) <= 700
    assert max(batch.data.nbytes for batch in kept.batches) < 800_000


def test_a_large_message_comes_whole(servers: str, make_topic: MakeTopic) -> None:
    topic = make_topic(max_message_bytes=str(8 * 2**20))
    large = bytes(range(256)) * 20_000
    produce(servers, topic, [b"small", large, b"last"])
    assert drain(bounded(servers, topic)).column("value") == [b"small", large, b"last"]


def test_an_idle_source_says_so(servers: str, topic: str) -> None:
    source = KafkaSource({"bootstrap.servers": servers}, topics=[topic], limits=QUICK)
    source.open(dict)
    assert next(source.batches()) is None
    source.close()


def test_keys_values_and_headers_may_be_null_empty_or_any_bytes(servers: str, topic: str) -> None:
    produce(servers, topic, [None], key="ключ")
    produce(servers, topic, [b""], key=b"")
    produce(servers, topic, ["überall 🚀"], key=None)
    headers = [("a", b"1"), ("a", None), ("🚀", b"\x00\xff")]
    produce(servers, topic, [b"\x00\xff"], key=b"\x00", headers=headers)
    kept = drain(bounded(servers, topic))
    assert kept.column("key") == ["ключ".encode(), b"", None, b"\x00"]
    assert kept.column("value") == [None, b"", "überall 🚀".encode(), b"\x00\xff"]
    *none, found = kept.column("headers")
    assert none == [None, None, None]
    assert found == [{"key": name, "value": value} for name, value in headers]


def test_a_timestamp_out_of_range_names_its_message_and_can_be_passed_over(
    servers: str, make_topic: MakeTopic
) -> None:
    topic = make_topic(message_timestamp_after_max_ms=str(2**63 - 1))
    produce(servers, topic, "a")
    produce_at(servers, topic, "b", millis=1_790_000_000_000_000_000)
    produce(servers, topic, "c")
    config = {"bootstrap.servers": servers}
    one_by_one = ReadLimits(max_batch_rows=1)
    source = KafkaSource(config, topics=[topic], stop="latest", limits=one_by_one)
    kept = Kept()
    with pytest.raises(sl.SourceError, match="timestamp") as refused:
        drain(source, after=lambda now: kept.positions.update(now.positions))
    assert refused.value.where == f"{topic}/0, offset 1"
    assert kept.positions == {f"{topic}/0": 0}
    delete_records(servers, topic, 2)
    lenient = bounded(servers, topic, fail_on_data_loss=False)
    assert drain(lenient, kept.positions).column("value") == [b"c"]


def test_without_headers_the_column_is_not_there(servers: str, topic: str) -> None:
    produce(servers, topic, "a", headers=[("a", b"1")])
    config = {"bootstrap.servers": servers}
    kept = drain(KafkaSource(config, topics=[topic], stop="latest", headers=False, limits=QUICK))
    assert kept.rows.column_names[-1] == "timestampType"


def group_offset(servers: str, group: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group})
    (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=30)
    consumer.close()
    return found.offset


def test_offsets_of_the_group_follow_what_is_stored(servers: str, topic: str) -> None:
    produce(servers, topic, "abc")
    config = {"bootstrap.servers": servers, "group.id": f"{topic}-lag"}
    drain(KafkaSource(config, topics=[topic], stop="latest", limits=QUICK))
    assert group_offset(servers, f"{topic}-lag", topic) == 3


def test_a_group_that_has_read_tells_of_lost_positions(servers: str, topic: str) -> None:
    produce(servers, topic, "abc")
    config = {"bootstrap.servers": servers, "group.id": f"{topic}-lag"}
    drain(KafkaSource(config, topics=[topic], stop="latest", limits=QUICK))
    with pytest.raises(sl.SourceError, match="consumer group has read it before"):
        drain(KafkaSource(config, topics=[topic], stop="latest", limits=QUICK))
    source = KafkaSource(
        config, topics=[topic], stop="latest", ignore_group_offsets=True, limits=QUICK
    )
    assert drain(source).column("value") == [b"a", b"b", b"c"]
