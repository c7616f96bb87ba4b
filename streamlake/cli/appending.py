"""Rows into commits: one of everything, or one every so many rows; with markers exactly once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from streamlake import CommitResult, InvalidInputError, SetTransaction, Table

ROWS_SUFFIX = "/rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """One commit that was made, or found made."""

    version: int
    rows: int
    already_committed: bool

    def to_json(self) -> dict[str, Any]:
        """As a script reads it."""
        return {
            "version": self.version,
            "rows": self.rows,
            "alreadyCommitted": self.already_committed,
        }


class RowMarker:
    """How many rows of an input a table has: the marker ``"<app_id>/rows"``.

    Its version counts the rows from the input's beginning, so that a repeat goes on where the last
    one ended, whatever the sizes of the commits. It is compared and set: a second writer of the
    same app_id is fenced.
    """

    def __init__(self, app_id: str, found: SetTransaction | None) -> None:
        self.app_id = app_id
        self._known = found
        self._done = 0 if found is None else found.version

    @classmethod
    def of(cls, table: Table, app_id: str) -> RowMarker:
        """The marker as the table has it now."""
        name = app_id + ROWS_SUFFIX
        return cls(name, table.markers().get(name))

    def after_known(self, rows: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """The rows that the table does not have yet.

        Raises:
            InvalidInputError: The input is shorter than what the table has of it.
        """
        left = self._done
        for part in rows:
            if left < part.num_rows:
                yield part.slice(left)
            left = max(0, left - part.num_rows)
        if left:
            raise InvalidInputError(
                "The input has fewer rows than were appended of it before.",
                where=f"marker {self.app_id!r}",
                found=f"{self._done - left} rows; the table has {self._done}",
                remedy="Give the same input again, or another --app-id for another input.",
            )

    def next(self, row_count: int) -> SetTransaction:
        """The marker of a commit of the next ``row_count`` rows."""
        return SetTransaction(self.app_id, self._done + row_count)

    @property
    def expected(self) -> dict[str, SetTransaction | None]:
        """What must stand in the table at the commit."""
        return {self.app_id: self._known}

    def moved(self, result: CommitResult) -> None:
        """The commit was made."""
        self._known = result.markers[self.app_id]
        self._done = self._known.version


def append_whole(
    table: Table,
    rows: Iterator[pa.Table],
    *,
    txn: SetTransaction | None = None,
    marker: RowMarker | None = None,
) -> Iterator[Appended]:
    """All rows in one commit, in bounded memory: files are staged as rows come.

    Args:
        table: Where to.
        rows: In the table's schema.
        txn: A marker that names all these rows.
        marker: Counts rows instead.

    Yields:
        The commit, or nothing where there were no rows.
    """
    if txn is not None:
        known = table.markers().get(txn.app_id)
        if known is not None and txn.version <= known.version:
            yield Appended(version=table.version, rows=0, already_committed=True)
            return
    batches = (batch for part in rows for batch in part.to_batches())
    with pa.RecordBatchReader.from_batches(table.schema, batches) as reader:
        files = table.stager().stage(reader)
    count = sum(file.num_records or 0 for file in files)
    if count == 0 and txn is None:
        return
    if marker is None:
        result = table.commit_staged(files, txn=txn)
    else:
        result = table.commit_staged(files, txn=marker.next(count), expect=marker.expected)
    yield Appended(version=result.version, rows=count, already_committed=result.already_committed)


def append_batches(
    table: Table, rows: Iterator[pa.Table], *, batch_rows: int, marker: RowMarker | None
) -> Iterator[Appended]:
    """A commit for each ``batch_rows`` rows as they come, and one for what is left at the end.

    Yields:
        Each commit, once it is durable.
    """
    for batch in regrouped(rows, batch_rows):
        if marker is None:
            result = table.append(batch)
        else:
            txn = marker.next(batch.num_rows)
            result = table.append(batch, txn=txn, expect=marker.expected)
            marker.moved(result)
        yield Appended(
            version=result.version,
            rows=batch.num_rows,
            already_committed=result.already_committed,
        )


def regrouped(rows: Iterator[pa.Table], size: int) -> Iterator[pa.Table]:
    """The same rows in tables of ``size`` rows; the last may have fewer, none is empty."""
    waiting: list[pa.Table] = []
    count = 0
    for part in rows:
        waiting.append(part)
        count += part.num_rows
        if count < size:
            continue
        together = pa.concat_tables(waiting)
        for start in range(0, count - size + 1, size):
            yield together.slice(start, size)
        count %= size
        waiting = [together.slice(together.num_rows - count)]
    if count:
        yield pa.concat_tables(waiting)
