"""Where reading begins, decided from markers, spans and the caller's wishes; no I/O."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import streamlake as sl
from streamlake_kafka.parts import Part, Span

logger = logging.getLogger(__name__)

Start: TypeAlias = Literal["earliest", "latest"] | Mapping[str, Mapping[int, int]]
"""Where parts without a stored position begin: ``"earliest"``, ``"latest"``, or the first offset to
deliver, by topic and partition (-2 stands for earliest, -1 for latest; partitions left out begin at
the earliest). The latest is that of the first start: once a position of the topic is stored, it
stands for the earliest."""

EARLIEST = -2
LATEST = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeRules:
    """What the caller of a KafkaSource said about beginnings."""

    start: Start = "earliest"
    """Where parts without a stored position begin."""
    fail_on_data_loss: bool = True
    """Whether messages that Kafka removed before they were read are an error."""
    ignore_group_offsets: bool = False
    """Whether a part without a stored position may begin anew although the group has one."""

    def __post_init__(self) -> None:
        """Refuse a start that can't be meant.

        Raises:
            InvalidInputError: It is none of the words, or an offset is not one.
        """
        if isinstance(self.start, str):
            if self.start not in {"earliest", "latest"}:
                raise sl.InvalidInputError(
                    f"start={self.start!r} is unknown.",
                    remedy="Pass 'earliest', 'latest' or {topic: {partition: offset}}.",
                )
            return
        bad = [
            f"{topic}/{partition}: {offset!r}"
            for topic, offsets in self.start.items()
            for partition, offset in offsets.items()
            if not isinstance(offset, int) or not EARLIEST <= offset < 2**63
        ]
        if bad:
            raise sl.InvalidInputError(
                "The start names offsets that Kafka can't have.",
                found=", ".join(bad),
                remedy="An offset is 0 or more, -2 for the earliest or -1 for the latest.",
            )

    @property
    def is_moving(self) -> bool:
        """Whether these rules begin elsewhere later, so that the beginning must be stored soon."""
        return self.start == "latest" or (
            not isinstance(self.start, str)
            and any(LATEST in offsets.values() for offsets in self.start.values())
        )

    def from_earliest(self) -> ResumeRules:
        """The rules for partitions added while reading: no message of theirs was seen yet."""
        return replace(self, start="earliest")

    def settled(self) -> ResumeRules:
        """The rules for topics of which a position is stored: latest becomes earliest.

        Parts of theirs without a position were empty when the latest was noted, or were not there.
        """
        if isinstance(self.start, str):
            return self.from_earliest()
        start = {
            topic: {n: EARLIEST if at == LATEST else at for n, at in offsets.items()}
            for topic, offsets in self.start.items()
        }
        return replace(self, start=start)

    def first_offset(self, part: Part) -> int:
        """The offset asked for, perhaps ``EARLIEST`` or ``LATEST``."""
        if isinstance(self.start, str):
            return LATEST if self.start == "latest" else EARLIEST
        offsets = {int(number): offset for number, offset in self.start.get(part.topic, {}).items()}
        return offsets.get(part.number, EARLIEST)


def resume_after(part: Part, position: int, span: Span, rules: ResumeRules) -> int:
    """The position to read on behind, where the sink has stored one.

    Args:
        part: The part.
        position: The stored position: the highest offset accounted for.
        span: What Kafka holds of the part.
        rules: Whether a loss is an error.

    Returns:
        The stored position, or one past the loss where the rules put up with it.

    Raises:
        OffsetOutOfRangeError: Kafka never gave out that offset, so the topic is another one now; or
            messages behind the position were removed.
    """
    if position >= span.high:
        raise sl.OffsetOutOfRangeError(
            f"The stored position {position} of {part.name} is beyond the end of the topic.",
            where=part.name,
            found=span.text,
            remedy="The topic was deleted and created anew, or these servers are another "
            "cluster's: read it under another app_id.",
        )
    if position + 1 >= span.low:
        return position
    return _pass_over(part, position + 1, span, rules)


def begin_after(part: Part, span: Span, group_offset: int | None, rules: ResumeRules) -> int:
    """The position to read on behind, where the sink has stored none.

    Args:
        part: The part.
        span: What Kafka holds of the part.
        group_offset: The next offset of the consumer group, where the group has one.
        rules: Where to begin.

    Returns:
        One before the first offset to deliver.

    Raises:
        OffsetOutOfRangeError: An offset asked for by number is not there.
        SourceError: The group's offset tells that the part was read before, so its position was
            lost.
    """
    if group_offset is not None and group_offset > 0 and not rules.ignore_group_offsets:
        raise sl.SourceError(
            f"The sink has no position of {part.name}, but the consumer group has read it before.",
            where=part.name,
            found=f"the group's next offset is {group_offset}",
            remedy="Check that the app_id and the table are the right ones; to begin anew all the "
            "same pass ignore_group_offsets=True, or use another group.id.",
        )
    first = rules.first_offset(part)
    if first == EARLIEST:
        return span.low - 1
    if first in {LATEST, span.high}:
        return span.high - 1
    if first > span.high:
        raise sl.OffsetOutOfRangeError(
            f"The start asks for offset {first} of {part.name}, which is not there yet.",
            where=part.name,
            found=span.text,
            remedy="Start at an offset that is there, at 'earliest' or at 'latest'.",
        )
    return first - 1 if first >= span.low else _pass_over(part, first, span, rules)


def _pass_over(part: Part, first: int, span: Span, rules: ResumeRules) -> int:
    """Skip what Kafka has removed, or refuse to."""
    if rules.fail_on_data_loss:
        raise sl.OffsetOutOfRangeError(
            f"Kafka removed offsets {first} to {span.low - 1} of {part.name}, unread.",
            where=part.name,
            found=span.text,
            remedy="Lengthen the topic's retention; to go on without them pass "
            "fail_on_data_loss=False.",
        )
    logger.warning(
        "%s: offsets %d to %d are gone from Kafka and passed over", part.name, first, span.low - 1
    )
    return span.low - 1
