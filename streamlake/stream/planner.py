"""From commits, in order, to what a tail hands on of each."""

from __future__ import annotations

from collections.abc import Sequence

from streamlake.errors import InvalidInputError
from streamlake.log import Commit
from streamlake.protocol import AddFile
from streamlake.stream.cutting import PlannedVersion
from streamlake.stream.options import TailOptions
from streamlake.stream.plan import Reading, handed_on, reading_after, reading_at
from streamlake.stream.reading_ahead import FileToRead
from streamlake.stream.start import Beginning, check_same_table


class VersionPlanner:
    """Plans one version after the other, from a beginning on; knows how files are read by then."""

    def __init__(self, beginning: Beginning, options: TailOptions, *, where: str) -> None:
        self.reading: Reading | None = reading_at(beginning, options.columns, where=where)
        """How files are read now; None before the first commit."""
        self._beginning = beginning
        self._options = options
        self._where = where

    def snapshot(self) -> PlannedVersion | None:
        """The initial snapshot, where the beginning has one."""
        begun, reading = self._beginning, self.reading
        if begun.snapshot_files is None or reading is None:
            return None
        return PlannedVersion(
            version=begun.version,
            is_starting=True,
            table_id=reading.table_id,
            files=self._files_to_read(begun.version, begun.snapshot_files, reading),
        )

    def plan(self, commit: Commit) -> PlannedVersion:
        """What is handed on of the next commit.

        Raises:
            StreamlakeError: The commit stops the tail; see ``reading_after`` and ``handed_on``.
            InvalidInputError: The position that the tail began with is past the commit's files.
        """
        options, where = self._options, self._where
        reading = reading_after(
            self.reading,
            commit,
            columns=options.columns,
            on_schema_change=options.on_schema_change,
            where=where,
        )
        if self._beginning.table_id is not None:
            check_same_table(self._beginning.table_id, reading.table_id, where=where)
        self.reading = reading
        adds = handed_on(commit, options.on_removed, where=where)
        info = commit.commit_info
        return PlannedVersion(
            version=commit.version,
            timestamp_ms=info.in_commit_timestamp_ms or info.timestamp_ms,
            table_id=reading.table_id,
            files=self._files_to_read(commit.version, adds, reading),
        )

    def _files_to_read(
        self, version: int, adds: Sequence[AddFile], reading: Reading
    ) -> tuple[FileToRead, ...]:
        """The files of a version that were not consumed before the tail began."""
        begun = self._beginning
        first, start_row = 0, 0
        if version == begun.version:
            first, start_row = begun.index + 1, begun.rows_done
            self._check_position(first, start_row, len(adds))
        return tuple(
            FileToRead(
                index=index,
                add=adds[index],
                reading=reading,
                start_row=start_row if index == first else 0,
            )
            for index in range(first, len(adds))
        )

    def _check_position(self, first: int, start_row: int, count: int) -> None:
        """A version without files is passed over: a policy may have left them out."""
        needed = first + 1 if start_row else first
        if needed <= count or not count:
            return
        raise InvalidInputError(
            f"The position lies past the files of version {self._beginning.version}.",
            where=self._where,
            found=f"{count} files; the position is after file {first - 1} "
            f"and {start_row} rows of the next",
            remedy="Pass an Offset of this table unchanged.",
        )
