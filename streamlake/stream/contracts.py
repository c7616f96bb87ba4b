"""What a Source hands on, what a Sink takes, and who guarantees what."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import pyarrow as pa

from streamlake.stream.offset import Offset

Positions: TypeAlias = Mapping[str, int]
"""How far a source has been consumed, by the name of each of its parts.

Of a Kafka source ``{"<topic>/<partition>": highest offset accounted for}``; of a table ``{"<table id>": encoded
position}`` (see ``Offset.to_marker``). A TableSink stores each as the marker ``"<app_id>/<name>"``.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Rows on their way, with their provenance."""

    data: pa.Table
    """The rows, in order."""
    positions: Positions = field(default_factory=dict)
    """The source's positions once these rows are stored; only the parts that this batch moves."""
    offset: Offset | None = None
    """Where to resume after this batch; set by a table's tail."""
    version: int | None = None
    """The version of the table that the rows came with; set by a table's tail."""
    timestamp_ms: int | None = None
    """When that version was committed, in milliseconds since the Unix epoch; set by a table's tail."""


class Source(Protocol):
    """Where a Pipeline takes its batches from.

    Called from one thread, in this order: ``open`` once, ``batches`` once, ``acknowledge`` after each stored batch,
    ``close`` once, also after an error.

    Delivery: a source that honours ``committed`` is replayable; with a sink that stores positions and rows in one
    step, exactly once. A source that can't resume from positions gives at most once.
    """

    def open(self, committed: Callable[[], Positions]) -> None:
        """Connect, and remember how to ask for the stored positions.

        ``committed()`` reads the positions that the sink has stored *now*; the source resumes after each (the
        position itself was delivered). A source whose parts come and go (a consumer group) asks again whenever parts
        are assigned to it; after a FencedError the pipeline calls ``rewind``.
        """

    def batches(self) -> Iterator[Batch | None]:
        """Batches in order of their positions, without end, or until the bound that the source was made with.

        ``None`` says that nothing was there for a while, so that the pipeline can tend to time. A batch may hold no
        rows and still move positions (a gap, a filter).
        """

    def rewind(self) -> None:
        """Forget what was read and not stored; ask ``committed`` again and resume from there."""

    def acknowledge(self, batch: Batch) -> None:
        """The batch is stored. A source may tell others (Kafka's group offsets, for lag tools)."""

    def close(self) -> None:
        """Let go of connections. Idempotent."""


class Sink(Protocol):
    """Where a Pipeline stores its batches.

    Delivery: exactly once if ``write`` stores rows and positions in one atomic step and refuses a moved position
    with FencedError; otherwise at least once.
    """

    def open(self) -> None:
        """Connect; claim what must be owned. Writes nothing."""

    def committed(self) -> Positions:
        """The positions stored now, and from here on the ones that this sink expects to move from."""

    def write(self, batch: Batch) -> int | None:
        """Store rows and positions. Durable when it returns; returns the table's version where there is one.

        Raises:
            FencedError: Another owner moved one of these positions since ``committed``.
            CommitUnknownError: The outcome could not be learnt in time.
        """

    def close(self) -> None:
        """Let go. Idempotent."""
