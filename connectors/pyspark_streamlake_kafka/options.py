"""What ``.option(...)`` may say, named as Spark's Kafka source names it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Self, TypeAlias, TypeVar

import streamlake as sl
from pyspark_streamlake_kafka.offsets import (
    EARLIEST,
    LATEST,
    Offsets,
    TopicPartition,
    parse_assignment,
    parse_offsets,
)

Position: TypeAlias = Literal["earliest", "latest"] | Offsets
"""Where to start or end: at one edge of every partition, or at an offset of each."""

SUBSCRIPTIONS = ("subscribe", "subscribePattern", "assign")
OPTIONS = (
    *SUBSCRIPTIONS,
    "startingOffsets",
    "endingOffsets",
    "maxOffsetsPerTrigger",
    "minPartitions",
    "failOnDataLoss",
    "includeHeaders",
    "kafkaConsumer.pollTimeoutMs",
)
CLIENT_PREFIX = "kafka."
SERVERS = "bootstrap.servers"
OURS_TO_SET = frozenset(
    {"auto.offset.reset", "enable.auto.commit", "enable.auto.offset.store", "enable.partition.eof"}
)
DEFAULT_POLL_TIMEOUT_MS = 120_000

Parsed = TypeVar("Parsed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """Which partitions: those of ``topics``, of topics that match ``pattern``, or ``assigned``."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    assigned: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaOptions:
    """The options of one query, checked."""

    client: Mapping[str, str] = field(repr=False)
    """Of librdkafka; may hold secrets."""
    subscription: Subscription
    starting: Position | None
    """None where the user does not say: a stream starts at the latest, a batch at the earliest."""
    ending: Position | None
    max_offsets_per_trigger: int | None
    min_partitions: int | None
    fail_on_data_loss: bool
    include_headers: bool
    poll_timeout_ms: int

    def checked_for_stream(self) -> Self:
        """Itself.

        Raises:
            InvalidInputError: ``endingOffsets`` is set.
        """
        if self.ending is not None:
            raise _refused("endingOffsets", "A stream has no end.", "Leave it out.")
        return self

    def checked_for_batch(self) -> Self:
        """Itself.

        Raises:
            InvalidInputError: It starts at the latest or ends at the earliest offset.
        """
        if _touches(self.starting, "latest", LATEST):
            raise _refused("startingOffsets", "A batch can't start at the latest.", "earliest")
        if _touches(self.ending, "earliest", EARLIEST):
            raise _refused("endingOffsets", "A batch can't end at the earliest.", "latest")
        return self


def parse_options(given: Mapping[str, str]) -> KafkaOptions:
    """Check what a user set.

    Args:
        given: Options by name; Spark hands them on in lower case.

    Raises:
        InvalidInputError: An option that is unknown, missing or malformed.
    """
    options = {name.lower(): value for name, value in given.items()}
    _refuse_unknown(options)
    read = _Reader(options)
    return KafkaOptions(
        client=_client(options),
        subscription=_subscription(options),
        starting=read("startingOffsets", lambda text: _position(text, "startingOffsets")),
        ending=read("endingOffsets", lambda text: _position(text, "endingOffsets")),
        max_offsets_per_trigger=read("maxOffsetsPerTrigger", _positive),
        min_partitions=read("minPartitions", _positive),
        fail_on_data_loss=read.or_else("failOnDataLoss", _boolean, default=True),
        include_headers=read.or_else("includeHeaders", _boolean, default=False),
        poll_timeout_ms=read.or_else(
            "kafkaConsumer.pollTimeoutMs", _positive, default=DEFAULT_POLL_TIMEOUT_MS
        ),
    )


class _Reader:
    """Takes options by name and tells which one is malformed."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options

    def __call__(self, name: str, parse: Callable[[str], Parsed]) -> Parsed | None:
        text = self._options.get(name.lower())
        if text is None:
            return None
        try:
            return parse(text)
        except sl.InvalidInputError:
            raise
        except ValueError as error:
            raise sl.InvalidInputError(
                f"Option {name} is malformed.", where=f"option {name}", found=f"{text!r}: {error}"
            ) from error

    def or_else(self, name: str, parse: Callable[[str], Parsed], *, default: Parsed) -> Parsed:
        value = self(name, parse)
        return default if value is None else value


def _refuse_unknown(options: Iterable[str]) -> None:
    known = {name.lower(): name for name in OPTIONS}
    for name in options:
        if name in known or name.startswith(CLIENT_PREFIX):
            continue
        close = difflib.get_close_matches(name, known, n=1)
        raise sl.InvalidInputError(
            f"Unknown option {name!r} of format streamlake_kafka.",
            where=f"option {name}",
            remedy=(f"Did you mean {known[close[0]]!r}? " if close else "")
            + f"Known are {', '.join(OPTIONS)} and kafka.* for librdkafka's own settings.",
        )


def _client(options: Mapping[str, str]) -> dict[str, str]:
    client = {
        name.removeprefix(CLIENT_PREFIX): value
        for name, value in options.items()
        if name.startswith(CLIENT_PREFIX)
    }
    if not client.get(SERVERS):
        raise _refused(f"kafka.{SERVERS}", "It is missing.", '"host1:9092,host2:9092"')
    for name in sorted(OURS_TO_SET & client.keys()):
        raise _refused(f"kafka.{name}", "The source sets it itself.", "Leave it out.")
    return client


def _subscription(options: Mapping[str, str]) -> Subscription:
    given = [name for name in SUBSCRIPTIONS if name.lower() in options]
    if len(given) != 1:
        raise sl.InvalidInputError(
            f"Exactly one of {', '.join(SUBSCRIPTIONS)} must be set.",
            found=", ".join(given) or "none of them",
        )
    text = options[given[0].lower()].strip()
    if given[0] == "assign":
        subscription = Subscription(assigned=parse_assignment(text))
    elif given[0] == "subscribePattern":
        subscription = Subscription(pattern=_pattern(text))
    else:
        names = dict.fromkeys(part.strip() for part in text.split(","))
        subscription = Subscription(topics=tuple(name for name in names if name))
    if subscription == Subscription():
        raise _refused(given[0], "It names no topic.", "Name at least one.")
    return subscription


def _pattern(text: str) -> str | None:
    try:
        re.compile(text)
    except re.error as error:
        raise _refused("subscribePattern", f"{text!r}: {error}.", "a regular expression") from error
    return text or None


def _position(text: str, option: str) -> Position:
    edge = text.strip().lower()
    if edge == "earliest":
        return "earliest"
    return "latest" if edge == "latest" else parse_offsets(text, option=option)


def _positive(text: str) -> int:
    number = int(text)
    if number <= 0:
        raise ValueError("must be above 0")
    return number


def _boolean(text: str) -> bool:
    spelled = {"true": True, "false": False}
    if text.lower() not in spelled:
        raise ValueError("must be true or false")
    return spelled[text.lower()]


def _touches(position: Position | None, edge: str, number: int) -> bool:
    if position is None or isinstance(position, str):
        return position == edge
    return number in position.values()


def _refused(option: str, why: str, remedy: str) -> sl.InvalidInputError:
    return sl.InvalidInputError(
        f"Option {option} can't be taken: {why}", where=f"option {option}", remedy=remedy
    )
