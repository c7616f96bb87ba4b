"""A Kafka consumer for positions and ranges, and what its errors mean to a caller."""

from __future__ import annotations

from collections.abc import Mapping

import streamlake as sl
from pyspark_streamlake_kafka.confluent import ck

DEFAULTS: Mapping[str, str] = {
    "group.id": "streamlake-spark",
    # A task that begins waits for the fetch that an earlier task left in flight.
    "fetch.wait.max.ms": "10",
}
OURS: Mapping[str, str] = {
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "auto.offset.reset": "error",
    "enable.partition.eof": "true",
}


def _codes(*names: str) -> frozenset[int]:
    """Error codes by name; those of librdkafka itself begin with an underscore."""
    return frozenset(getattr(ck.KafkaError, name) for name in names)


AWAY = _codes(
    "_TRANSPORT",
    "_ALL_BROKERS_DOWN",
    "_TIMED_OUT",
    "_RESOLVE",
    "_WAIT_COORD",
    "LEADER_NOT_AVAILABLE",
    "NOT_LEADER_FOR_PARTITION",
    "BROKER_NOT_AVAILABLE",
    "REQUEST_TIMED_OUT",
    "NETWORK_EXCEPTION",
    "PREFERRED_LEADER_NOT_AVAILABLE",
)
"""No broker answers, or not the one that leads; asking again may help."""
MISSING = _codes("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION")
PARTITION_END = _codes("_PARTITION_EOF")
OUT_OF_RANGE = _codes("_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE")


class LastError:
    """Remembers what librdkafka said last about its connections: the reason behind a time-out."""

    def __init__(self) -> None:
        self.text = ""

    def __call__(self, error: ck.KafkaError) -> None:
        """Take an error event; librdkafka calls it while it is polled."""
        self.text = error.str()


def open_consumer(client: Mapping[str, str]) -> tuple[ck.Consumer, LastError]:
    """A consumer that takes part in no group and stores no offsets; connects when first asked.

    Raises:
        InvalidInputError: A setting that librdkafka does not know or can't take.
    """
    last = LastError()
    try:
        consumer = ck.Consumer({**DEFAULTS, **client, **OURS, "error_cb": last})
    except (ck.KafkaException, ValueError, TypeError) as error:
        raise sl.InvalidInputError(
            "librdkafka refuses a kafka.* option.",
            found=reason(error),
            remedy="Options go to librdkafka, whose names differ from the Java client's for TLS "
            "and SASL: see its CONFIGURATION.md (ssl.ca.location, sasl.username, ...).",
        ) from error
    return consumer, last


def reason(error: BaseException) -> str:
    """What librdkafka says, without the wrapping."""
    inner = error.args[0] if error.args else error
    return inner.str() if isinstance(inner, ck.KafkaError) else str(inner)


def typed_error(error: ck.KafkaError, *, what: str, where: str, found: str = "") -> sl.SourceError:
    """The error of ours that stands for one of librdkafka's.

    Args:
        error: librdkafka's.
        what: One sentence: what was asked.
        where: The topic or partition, and the broker.
        found: The reason behind it, where it is known better than the error tells.
    """
    found = found or error.str()
    if error.code() in MISSING:
        return sl.TopicNotFoundError(
            what, where=where, found=found, remedy="Create the topic, or correct its name."
        )
    if error.code() in AWAY:
        return sl.SourceUnavailableError(
            what,
            where=where,
            found=found,
            remedy="See that the brokers run and that kafka.bootstrap.servers names them as this "
            "machine reaches them.",
        )
    return sl.SourceError(what, where=where, found=found)
