"""From the files of one version to batches of bounded size, each with its Offset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from streamlake.errors import StreamlakeError
from streamlake.stream.contracts import Batch
from streamlake.stream.offset import Offset
from streamlake.stream.reading_ahead import AheadReader, FileToRead

MAX_BATCH_BYTES = 64 * 2**20
"""A batch that has reached this size of Arrow data is handed on before more is added to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedVersion:
    """What a tail hands on of one version; or why it can't."""

    version: int
    timestamp_ms: int | None = None
    is_starting: bool = False
    """Whether it is an initial snapshot."""
    table_id: str = ""
    files: tuple[FileToRead, ...] = ()
    error: StreamlakeError | None = None


class BatchCutter:
    """Cuts the rows of one version into batches."""

    def __init__(self, planned: PlannedVersion, *, max_rows: int, whole_files: bool) -> None:
        self._planned = planned
        self._max_rows = max_rows
        self._whole_files = whole_files
        self._pieces: list[pa.Table] = []
        self._rows = 0
        self._bytes = 0

    def batches(self, reader: AheadReader) -> Iterator[Batch]:
        """The version's rows in order; its last batch stands before the next version.

        A batch is handed on when there is more to come than it may hold, or at the end; so no
        Offset lies inside of a file whose rows are done.
        """
        position = self._end()
        for file in self._planned.files:
            if self._whole_files and self._is_full():
                yield self._taken(position)
            done = file.start_row
            for table in reader.rows_of(file):
                for piece in self._cut(table):
                    if not self._whole_files and self._is_full():
                        yield self._taken(position)
                    self._add(piece)
                    done += piece.num_rows
                    position = self._at(file.index - 1, rows_done=done)
            position = self._at(file.index)
        if self._rows:
            yield self._taken(self._end())

    def _cut(self, table: pa.Table) -> Iterable[pa.Table]:
        """The table in pieces, of which each fits the batch that is being filled."""
        if self._whole_files or self._rows + table.num_rows <= self._max_rows:
            return (table,) if table.num_rows else ()
        return self._slices(table)

    def _slices(self, table: pa.Table) -> Iterator[pa.Table]:
        start = 0
        while start < table.num_rows:
            room = 0 if self._is_full() else self._max_rows - self._rows
            piece = table.slice(start, room or self._max_rows)
            yield piece
            start += piece.num_rows

    def _is_full(self) -> bool:
        return self._rows >= self._max_rows or self._bytes >= MAX_BATCH_BYTES

    def _add(self, piece: pa.Table) -> None:
        self._pieces.append(piece)
        self._rows += piece.num_rows
        self._bytes += piece.nbytes

    def _taken(self, offset: Offset) -> Batch:
        pieces = self._pieces
        self._pieces = []
        self._rows = self._bytes = 0
        return Batch(
            data=pieces[0] if len(pieces) == 1 else pa.concat_tables(pieces),
            offset=offset,
            version=self._planned.version,
            timestamp_ms=self._planned.timestamp_ms,
        )

    def _at(self, index: int, *, rows_done: int = 0) -> Offset:
        planned = self._planned
        return Offset(
            reservoir_id=planned.table_id,
            reservoir_version=planned.version,
            index=index,
            is_starting_version=planned.is_starting,
            rows_done=rows_done,
        )

    def _end(self) -> Offset:
        return Offset.after_version(self._planned.version, self._planned.table_id)
