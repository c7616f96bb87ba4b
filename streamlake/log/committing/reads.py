"""What a transaction read, kept as expressions, to be tested against what others commit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from streamlake.protocol import AddFile, Metadata, RemoveFile


class ReadPredicate(Protocol):
    """Which rows a transaction read: all that satisfy it, those that were not there included.

    Kept as an expression, not as the files that it matched, so that files which come later can be
    tested: by their partition values and statistics, without reading them.
    """

    @property
    def sql(self) -> str:
        """The predicate as SQL, for people."""

    def may_match(self, files: Sequence[AddFile], metadata: Metadata) -> bool:
        """Whether a row of any of ``files`` may satisfy it. True when in doubt.

        Args:
            files: Of the table that ``metadata`` describes. They may lack statistics.
            metadata: The table's. Partition values and statistics have physical names.
        """


@dataclass(frozen=True, slots=True)
class WholeTable:
    """The predicate that every row satisfies."""

    sql: str = "TRUE"
    """As SQL."""

    def may_match(self, files: Sequence[AddFile], metadata: Metadata) -> bool:
        """Whether there is a file at all."""
        del metadata
        return bool(files)


WHOLE_TABLE = WholeTable()
"""Read by whoever looked at every row, or at the table's file list as a whole."""


def matching(
    reads: Iterable[ReadPredicate], files: Sequence[AddFile], metadata: Metadata
) -> ReadPredicate | None:
    """The first of ``reads`` that a row of ``files`` may satisfy."""
    return next((read for read in reads if files and read.may_match(files, metadata)), None)


def matching_removed(
    reads: Sequence[ReadPredicate], removes: Sequence[RemoveFile], metadata: Metadata
) -> ReadPredicate | None:
    """The first of ``reads`` that a row of removed files may have satisfied.

    A remove need not say what partition the file was of; then it may have been of any.
    """
    if not (reads and removes):
        return None
    if metadata.partition_columns and any(r.partition_values is None for r in removes):
        return reads[0]
    return matching(reads, [_as_file(remove) for remove in removes], metadata)


def _as_file(remove: RemoveFile) -> AddFile:
    return AddFile(
        path=remove.path,
        partition_values=remove.partition_values or {},
        size=remove.size or 0,
        modification_time=0,
        data_change=remove.data_change,
        stats=remove.stats,
        deletion_vector=remove.deletion_vector,
    )
