"""Pipeline: from a source to a sink, until the source ends or somebody says stop."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeAlias

import pyarrow as pa

from streamlake.arguments import check_callable, check_methods, check_type
from streamlake.clock import SYSTEM_CLOCK, Clock
from streamlake.errors import CommitError
from streamlake.stream.batching import Batching, Collector
from streamlake.stream.contracts import Batch, Positions, Sink, Source, TendedSink

logger = logging.getLogger(__name__)

MAX_REWINDS = 8
"""How often in a row, without a batch stored in between, a refused commit is answered by reading
the positions anew."""
REWIND_PAUSE_S = 0.05
"""The longest pause before the first of these; each further one may be twice as long."""

SOURCE_METHODS = ("open", "batches", "rewind", "acknowledge", "close")
SINK_METHODS = ("open", "committed", "write", "close")

Transform: TypeAlias = Callable[[pa.Table], pa.Table]


class EventKind(Enum):
    """What a PipelineEvent tells of."""

    STORED = "stored"
    """A batch is stored and acknowledged."""
    REWOUND = "rewound"
    """A commit was refused or its outcome is unknown; the positions are read anew."""
    IDLE = "idle"
    """The source had nothing for a while."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineEvent:
    """What just happened in a pipeline; for progress displays and logs."""

    kind: EventKind
    batch: Batch | None = None
    """The batch that was stored."""
    version: int | None = None
    """The version that the sink made of it."""
    error: CommitError | None = None
    """Why the positions are read anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineResult:
    """What a run did."""

    batches: int = 0
    """Batches stored."""
    rows: int = 0
    """Rows stored."""
    version: int | None = None
    """The sink's version after the last one; None where there was none, or where it has no
    versions."""
    rewinds: int = 0
    """How often a refused or unknown commit made it read the positions anew."""
    is_stopped: bool = False
    """Whether it was stopped; otherwise the source ended."""


class Pipeline:
    """Carries batches from a source to a sink, one after the other, in the caller's thread.

    Delivery: exactly once where the source replays and the sink stores positions with the rows,
    across crashes at any instruction, lost answers of the store, and other pipelines that run by
    mistake or not yet gone under the same name. Otherwise as the weaker of the two says.

    A pipeline keeps no state: what is stored says where the next run goes on.

    When a commit is refused (FencedError and the conflicts) nothing of it was stored. When its
    outcome is unknown it may have landed, or may still land. Both are answered alike: read the
    stored positions and resume from there. If the commit landed, the positions say so and its rows
    are not read again. If it has not, it still can, but only at the version that it was put at, and
    only while nobody has that version. The next commit is tried at that same version or finds it
    taken: it wins the version, and then the late one never lands; or it loses to the late one, sees
    that a position is no longer the expected one, and is refused in turn. So no row is stored
    twice, whichever comes first.
    """

    def __init__(
        self,
        source: Source,
        sink: Sink,
        *,
        transform: Transform | None = None,
        batching: Batching | None = None,
        on_event: Callable[[PipelineEvent], None] | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """A pipeline that has not been opened yet.

        Args:
            source: Where batches come from.
            sink: Where they are stored.
            transform: Makes of each batch's rows the rows to store; may drop all of them, may not
                depend on anything but the rows, for it is called again after a crash.
            batching: How to merge batches before they are stored; None stores each as it comes.
            on_event: Told of what happens, in the caller's thread.
            clock: Where time comes from.

        Raises:
            InvalidInputError: An argument of another type.
        """
        check_methods("source", source, SOURCE_METHODS, remedy="Give a Source, as sl.TableSource.")
        check_methods("sink", sink, SINK_METHODS, remedy="Give a Sink, as sl.TableSink.")
        check_type("batching", batching, Batching, remedy="Give sl.Batching(max_rows=1000).")
        check_callable("transform", transform)
        check_callable("on_event", on_event)
        self._source = source
        self._sink = sink
        self._transform = transform
        self._on_event = on_event
        self._clock = clock
        self._collector = Collector(batching or Batching())
        self._result = PipelineResult()
        self._rewinds_in_a_row = 0
        self._is_stopping = False

    def stop(self) -> None:
        """End the run after the current batch. Callable from signal handlers and other threads."""
        self._is_stopping = True

    def run(self, *, stop: Callable[[], bool] | None = None) -> PipelineResult:
        """Run until the source ends, or until ``stop()`` was called or the given one returns true.

        What was read by then is stored; only where that commit is refused after a stop, the next
        run reads it again. Source and sink are closed in every case, so that a pipeline runs once.

        Raises:
            FencedError: Another owner keeps moving our positions.
            CommitUnknownError: The store keeps losing answers.
            SourceError: The source failed for good.
            StreamlakeError: The data do not fit the sink, or a part failed; nothing of the batch
                that was not stored is lost where the source replays.
        """
        try:
            self._sink.open()
            self._source.open(self._committed)
            self._carry(stop or _never)
        finally:
            try:
                self._source.close()
            finally:
                self._sink.close()
        return self._result

    def _committed(self) -> Positions:
        """What is stored now; what was collected and is not yet is forgotten.

        The source reads it again. Kept, the sink would take it for news even if another owner has
        stored it meanwhile.
        """
        self._collector.clear()
        return self._sink.committed()

    def _carry(self, stop: Callable[[], bool]) -> None:
        """Go through the source; again as long as a commit was refused on the way.

        A source may have handed on its last batch before the refusal, and end without going back.
        """
        while True:
            rewinds = self._result.rewinds
            for batch in self._source.batches():
                self._take(batch)
                if self._is_stopping or stop():
                    self._result = replace(self._result, is_stopped=True)
                    break
            if self._collector:
                self._store()
            if self._result.is_stopped or self._result.rewinds == rewinds:
                return

    def _take(self, batch: Batch | None) -> None:
        """Collect a batch, and store what is due."""
        if batch is None:
            self._tell(PipelineEvent(kind=EventKind.IDLE))
        else:
            self._collect(batch)
        if self._collector.is_due(self._clock.monotonic()):
            self._store()
        self._tend()

    def _collect(self, batch: Batch) -> None:
        has_rows = batch.data.num_rows > 0
        if self._transform is not None:
            batch = replace(batch, data=self._transform(batch.data))
        if self._collector.fits(batch) or self._store():
            self._collector.add(batch, self._clock.monotonic(), lingers=has_rows)

    def _store(self) -> bool:
        """Store what was collected; False where the source was rewound instead."""
        batch = self._collector.take()
        try:
            version = self._sink.write(batch)
        except CommitError as error:
            self._rewind(error)
            return False
        self._rewinds_in_a_row = 0
        self._source.acknowledge(batch)
        self._result = replace(
            self._result,
            batches=self._result.batches + 1,
            rows=self._result.rows + batch.data.num_rows,
            version=self._result.version if version is None else version,
        )
        self._tell(PipelineEvent(kind=EventKind.STORED, batch=batch, version=version))
        return True

    def _tend(self) -> None:
        if isinstance(self._sink, TendedSink):
            try:
                self._sink.tend()
            except CommitError as error:
                self._rewind(error)

    def _rewind(self, error: CommitError) -> None:
        """Read the positions anew after a commit that did not happen, or may not have.

        Raises:
            CommitError: It did not help often enough.
        """
        if self._rewinds_in_a_row >= MAX_REWINDS:
            raise error
        logger.warning("reading the positions anew: %s", error.what)
        pause_s = REWIND_PAUSE_S * 2.0**self._rewinds_in_a_row
        self._rewinds_in_a_row += 1
        self._result = replace(self._result, rewinds=self._result.rewinds + 1)
        self._collector.clear()
        self._tell(PipelineEvent(kind=EventKind.REWOUND, error=error))
        self._clock.sleep(pause_s * self._clock.jitter())
        self._source.rewind()

    def _tell(self, event: PipelineEvent) -> None:
        if self._on_event is not None:
            self._on_event(event)


def _never() -> bool:
    return False
