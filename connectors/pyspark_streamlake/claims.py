"""One owner of an app_id in one process; owners in other processes are fenced by the markers."""

from __future__ import annotations

import threading

import streamlake as sl
from pyspark_streamlake.query import Query

_holders: dict[tuple[str, str], tuple[Query, sl.MarkerClaim]] = {}
_holders_lock = threading.Lock()


def claim_for(query: Query, table: sl.Table, app_id: str) -> sl.MarkerClaim:
    """Claim the app_id for a run of a query; a run that has ended loses its claim.

    Raises:
        InvalidInputError: Another query that runs in this process holds it.
    """
    key = (table.id, app_id)
    with _holders_lock:
        holder = _holders.pop(key, None)
        if holder is not None and not holder[0].is_active():
            holder[1].close()
        elif holder is not None:
            _holders[key] = holder
        claim = sl.MarkerClaim(table.id, [app_id])
        _holders[key] = query, claim
    return claim
