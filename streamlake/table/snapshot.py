"""Snapshot: the table at one version, as users hold it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from streamlake import operations
from streamlake.log import (
    FileList,
)
from streamlake.log import Snapshot as LogSnapshot
from streamlake.protocol import Metadata, SetTransaction
from streamlake.storage import ObjectStore


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The table at one version; it does not change when the table does."""

    _state: LogSnapshot
    _store: ObjectStore

    def __repr__(self) -> str:
        return f"Snapshot({self.url!r}, version={self.version})"

    @property
    def url(self) -> str:
        """The table's location, without secrets."""
        return self._store.url

    @property
    def version(self) -> int:
        """The version."""
        return self._state.version

    @property
    def schema(self) -> pa.Schema:
        """The table's schema."""
        return self._state.schema

    @property
    def metadata(self) -> Metadata:
        """The table's metadata: id, partitioning, properties."""
        return self._state.metadata

    @property
    def markers(self) -> Mapping[str, SetTransaction]:
        """The latest marker of each app_id."""
        return self._state.markers

    def files(self, *, where: str | None = None) -> FileList:
        """The logical files of the table, held by column; AddFile values where asked for.

        Args:
            where: An SQL condition over the table's columns: only files that may hold a row for
                which it is true, as far as partition values and statistics tell.

        Raises:
            InvalidInputError: ``where`` is no condition, or has a part that is not supported.
        """
        return operations.list_files(self._state, where)

    def txn_version(self, app_id: str) -> int | None:
        """The version of the latest marker of ``app_id``; None where there is none."""
        return self._state.txn_version(app_id)

    def to_arrow(
        self, *, columns: Sequence[str] | None = None, where: str | None = None
    ) -> pa.Table:
        """The rows of the table, in the order in which their files joined it.

        Args:
            columns: Which columns, in which order; all for None.
            where: An SQL condition in Spark's dialect: only the rows for which it is true. Files
                that can't hold any are not opened.

        Raises:
            InvalidInputError: A column that the table does not have; ``where`` is no condition, has
                a part that is not supported, or can't be computed for a row.
            CorruptTableError: A data file is missing, torn or garbled.
        """
        return operations.read_rows(self._store, self._state, columns=columns, where=where)
