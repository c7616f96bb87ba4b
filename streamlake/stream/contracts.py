"""What a Source hands on, what a Sink takes, and who guarantees what."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, runtime_checkable

import pyarrow as pa

from streamlake.stream.offset import Offset

Positions: TypeAlias = Mapping[str, int]
"""How far a source has been consumed, by the name of each of its parts; a position never goes back.

Of a Kafka source ``{"<topic>/<partition>": highest offset accounted for}``; of a table
``{"<table id>": encoded position}`` (see ``Offset.to_marker``). A TableSink stores each as the
marker ``"<app_id>/<name>"``.
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
    """When that version was committed, as the commit itself says, in milliseconds since the Unix
    epoch; set by a table's tail, None where the commit does not say."""


class Source(Protocol):
    """Where a Pipeline takes its batches from.

    Called from one thread, in this order: ``open`` once, ``batches``, ``acknowledge`` after each
    stored batch, ``rewind`` between two batches, ``close`` once, also after an error.

    Delivery: a source that honours ``committed`` is replayable; with a sink that stores positions
    and rows in one step, exactly once. A source that can't resume from positions gives at most
    once.
    """

    def open(self, committed: Callable[[], Positions]) -> None:
        """Connect, and remember how to ask for the stored positions.

        ``committed()`` reads the positions that the sink has stored *now*; the source resumes after
        each (the position itself was delivered). A source whose parts come and go (a consumer
        group) asks again whenever parts are assigned to it; after a FencedError the pipeline calls
        ``rewind``. Whoever asks resumes all parts from the answer: what was handed on and is not
        stored yet is forgotten.
        """

    def batches(self) -> Iterator[Batch | None]:
        """Batches in order of their positions, without end, or until the bound of the source.

        ``None`` says that nothing was there for a while, so that the pipeline can tend to time; it
        comes at least once a second. A batch may hold no rows and still move positions (a gap, a
        filter); it is stored at once where no rows wait. The pipeline may merge batches, and calls
        ``acknowledge`` with what it merged.
        Outages of the source are retried in here, with backoff, before SourceUnavailableError.
        """

    def rewind(self) -> None:
        """Forget what was read and not stored; ask ``committed`` again and resume from there.

        The iterator of ``batches`` goes on from the new position, or ends; when it has ended,
        ``batches`` is called again.
        """

    def acknowledge(self, batch: Batch) -> None:
        """The batch is stored. A source may tell others (Kafka's group offsets, for lag tools)."""

    def close(self) -> None:
        """Let go of connections. Idempotent; called also where ``open`` failed."""


class Sink(Protocol):
    """Where a Pipeline stores its batches.

    Called from one thread: ``open`` once, then ``committed`` and ``write`` in any order, ``close``
    once, also after an error.

    Delivery: exactly once if ``write`` stores rows and positions in one atomic step and refuses a
    moved position with FencedError; otherwise at least once.
    """

    def open(self) -> None:
        """Connect; claim what must be owned. Changes nothing that exists."""

    def committed(self) -> Positions:
        """The positions stored now; from here on they are what this sink expects to move from."""

    def write(self, batch: Batch) -> int | None:
        """Store rows and positions, also where there are no rows.

        Returns the table's version where there is one. Durable when it returns.

        Raises:
            FencedError: Another owner moved one of these positions since ``committed``.
            CommitUnknownError: The outcome could not be learnt in time.
        """

    def close(self) -> None:
        """Let go. Idempotent; called also where ``open`` failed."""


@runtime_checkable
class TendedSink(Sink, Protocol):
    """A sink with duties that fall due as time passes."""

    def tend(self) -> None:
        """Do what is due; called between batches and while idle. Cheap where nothing is.

        Raises:
            FencedError: As ``write``.
            CommitUnknownError: As ``write``.
        """
