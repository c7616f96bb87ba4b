"""Kafka topics as a Source."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal

import pyarrow as pa
from confluent_kafka import Message

import streamlake as sl
from streamlake_kafka.connection import Connection
from streamlake_kafka.group import GroupShare
from streamlake_kafka.health import Health
from streamlake_kafka.limits import ReadLimits
from streamlake_kafka.parts import Part, Progress, Span, topics_of
from streamlake_kafka.reader import Reader
from streamlake_kafka.resume import LATEST, ResumeRules, Start, begin_after, resume_after
from streamlake_kafka.settings import GROUP, Config, require_servers

logger = logging.getLogger(__name__)

COMMIT_INTERVAL_S = 1.0
SPAN_TRIES = 5
SPAN_PAUSE_S = 0.2


class KafkaSource:
    """Hands on the messages of Kafka topics, with the columns of ``kafka_schema``.

    The sink's positions, ``{"<topic>/<partition>": highest offset accounted for}``, decide where
    reading resumes: at the next offset, and every row's offset is compared with them. Kafka's own
    group offsets decide nothing. They are committed after each stored batch where the settings have
    a ``group.id``, so that lag tools see how far we are.

    ``start="latest"`` means the first start: where the partitions end then is stored before any row
    is delivered. Once a position of a topic is stored, its partitions without one (they were empty,
    or were added since) begin at their earliest. Of a topic that is wholly empty at the first start
    nothing is stored: until its first row is, the latest is found anew at each start.

    Without ``group`` the source reads all partitions by itself, and finds those that are added.
    With it, the partitions are shared with the other members of the consumer group; whenever they
    are dealt anew, what was read and not stored is read again from the stored positions.

    Positions count what is not delivered too: markers of transactions, aborted and compacted
    messages. Where they move without rows they travel with the next rows, or after some seconds in
    a batch without rows.

    Delivery: exactly once with a sink that stores positions and rows in one step; at least once
        otherwise.
    """

    def __init__(
        self,
        config: Config,
        *,
        topics: Sequence[str],
        group: bool = False,
        start: Start = "earliest",
        stop: Literal["latest"] | None = None,
        headers: bool = True,
        fail_on_data_loss: bool = True,
        ignore_group_offsets: bool = False,
        limits: ReadLimits | None = None,
        on_event: Callable[[str], None] | None = None,
        clock: sl.Clock = sl.SYSTEM_CLOCK,
    ) -> None:
        """A source that is not open yet; connects to nothing.

        Args:
            config: librdkafka's settings; ``bootstrap.servers`` at least.
            topics: What to read.
            group: Whether to share the partitions with the members of ``config["group.id"]``.
            start: Where partitions without a stored position begin: ``"earliest"``, ``"latest"`` or
                ``{topic: {partition: first offset}}``; partitions added later begin at their
                earliest. The latest is that of the first start.
            stop: ``"latest"`` ends the batches where each partition is through the end that it had
                at ``open``; None goes on.
            headers: Whether the ``headers`` column is wanted.
            fail_on_data_loss: Whether messages that Kafka removed before they were read are an
                error.
            ignore_group_offsets: Whether a partition without a stored position may begin anew
                although the consumer group has an offset of it.
            limits: Bounds of batches, waits and outages.
            on_event: Told, in a sentence, of outages and of their end; they are logged as warnings
                too.
            clock: Where time comes from.

        Raises:
            InvalidInputError: No topics, no servers, a group without ``group.id``, or a start that
                can't be.
        """
        require_servers(config)
        if isinstance(topics, str) or not topics or not all(topics):
            raise sl.InvalidInputError(
                "A KafkaSource needs the names of topics.",
                found=repr(topics),
                remedy='Pass topics=["orders"].',
            )
        if group and not config.get(GROUP):
            raise sl.InvalidInputError(
                "group=True needs the name of the group.", remedy=f"Put {GROUP} into the settings."
            )
        if stop not in {None, "latest"}:
            raise sl.InvalidInputError(
                f"stop={stop!r} is unknown.", remedy="Pass 'latest', or None to go on for ever."
            )
        self._config = dict(config)
        self._topics = tuple(dict.fromkeys(topics))
        self._is_grouped = group
        self._is_bounded = stop == "latest"
        self._headers = headers
        self._rules = ResumeRules(
            start=start,
            fail_on_data_loss=fail_on_data_loss,
            ignore_group_offsets=ignore_group_offsets,
        )
        self._limits = limits or ReadLimits()
        self._clock = clock
        self._health = Health(require_servers(config), clock=clock, on_event=on_event)
        self._progress = Progress(clock)
        self._committed: Callable[[], sl.Positions] = dict
        self._connection: Connection | None = None
        self._reader: Reader | None = None
        self._first_parts: frozenset[Part] = frozenset()
        self._begun: dict[Part, int] = {}
        self._group = GroupShare()
        self._stored: dict[Part, int] = {}
        self._commit_at = 0.0
        self._look_at = 0.0

    def __repr__(self) -> str:
        """Servers, topics and group; no other settings, for they may be secret."""
        group = f", group={self._config[GROUP]!r}" if GROUP in self._config else ""
        return f"KafkaSource({self._health.servers!r}, topics={list(self._topics)!r}{group})"

    def open(self, committed: Callable[[], sl.Positions]) -> None:
        """Connect, find the topics, and begin at the positions that ``committed()`` tells.

        Raises:
            SourceUnavailableError: No broker answers within ``connect_timeout_s``.
            TopicNotFoundError: A topic does not exist.
            OffsetOutOfRangeError: A stored position, or a start, is not in the topic (any more).
            SourceError: A position is missing that the consumer group tells of; or Kafka refuses.
            InvalidInputError: librdkafka refuses the settings.
        """
        self._committed = committed
        self._health.max_outage_s = self._limits.connect_timeout_s
        connection = Connection(self._config, health=self._health, clock=self._clock)
        self._connection = connection
        connection.connect()
        parts = connection.parts(self._topics)
        spans = connection.spans(parts) if self._is_bounded else {}
        self._reader = Reader(
            connection,
            self._progress,
            health=self._health,
            ends={part: span.high - 1 for part, span in spans.items()},
            headers=self._headers,
        )
        self._first_parts = frozenset(parts)
        self._look_at = self._clock.monotonic() + self._limits.discovery_interval_s
        if self._is_grouped:
            connection.subscribe(
                self._topics, on_assign=self._group.on_assign, on_revoke=self._group.on_revoke
            )
        else:
            self._seat(parts)
        self._health.max_outage_s = self._limits.max_outage_s

    def batches(self) -> Iterator[sl.Batch | None]:
        """Batches of rows, None when nothing came for a while; ends where ``stop`` says.

        Rows of one partition come in the order of their offsets. Brokers that are away are waited
        for.

        Raises:
            OffsetOutOfRangeError: Kafka removed messages before they were read.
            TopicNotFoundError: A topic was deleted.
            SourceUnavailableError: The brokers were away for longer than ``max_outage_s``.
            SourceError: Kafka refuses.
        """
        reader, _ = self._opened()
        while not self._is_at_end():
            self._commit_offsets()
            self._look_around()  # may read positions anew: not with a batch in hand
            yield self._next_batch()
        last = self._progress.tell()
        if last:
            yield sl.Batch(data=reader.no_rows, positions=last)

    def rewind(self) -> None:
        """Read again from the positions that ``committed()`` tells now."""
        owned = self._progress.positions()
        if owned:
            self._seat(owned)

    def acknowledge(self, batch: sl.Batch) -> None:
        """Commit the group's offsets of a stored batch, within a second and in the background.

        Nothing depends on them: a failure is logged. Does nothing without a ``group.id``.
        """
        if GROUP in self._config:
            parts = {part.name: part for part in self._progress.positions()}
            self._stored.update(
                {parts[name]: at for name, at in batch.positions.items() if name in parts}
            )
            self._commit_offsets()

    def close(self) -> None:
        """Commit what is acknowledged, leave the group, disconnect. Idempotent; bounded."""
        connection, self._connection = self._connection, None
        if connection is not None:
            if self._stored:
                connection.commit(self._stored)
            connection.close()

    def _opened(self) -> tuple[Reader, Connection]:
        if self._reader is None or self._connection is None:
            raise sl.InvalidInputError("The KafkaSource is not open.", remedy="Call open() first.")
        return self._reader, self._connection

    def _next_batch(self) -> sl.Batch | None:
        """Collect chunks up to the first bound; None where nothing came."""
        reader, _ = self._opened()
        if self._progress.is_due():
            moved = self._progress.tell()
            if moved:
                return sl.Batch(data=reader.no_rows, positions=moved)
        chunks: list[pa.Table] = []
        rows = size = 0
        while rows < self._limits.max_batch_rows and size < self._limits.max_batch_bytes:
            wanted = self._limits.chunk_rows(rows, size)
            wait_s = self._limits.linger_s if chunks else self._limits.poll_timeout_s
            messages = reader.read(wanted, wait_s, until_full=bool(chunks))
            if self._group.take_change():  # positions are read anew, and all of this again
                self._deal()
                return None
            is_dry = bool(chunks) and len(messages) < wanted
            chunk = self._take(messages)
            if chunk.num_rows:
                chunks.append(chunk)
                rows, size = rows + chunk.num_rows, size + chunk.nbytes
            if not chunks or is_dry or self._is_at_end():
                break
        if not chunks:
            return None
        return sl.Batch(data=pa.concat_tables(chunks), positions=self._progress.tell())

    def _take(self, messages: list[Message]) -> pa.Table:
        """The rows that are due; parts whose next offset is not there go on where the rules say."""
        reader, connection = self._opened()
        if messages and self._health.is_suspect:
            self._health.answered()
        rows = reader.take(messages)
        lost = {part: self._progress.read(part) for part in reader.take_lost()}
        for part, position in lost.items():
            if position is not None:
                span = connection.spans([part])[part]
                logger.warning("%s: offset %d is not there; %s", part.name, position + 1, span.text)
                self._progress.advance(part, resume_after(part, position, span, self._rules))
                self._assign()
        return rows

    def _seat(self, parts: Iterable[Part]) -> None:
        """Own these parts, from the stored positions, or from where they began, or begin.

        What was read of any part and is not stored may be forgotten by whom we ask: so these must
        be all.
        """
        stored = self._committed()
        owned = list(parts)
        beside = self._noted_beside(owned, stored)
        spans = self._spans([*owned, *beside], stored)
        self._begin(owned, spans, stored)
        self._progress.note({part: spans[part].high - 1 for part in beside})
        for part in owned:
            if part.name in stored:
                position = resume_after(part, stored[part.name], spans[part], self._rules)
                is_stored = position == stored[part.name]
            else:
                position, is_stored = self._begun[part], False
            is_urgent = not is_stored and self._rules.is_moving
            self._progress.seat(part, position, is_stored=is_stored, is_urgent=is_urgent)
        self._assign()

    def _begin(
        self, parts: Collection[Part], spans: Mapping[Part, Span], stored: sl.Positions
    ) -> None:
        """Find where parts without a stored position begin.

        A latest that we found, and another owner found before us, must not pass over what came in
        between: with a position of the topic stored, a part begins at the earliest after all.
        """
        _, connection = self._opened()
        known = topics_of(stored) if self._rules.is_moving else frozenset()
        missing = [part for part in parts if part.name not in stored]
        anew = [part for part in missing if part not in self._begun]
        group_offsets = connection.group_offsets(anew) if GROUP in self._config else {}
        for part in missing:
            if part not in self._begun or part.topic in known:
                rules = self._rules_of(part, is_known=part.topic in known)
                first = begin_after(part, spans[part], group_offsets.get(part), rules)
                self._begun[part] = min(first, self._begun.get(part, first))

    def _rules_of(self, part: Part, *, is_known: bool) -> ResumeRules:
        """The rules for a part without a stored position."""
        if part not in self._first_parts:
            return self._rules.from_earliest()
        return self._rules.settled() if is_known else self._rules

    def _noted_beside(self, owned: Collection[Part], stored: sl.Positions) -> list[Part]:
        """The parts that other members own and whose latest must be stored together with ours.

        Otherwise they would take it, once ours is stored, for that of parts that were empty.
        """
        if not self._is_grouped or not self._rules.is_moving:
            return []
        known = topics_of(stored)
        return [
            part
            for part in sorted(self._first_parts.difference(owned))
            if part.topic not in known and self._rules.first_offset(part) == LATEST
        ]

    def _spans(self, parts: Collection[Part], stored: sl.Positions) -> dict[Part, Span]:
        """What is there; a broker that has just started may tell too low an end at first."""
        _, connection = self._opened()
        for _ in range(SPAN_TRIES):
            spans = connection.spans(parts)
            if all(stored.get(part.name, -1) < span.high for part, span in spans.items()):
                break
            self._clock.sleep(SPAN_PAUSE_S)
        return spans

    def _assign(self) -> None:
        """Fetch what we own from our positions on."""
        offsets = {part: at + 1 for part, at in self._progress.positions().items()}
        self._opened()[1].assign(offsets)

    def _deal(self) -> None:
        """Take up what the group has dealt us: all of it from the stored positions."""
        self._progress.clear()
        if self._group.parts:
            self._seat(sorted(self._group.parts))

    def _is_at_end(self) -> bool:
        """Whether a bounded run is through with every part that it owns."""
        if not self._is_bounded or (self._is_grouped and not self._group.is_settled):
            return False
        return self._opened()[0].is_through()

    def _look_around(self) -> None:
        """From time to time: are the brokers there, are there new partitions?"""
        now = self._clock.monotonic()
        if not self._health.is_suspect and now < self._look_at:
            return
        self._look_at = now + self._limits.discovery_interval_s
        _, connection = self._opened()
        if not connection.probe() or self._is_grouped or self._is_bounded:
            return
        owned = self._progress.positions()
        added = [part for part in connection.parts(self._topics) if part not in owned]
        if added:
            logger.info("new partitions: %s", ", ".join(part.name for part in added))
            self._seat([*owned, *added])

    def _commit_offsets(self) -> None:
        now = self._clock.monotonic()
        if self._stored and now >= self._commit_at:
            self._commit_at = now + COMMIT_INTERVAL_S
            self._opened()[1].commit(self._stored)
            self._stored = {}
