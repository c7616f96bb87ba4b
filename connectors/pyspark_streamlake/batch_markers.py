"""Exactly once by Spark's batch ids: one marker, the app_id, whose version is the batch id.

The checkpoint folder of the query is the truth about what was read; the marker only tells whether
its last batch has landed. A lost folder makes a new query, whose batches are counted from 0 again.
"""

from __future__ import annotations

from collections.abc import Mapping

import streamlake as sl
from pyspark_streamlake.query import Query
from pyspark_streamlake.steps import Step, other_kind


class BatchMarkers:
    """The marker of one app_id, for one run of one query."""

    def __init__(self, table: sl.Table, app_id: str, *, assume_committed: int | None) -> None:
        markers = table.markers()
        for found in markers:
            if found.startswith(f"{app_id}/"):
                raise other_kind(app_id, found, where=table.url)
        self._table = table
        self._app_id = app_id
        self._assume_committed = assume_committed
        self._marker = markers.get(app_id)

    def step(self, query: Query, batch_id: int) -> Step | None:
        """A commit of the marker at ``batch_id``; None for a replay of the last batch.

        Raises:
            FencedError: The marker is ahead, or another query set it.
        """
        if self._marker is not None and batch_id <= self._marker.version:
            self._check_replay(query, batch_id, self._marker.version)
            return None
        return Step(
            markers=(sl.SetTransaction(self._app_id, batch_id),),
            expect={self._app_id: self._marker},
        )

    def committed(self, markers: Mapping[str, sl.SetTransaction]) -> None:
        """The batch has landed."""
        self._marker = markers[self._app_id]

    def reread(self, error: sl.FencedError) -> None:
        """Batch ids of two queries don't compare, so there is nothing to trim by."""
        raise error

    def _check_replay(self, query: Query, batch_id: int, version: int) -> None:
        setter = self._setter()
        if batch_id < version or (setter is not None and setter != query.id):
            raise sl.FencedError(
                f"Batch {batch_id} of this query is not the next of app_id {self._app_id!r}.",
                where=self._table.url,
                found=f"the table is at batch {version} of query {setter or '(not known any more)'}"
                f"; this is query {query.id}",
                remedy="Give the query back its checkpoint folder. If that is lost, or another "
                "query wrote under this app_id, start under a new app_id, from where the table "
                "ends: what the source gives again is written again.",
            )
        if setter is None and batch_id != self._assume_committed:
            raise sl.FencedError(
                f"Whether batch {batch_id} was written by this query can't be told any more.",
                where=self._table.url,
                found=f"app_id {self._app_id!r} is at batch {version}, and the commit that set it "
                "is gone from the log",
                remedy=f"If this query wrote it, pass assume_committed={batch_id} and the batch is "
                "skipped; if not, start under a new app_id.",
            )

    def _setter(self) -> str | None:
        """The query that set the marker, where the log still tells."""
        record = self._table.find_marker(self._app_id)
        if record is None:
            return None
        found = record.operation_parameters.get("queryId")
        return found if isinstance(found, str) else "(one that left no id)"
