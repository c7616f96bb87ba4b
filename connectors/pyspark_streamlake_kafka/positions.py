"""Positions that a user asks for become offsets, and offsets that Kafka has lost are told."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import streamlake as sl
from pyspark_streamlake_kafka.cluster import Cluster
from pyspark_streamlake_kafka.offsets import EARLIEST, LATEST, Offsets, TopicPartition
from pyspark_streamlake_kafka.options import Position
from pyspark_streamlake_kafka.ranges import OffsetRange

_log = logging.getLogger(__name__)


class DataLoss:
    """What to do where rows can't be had any more: fail, as is the default, or warn and go on."""

    def __init__(self, *, fail: bool) -> None:
        self.fail = fail

    def tell(self, what: str, *, found: str) -> None:
        """Raise, or warn where the user set failOnDataLoss to false.

        Raises:
            OffsetOutOfRangeError: The user did not.
        """
        if self.fail:
            raise sl.OffsetOutOfRangeError(
                what,
                found=found,
                remedy="Rows may be lost: Kafka removed them, or the topic was made anew. Start "
                "from another position, or set failOnDataLoss to false to go on without them.",
            )
        _log.warning("%s (%s); failOnDataLoss is false: going on without these rows", what, found)


def resolve(
    position: Position, cluster: Cluster, *, option: str, loss: DataLoss
) -> dict[TopicPartition, int]:
    """The offset of each partition that a user's ``position`` stands for now.

    Raises:
        InvalidInputError: Offsets that do not name all partitions, or others.
        OffsetOutOfRangeError: Offsets that Kafka does not hold.
        SourceError: Kafka does not answer, or there is no such topic.
    """
    partitions = cluster.partitions()
    if position == "earliest":
        return cluster.earliest(partitions)
    if isinstance(position, str):
        return cluster.latest(partitions)
    _check_named(position, partitions, option=option)
    first, last = cluster.earliest(partitions), cluster.latest(partitions)
    return {tp: _inside(tp, position[tp], first[tp], last[tp], loss) for tp in partitions}


def _inside(tp: TopicPartition, wanted: int, first: int, last: int, loss: DataLoss) -> int:
    if wanted == EARLIEST:
        return first
    if wanted == LATEST:
        return last
    if not first <= wanted <= last:
        loss.tell(
            f"Offset {wanted} of {tp} is out of range.", found=f"Kafka holds [{first}, {last})"
        )
    return min(max(wanted, first), last)


def _check_named(
    named: Iterable[TopicPartition], partitions: Iterable[TopicPartition], *, option: str
) -> None:
    missing, unknown = set(partitions) - set(named), set(named) - set(partitions)
    if missing or unknown:
        raise sl.InvalidInputError(
            f"{option} must give an offset of every partition that is read, and of no other.",
            where=f"option {option}",
            found=f"missing: {_listed(missing)}; not read: {_listed(unknown)}",
            remedy="Use -2 for the earliest and -1 for the latest offset of a partition.",
        )


def with_new_partitions(
    start: Offsets, end: Iterable[TopicPartition], cluster: Cluster, *, loss: DataLoss
) -> dict[TopicPartition, int]:
    """``start``, and partitions that came into being since, from their beginning.

    Raises:
        OffsetOutOfRangeError: Such a partition has lost its first rows already.
        SourceUnavailableError: Kafka does not answer.
    """
    new = [tp for tp in end if tp not in start]
    first = cluster.earliest(new)
    for tp in new:
        if first[tp] > 0:
            loss.tell(
                f"The new partition {tp} does not begin at 0.",
                found=f"its first offset is {first[tp]}",
            )
    return {**start, **first}


def check_still_there(start: Offsets, latest: Offsets, *, loss: DataLoss) -> None:
    """Tell of partitions that are gone, or that hold less than was read of them.

    Raises:
        OffsetOutOfRangeError: There are such.
    """
    gone = [tp for tp in start if tp not in latest]
    if gone:
        loss.tell("Partitions that were read are gone.", found=_listed(gone))
    for tp, offset in start.items():
        if latest.get(tp, offset) < offset:
            loss.tell(
                f"{tp} was read up to offset {offset}, and holds less now.",
                found=f"it ends at {latest[tp]}",
            )


def ranges_between(start: Offsets, end: Offsets) -> list[OffsetRange]:
    """What lies between two positions, by partition; nothing where ``end`` is not ahead."""
    return [OffsetRange(tp, start[tp], end[tp]) for tp in sorted(end) if end[tp] > start[tp]]


def _listed(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(map(str, sorted(partitions))) or "none"
