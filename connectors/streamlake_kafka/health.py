"""Whether the brokers answer, and telling so without telling it a thousand times."""

from __future__ import annotations

import logging
from collections.abc import Callable

from confluent_kafka import KafkaError

import streamlake as sl
from streamlake_kafka.codes import ALL_BROKERS_DOWN

logger = logging.getLogger(__name__)

TELL_INTERVAL_S = 10.0
"""How often an outage that lasts is told again."""


class Health:
    """What we know of the brokers' answering.

    librdkafka reconnects by itself, with backoff; this only watches, tells, and gives up after a
    bound.
    """

    def __init__(
        self,
        servers: str,
        *,
        clock: sl.Clock,
        on_event: Callable[[str], None] | None,
    ) -> None:
        self.servers = servers
        """Where the brokers are, as the caller named them."""
        self.max_outage_s: float | None = None
        """How long an outage may last before it is an error; None: as long as it lasts."""
        self._clock = clock
        self._on_event = on_event
        self._since: float | None = None
        self._told_at: float | None = None
        self._reason = ""
        self.is_suspect = False
        """Whether something happened after which it should be tried if the brokers answer."""

    def on_error(self, error: KafkaError) -> None:
        """Take note of what librdkafka tells (its ``error_cb``)."""
        if error.code() == ALL_BROKERS_DOWN:
            self.is_suspect = True
        else:
            self._reason = error.str()
        logger.debug("librdkafka: %s", error)

    def answered(self) -> None:
        """The brokers answered."""
        if self._told_at is not None and self._since is not None:
            self._tell(f"Kafka at {self.servers} answers again after {self._outage_s():.0f} s")
        self._since = self._told_at = None
        self._reason = ""
        self.is_suspect = False

    def failed(self, error: KafkaError) -> None:
        """The brokers were asked and did not answer.

        Raises:
            SourceUnavailableError: For longer than ``max_outage_s``.
        """
        now = self._clock.monotonic()
        self._since = now if self._since is None else self._since
        self._reason = self._reason or error.str()
        self.is_suspect = True
        if self.max_outage_s is not None and self._outage_s() >= self.max_outage_s:
            raise self.unavailable()
        if self._told_at is None or now - self._told_at >= TELL_INTERVAL_S:
            lasting = f" for {self._outage_s():.0f} s" if self._told_at is not None else ""
            self._told_at = now
            text = f"Kafka at {self.servers} does not answer{lasting}, trying again"
            self._tell(f"{text}: {self._reason}" if self._reason else text)

    def unavailable(self) -> sl.SourceUnavailableError:
        """The error of brokers that stay away."""
        return sl.SourceUnavailableError(
            f"Kafka does not answer at {self.servers}, after {self._outage_s():.0f} s of trying.",
            where=self.servers,
            found=self._reason,
            remedy="Check bootstrap.servers, the network, security.protocol, that the brokers run.",
        )

    def _outage_s(self) -> float:
        return 0.0 if self._since is None else self._clock.monotonic() - self._since

    def _tell(self, text: str) -> None:
        logger.warning("%s", text)
        if self._on_event is not None:
            self._on_event(text)
