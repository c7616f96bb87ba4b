"""One owner of an app_id in one process; owners in other processes are fenced by the markers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import streamlake as sl
from pyspark_streamlake.query import Query

_holders: dict[tuple[str, str], tuple[Query, sl.MarkerClaim]] = {}
_turns: dict[tuple[str, str], tuple[str, str]] = {}
"""By table and app_id the run and its batch that wrote last."""
_lock = threading.Lock()


def claim_for(query: Query, table: sl.Table, app_id: str) -> sl.MarkerClaim:
    """Claim the app_id for a run of a query; a run that has ended loses its claim.

    Raises:
        InvalidInputError: Another query that runs in this process holds it.
    """
    key = (table.id, app_id)
    with _lock:
        holder = _holders.pop(key, None)
        if holder is not None and not holder[0].is_active():
            holder[1].close()
        elif holder is not None:
            _holders[key] = holder
        claim = sl.MarkerClaim(table.id, [app_id])
        _holders[key] = query, claim
    return claim


@contextmanager
def turn(query: Query, table: sl.Table, app_id: str) -> Iterator[None]:
    """Around the one write of a batch; a write that fails leaves the turn to another try.

    A second one would pass for a replay, and its rows would be lost. Replays come from another run.

    Raises:
        InvalidInputError: This run has written this batch.
    """
    key, now = (table.id, app_id), (query.run_id, query.batch)
    with _lock:
        if _turns.get(key) == now:
            raise sl.InvalidInputError(
                "The sink was called twice in one batch; one sink writes one dataframe a batch.",
                where=table.url,
                found=f"app_id {app_id!r} has had its dataframe of batch {query.batch}",
                remedy="Union the dataframes, or use a sink with an app_id of its own for each. Of "
                "this batch the table has the first: a union comes too late for it, but sinks with "
                "new app_ids for the others get it when the query is started again.",
            )
        _turns[key] = now
    try:
        yield
    except BaseException:
        _turns.pop(key, None)
        raise
