"""What a task does: consume its offset ranges into Arrow record batches."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

import streamlake as sl
from pyspark_streamlake_kafka.client import (
    OUT_OF_RANGE,
    PARTITION_END,
    LastError,
    open_consumer,
    typed_error,
)
from pyspark_streamlake_kafka.confluent import ck
from pyspark_streamlake_kafka.offsets import EARLIEST, LATEST, TopicPartition
from pyspark_streamlake_kafka.options import SERVERS, KafkaOptions
from pyspark_streamlake_kafka.positions import DataLoss
from pyspark_streamlake_kafka.ranges import OffsetRange
from streamlake_kafka.messages import messages_to_table

MESSAGES_PER_POLL = 10_000
"""Rows of one record batch at most; librdkafka's queue bounds its bytes."""
POLL_S = 0.01
"""``consume`` waits that long for as many messages as it was asked for, also at the end of a range
whose last offsets hold no message."""
FULL_POLL_S = 0.1
"""The same while there is more to come than one record batch takes."""
REQUEST_TIMEOUT_S = 10.0
KEPT_CONSUMERS = 4
"""Connected consumers that a Python worker keeps for its next tasks."""

_kept: OrderedDict[tuple[tuple[str, str], ...], tuple[ck.Consumer, LastError]] = OrderedDict()


def read_ranges(
    ranges: Sequence[OffsetRange], options: KafkaOptions, *, clock: sl.Clock
) -> Iterator[pa.RecordBatch]:
    """The rows of ``ranges``, each partition's in order; partitions may alternate.

    Offsets that hold no row (a transaction's end, an aborted or compacted message) are passed over:
    a range is done once something at or past its end is seen, be it the end of the partition.

    Args:
        ranges: What to read, of different partitions.
        options: How to reach Kafka, what to do about lost rows, how long to wait.
        clock: Measures the wait.

    Yields:
        Record batches of the source's columns.

    Raises:
        OffsetOutOfRangeError: Offsets of a range are not in Kafka any more.
        TopicNotFoundError: The topic is gone.
        SourceUnavailableError: Nothing came for ``kafkaConsumer.pollTimeoutMs``.
    """
    if not ranges:
        return
    key = tuple(sorted(options.client.items()))
    consumer, last_error = _kept.pop(key) if key in _kept else open_consumer(options.client)
    reading = _Reading(consumer, last_error, ranges, options)
    try:
        yield from reading.batches(clock)
    except BaseException:
        consumer.close()
        raise
    reading.release()
    _kept[key] = consumer, last_error
    while len(_kept) > KEPT_CONSUMERS:
        _kept.popitem(last=False)[1][0].close()


class _Reading:
    """One pass of a consumer over ranges; ``_pending`` are the ranges that are not done."""

    def __init__(
        self,
        consumer: ck.Consumer,
        last_error: LastError,
        ranges: Sequence[OffsetRange],
        options: KafkaOptions,
    ) -> None:
        self._consumer = consumer
        self._last_error = last_error
        self._options = options
        self._loss = DataLoss(fail=options.fail_on_data_loss)
        self._ranges = {found.tp: found for found in ranges}
        self._pending = {found.tp: found.start for found in ranges}

    def batches(self, clock: sl.Clock) -> Iterator[pa.RecordBatch]:
        self._assign()
        heard = clock.monotonic()
        while self._pending:
            missing = self._missing()
            timeout_s = POLL_S if missing < MESSAGES_PER_POLL else FULL_POLL_S
            messages = self._consumer.consume(min(missing, MESSAGES_PER_POLL), timeout=timeout_s)
            if messages:
                heard = clock.monotonic()
                yield from self._taken(messages)
            elif (clock.monotonic() - heard) * 1000 > self._options.poll_timeout_ms:
                raise self._nothing_came()

    def _assign(self) -> None:
        self._consumer.assign([_at(tp, position) for tp, position in self._pending.items()])

    def release(self) -> None:
        """Stop fetching; the connections stay."""
        self._consumer.resume([_at(tp) for tp in self._ranges])
        self._consumer.unassign()

    def _missing(self) -> int:
        return sum(self._ranges[tp].end - position for tp, position in self._pending.items())

    def _taken(self, messages: list[ck.Message]) -> Iterator[pa.RecordBatch]:
        errors = list(map(ck.Message.error, messages))
        if any(error is not None for error in errors):
            rows = [message for message, e in zip(messages, errors, strict=True) if e is None]
        else:
            rows = messages
        if rows:
            table = messages_to_table(rows, headers=self._options.include_headers)
            yield from self._inside(table).combine_chunks().to_batches()
        if rows is not messages:
            for message, error in zip(messages, errors, strict=True):
                if error is not None:
                    self._take_event(message, error)

    def _inside(self, rows: pa.Table) -> pa.Table:
        """The rows of pending ranges; notes how far each range has come."""
        parts = rows.group_by(["topic", "partition"], use_threads=False)
        whole = True
        for part in parts.aggregate([("offset", "max")]).to_pylist():
            tp = TopicPartition(part["topic"], part["partition"])
            whole = whole and tp in self._pending and part["offset_max"] < self._ranges[tp].end
            self._advance(tp, part["offset_max"] + 1)
        return rows if whole else rows.filter(self._wanted())

    def _wanted(self) -> pc.Expression:
        return reduce(
            operator.or_,
            (
                (pc.field("topic") == found.tp.topic)
                & (pc.field("partition") == found.tp.partition)
                & (pc.field("offset") < found.end)
                for found in self._ranges.values()
            ),
        )

    def _advance(self, tp: TopicPartition, position: int) -> None:
        if tp not in self._pending:
            return
        if position < self._ranges[tp].end:
            self._pending[tp] = position
        else:
            del self._pending[tp]
            self._consumer.pause([_at(tp)])

    def _take_event(self, event: ck.Message, error: ck.KafkaError) -> None:
        """The end of a partition, or an error of one."""
        tp = TopicPartition(event.topic() or "", event.partition() or 0)
        if error.code() in PARTITION_END:
            self._advance(tp, event.offset() or 0)
        elif error.code() in OUT_OF_RANGE:
            self._pass_over_lost(tp)
        elif event.topic() is None and not error.fatal():
            self._last_error(error)  # of a connection or of the group, which no range depends on
        elif not error.retriable():
            raise typed_error(error, what=f"Kafka refuses to deliver {tp}.", where=self._servers)

    def _pass_over_lost(self, tp: TopicPartition) -> None:
        if tp not in self._pending:
            return
        first, last = self._edge(tp, EARLIEST), self._edge(tp, LATEST)
        wanted, end = self._pending[tp], self._ranges[tp].end
        self._loss.tell(
            f"Offsets from {wanted} of {tp} are not in Kafka any more.",
            found=f"Kafka holds [{first}, {last})",
        )
        self._advance(tp, first if wanted < first < end else end)
        self._assign()

    def _edge(self, tp: TopicPartition, which: int) -> int:
        try:
            asked = [_at(tp, which)]
            answer = self._consumer.offsets_for_times(asked, timeout=REQUEST_TIMEOUT_S)[0]
        except ck.KafkaException as error:
            raise typed_error(
                error.args[0],
                what=f"Kafka does not tell the offsets of {tp}.",
                where=self._servers,
            ) from error
        return int(answer.offset)

    def _nothing_came(self) -> sl.SourceUnavailableError:
        waiting = [f"{tp} [{at}, {self._ranges[tp].end})" for tp, at in self._pending.items()]
        return sl.SourceUnavailableError(
            f"Kafka delivered nothing for {self._options.poll_timeout_ms / 1000:g} s.",
            where=f"{self._servers}: {', '.join(waiting)}",
            found=self._last_error.text,
            remedy="See that the brokers run and are reached from the executors; raise "
            "kafkaConsumer.pollTimeoutMs if they are merely slow.",
        )

    @property
    def _servers(self) -> str:
        return self._options.client[SERVERS]


def _at(tp: TopicPartition, offset: int = ck.OFFSET_INVALID) -> ck.TopicPartition:
    return ck.TopicPartition(tp.topic, tp.partition, offset)
