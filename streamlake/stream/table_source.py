"""A table as a Source."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import replace
from os import PathLike

import pyarrow as pa

from streamlake.arguments import check_type
from streamlake.clock import SYSTEM_CLOCK, Clock
from streamlake.errors import InvalidInputError, TableReplacedError
from streamlake.log import Log
from streamlake.storage import open_store
from streamlake.stream.contracts import Batch, Positions
from streamlake.stream.offset import Offset
from streamlake.stream.options import TailOptions
from streamlake.stream.plan import reading_of
from streamlake.stream.start import Start, is_moving, parse_start
from streamlake.stream.table_sink import HasLog, Target, check_target
from streamlake.stream.tailer import OPTIONS_REMEDY, Stop, Tailer, check_stop

EMPTY_VERSIONS_PER_BATCH = 100
"""After that many versions without rows a batch without rows moves the stored position past them,
so that log clean-up does not overtake it."""


class TableSource:
    """The rows of a table in the order of their commits.

    Delivery: replayable. The position ``{"<table id>": Offset.to_marker()}`` stands at the end of a
    data file, so that a batch holds whole files; with a sink that stores it in one step with the
    rows, exactly once.

    Where the sink has a position of this table, the source resumes after it; otherwise it begins at
    ``start``, which is found out once, when the source is opened. What ``"latest"`` or a timestamp
    was found to mean is the position of a first batch without rows, so that a crash before the
    first row is stored moves it no further. Positions of another table but none of this one are an
    error: the table was made anew, or the sink's app_id belongs to another pipeline.
    """

    def __init__(
        self,
        source: Target,
        *,
        start: Start = "earliest",
        stop: Stop = None,
        options: TailOptions | None = None,
        storage_options: Mapping[str, str] | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """A source that is not open yet; reads nothing.

        Args:
            source: The table's location, or a handle on it.
            start: Where to begin where the sink has no position; see ``Start``.
            stop: Where to end; see ``Stop``. ``"latest"`` is found out when the source is opened.
            options: Bounds and policies of the tail; ``whole_files`` is always set.
            storage_options: As ``Table.open``, where the source is a location.
            clock: Where time comes from, where the source is a location.

        Raises:
            InvalidInputError: No such start or stop; an argument of another type.
        """
        check_target("source", source)
        check_type("options", options, TailOptions, remedy=OPTIONS_REMEDY)
        check_stop(stop)
        self._source = source
        self._start = parse_start(start)
        self._is_moving = is_moving(self._start)
        self._stop = stop
        self._options = replace(options or TailOptions(), whole_files=True)
        self._storage_options = storage_options
        self._clock = clock
        self._log: Log | None = None
        self._committed: Callable[[], Positions] = dict
        self._tailer: Tailer | None = None
        self._steps: Generator[Batch | None, None, None] | None = None
        self._first: Batch | None = None
        self._emitted_version = 0

    def open(self, committed: Callable[[], Positions]) -> None:
        """Open the table; resume after the position of it that ``committed`` gives.

        Raises:
            TableNotFoundError: There is no table.
            LogTruncatedError: Versions that were not read have been removed by log clean-up.
            TableReplacedError: The stored positions are of another table.
            InvalidInputError: A timestamp in the future, or a snapshot past the stop.
        """
        self._committed = committed
        self._log = self._opened()
        self._resume(self._log)

    def batches(self) -> Iterator[Batch | None]:
        """Batches of whole files; None while nothing comes.

        Raises:
            StreamlakeError: As ``tail``.
        """
        while True:
            tailer, steps = self._running()
            first, self._first = self._first, None
            if first is not None:
                yield first
                continue
            step = next(steps, _ENDED)
            if step is _ENDED:
                return
            if isinstance(step, Batch):
                yield self._positioned(step)
            else:
                yield self._progress(tailer)

    def rewind(self) -> None:
        """Forget what was read and not stored; resume after the stored position."""
        self._running()
        if self._log is not None:
            self._resume(self._log)

    def acknowledge(self, batch: Batch) -> None:
        """Nothing to do: the sink's marker is the position."""

    def close(self) -> None:
        """Stop reading. Idempotent."""
        if self._steps is not None:
            self._steps.close()
        self._steps = self._tailer = None

    def _resume(self, log: Log) -> None:
        self.close()
        positions = self._committed()
        table_id = (log.known_head or log.definition()).metadata.id
        start = self._start
        if table_id in positions:
            start = Offset.from_marker(positions[table_id], table_id)
        elif any("/" not in name for name in positions):
            raise TableReplacedError(
                "The sink's positions are of another table than the source.",
                where=log.url,
                found=f"positions of {', '.join(sorted(positions))}; this table is {table_id}",
                remedy="The source was made anew, or the app_id belongs to another pipeline: use "
                "another app_id for this one.",
            )
        self._tailer = Tailer(log, start=start, stop=self._stop, options=self._options)
        self._stop = self._tailer.stop_version
        if start is self._start and not isinstance(start, (int, Offset)):
            self._start = self._tailer.start
        self._emitted_version = self._tailer.first_version
        is_told = self._is_moving and table_id not in positions
        self._first = self._told(log, table_id, self._tailer) if is_told else None
        self._steps = self._tailer.steps()

    def _told(self, log: Log, table_id: str, tailer: Tailer) -> Batch:
        """A batch without rows at the position before all that the tailer will hand on."""
        start = tailer.start
        if not isinstance(start, Offset):
            start = Offset(reservoir_id=table_id, reservoir_version=start)
        reading = tailer.reading
        if reading is None:
            first, columns = log.definition(tailer.first_version), self._options.columns
            reading = reading_of(first.metadata, first.protocol, columns, where=log.url)
        empty = Batch(data=pa.Table.from_batches([], reading.projected_schema), offset=start)
        return self._positioned(empty)

    def _running(self) -> tuple[Tailer, Generator[Batch | None, None, None]]:
        if self._tailer is None or self._steps is None:
            raise InvalidInputError(
                "The source is not open.", remedy="Call open() first, as a Pipeline does."
            )
        return self._tailer, self._steps

    def _positioned(self, batch: Batch) -> Batch:
        offset = batch.offset
        if offset is None:
            return batch
        self._emitted_version = offset.reservoir_version
        return replace(batch, positions={offset.reservoir_id: offset.to_marker()})

    def _progress(self, tailer: Tailer) -> Batch | None:
        """A batch without rows where many versions had none; else None."""
        passed, reading = tailer.passed, tailer.reading
        if passed is None or reading is None:
            return None
        if passed.reservoir_version - self._emitted_version < EMPTY_VERSIONS_PER_BATCH:
            return None
        empty = Batch(data=pa.Table.from_batches([], reading.projected_schema), offset=passed)
        return self._positioned(empty)

    def _opened(self) -> Log:
        source = self._source
        if isinstance(source, Log):
            return source
        if isinstance(source, (str, PathLike)):
            return Log(open_store(source, self._storage_options), clock=self._clock)
        handle: HasLog = source
        return handle.log


_ENDED = object()
