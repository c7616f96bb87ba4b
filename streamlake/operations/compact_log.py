"""Log compaction: fewer requests for whoever opens the table."""

from __future__ import annotations

from streamlake.log import Log, compact, find_segment
from streamlake.protocol import check_writable


def compact_log(log: Log) -> tuple[int, int] | None:
    """Write the commits since the newest checkpoint as one log compaction file beside them.

    PROTOCOL.md, "Log Compaction Files". Reads each of them, or an earlier compaction of some.
    Nothing else changes: the commits stay, tails go on reading them.

    Returns:
        The first and the last version in the file; None where fewer than two commits wait,
        or they come to nothing.

    Raises:
        TableNotFoundError: There is no table.
        UnsupportedFeatureError: The table has a writer feature that is not supported.
        CorruptTableError: A commit is torn or garbled.
        ObjectNotFoundError: Log clean-up removed a commit meanwhile; call it again.
    """
    head = log.refresh()
    check_writable(head.protocol, head.metadata, where=log.url)
    return compact(log.store, find_segment(log.store), limits=log.limits)
