"""Settings of librdkafka: what we insist on, what we prefer, what must never be shown."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from confluent_kafka import KafkaException

import streamlake as sl

Config: TypeAlias = Mapping[str, str | int | float | bool]
"""librdkafka's settings by their own names, such as ``bootstrap.servers``."""

SERVERS: Final = "bootstrap.servers"
GROUP: Final = "group.id"
SECRET_MARKS: Final = (
    "password",
    "secret",
    "token",
    "jaas",
    "key.pem",
    "private",
    "oauthbearer.config",
)

REQUIRED: Final[Config] = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
}
"""Positions come from the sink and from nowhere else; the end of a partition must be told."""

PREFERRED: Final[Config] = {
    "isolation.level": "read_committed",
    "reconnect.backoff.max.ms": 2000,
    "fetch.queue.backoff.ms": 10,
    "client.id": "streamlake",
    "fetch.wait.max.ms": 100,
    "topic.metadata.propagation.max.ms": 10_000,
}
"""A broker answers nothing else on a connection while a fetch waits there for messages: short waits
keep rewinds and rebalances short. Readers that are slower than the broker shall not pause for long.
"""

REQUIRED_OF_PRODUCERS: Final[Config] = {
    "acks": "all",
    "enable.idempotence": True,
    "delivery.report.only.error": True,
}
"""Stored means stored by all replicas, once and in order."""

PREFERRED_OF_PRODUCERS: Final[Config] = {
    "client.id": "streamlake",
    "linger.ms": 5,
    "partitioner": "murmur2_random",
    "reconnect.backoff.max.ms": 2000,
}

librdkafka_logger = logging.getLogger("streamlake_kafka.librdkafka")
librdkafka_logger.addHandler(logging.NullHandler())
librdkafka_logger.setLevel(logging.INFO)


def consumer_settings(config: Config) -> dict[str, Any]:
    """The settings of a consumer: the user's, and ours.

    Raises:
        InvalidInputError: There are no servers, or a setting contradicts how positions are kept.
    """
    require_servers(config)
    against = {
        name: config[name]
        for name, value in REQUIRED.items()
        if name in config and str(config[name]).lower() != str(value).lower()
    }
    if against:
        raise sl.InvalidInputError(
            "These Kafka settings would move positions behind the sink's back.",
            found=", ".join(f"{name}={value}" for name, value in against.items()),
            remedy="Leave them out; where to begin is said by start=.",
        )
    return {**PREFERRED, GROUP: "streamlake", **config, **REQUIRED, "logger": librdkafka_logger}


def producer_settings(config: Config, **ours: str) -> dict[str, Any]:
    """The settings of a producer that loses and repeats nothing by itself.

    Args:
        config: The user's.
        ours: More of ours, with "_" for ".".

    Raises:
        InvalidInputError: There are no servers.
    """
    require_servers(config)
    extra = {name.replace("_", "."): value for name, value in ours.items()}
    settings = {**PREFERRED_OF_PRODUCERS, **config, **REQUIRED_OF_PRODUCERS, **extra}
    return {**settings, "logger": librdkafka_logger}


def admin_settings(config: Config) -> dict[str, Any]:
    """The settings of an administrator."""
    return {**config, "logger": librdkafka_logger}


def require_servers(config: Config) -> str:
    """The servers named in ``config``.

    Raises:
        InvalidInputError: There are none.
    """
    servers = str(config.get(SERVERS, ""))
    if not servers:
        raise sl.InvalidInputError(
            f"The Kafka settings have no {SERVERS}.", remedy=f'Pass {{"{SERVERS}": "HOST:PORT"}}.'
        )
    return servers


def bad_setting(error: KafkaException, config: Config) -> sl.InvalidInputError:
    """The error of settings that librdkafka refuses; without the values of secrets."""
    text = error.args[0].str() if error.args else str(error)
    for name, value in config.items():
        if is_secret(name) and str(value):
            text = text.replace(str(value), "***")
    return sl.InvalidInputError(
        "The Kafka client refuses the settings.",
        found=text,
        remedy="See librdkafka's CONFIGURATION.md for names and values.",
    )


def is_secret(name: str) -> bool:
    """Whether a setting's value must never be shown."""
    return any(mark in name.lower() for mark in SECRET_MARKS)
