"""Positions by topic-partition: their JSON, as Spark's Kafka source writes it, and their limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

import msgspec

import streamlake as sl

LATEST = -1
"""In a user's JSON: the end of the partition when the query starts."""
EARLIEST = -2
"""In a user's JSON: the first offset that Kafka still holds."""


class TopicPartition(NamedTuple):
    """A partition of a topic; sorts by topic, then by number."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}"


Offsets: TypeAlias = Mapping[TopicPartition, int]
"""The next offset to read, by partition."""


def offsets_to_json(offsets: Offsets) -> dict[str, dict[str, int]]:
    """``{"topic": {"0": 5}}``, in a fixed order: Spark compares positions by their text."""
    nested: dict[str, dict[str, int]] = {}
    for topic, partition in sorted(offsets):
        nested.setdefault(topic, {})[str(partition)] = offsets[TopicPartition(topic, partition)]
    return nested


def offsets_from_json(nested: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    """What ``offsets_to_json`` was made from."""
    return {
        TopicPartition(topic, int(partition)): offset
        for topic, partitions in nested.items()
        for partition, offset in partitions.items()
    }


def parse_offsets(text: str, *, option: str) -> dict[TopicPartition, int]:
    """Offsets as a user writes them: ``{"topic": {"0": 23, "1": -2}}``.

    Raises:
        InvalidInputError: The text is no such JSON.
    """
    try:
        return _checked(msgspec.json.decode(text, type=dict[str, dict[str, int]]))
    except ValueError as error:
        raise sl.InvalidInputError(
            f"{option} is no JSON of offsets.",
            where=f"option {option}",
            found=text,
            remedy='Give "earliest", "latest", or JSON such as {"topic": {"0": 23, "1": -2}}, '
            "where -2 is earliest and -1 is latest.",
        ) from error


def _checked(nested: dict[str, dict[str, int]]) -> dict[TopicPartition, int]:
    offsets = offsets_from_json(nested)
    if any(offset < EARLIEST or tp.partition < 0 for tp, offset in offsets.items()):
        raise ValueError("below the range")
    return offsets


def parse_assignment(text: str) -> tuple[TopicPartition, ...]:
    """Partitions as a user writes them: ``{"topic": [0, 1]}``.

    Raises:
        InvalidInputError: The text is no such JSON.
    """
    try:
        nested: dict[str, list[int]] = msgspec.json.decode(text, type=dict[str, list[int]])
    except msgspec.DecodeError as error:
        raise sl.InvalidInputError(
            "assign is no JSON of partitions.",
            where="option assign",
            found=text,
            remedy='Give JSON such as {"topic": [0, 1]}.',
        ) from error
    return tuple(TopicPartition(topic, number) for topic in nested for number in nested[topic])


def limited(start: Offsets, end: Offsets, *, max_rows: int) -> dict[TopicPartition, int]:
    """The part of ``start`` to ``end`` that holds at most about ``max_rows``, fairly shared.

    Each partition gets its share of the limit by how much it holds, but at least one row where it
    holds any, so that none starves: for their sake the limit may be passed, by less than one row a
    partition.
    """
    sizes = {tp: max(0, end[tp] - start.get(tp, 0)) for tp in end}
    total = sum(sizes.values())
    if total <= max_rows:
        return dict(end)
    shares = {tp: max(1, size * max_rows // total) for tp, size in sizes.items()}
    return {tp: min(end[tp], start.get(tp, 0) + shares[tp]) for tp in end}
