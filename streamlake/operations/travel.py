"""Time travel: from a point in time to a version."""

from __future__ import annotations

from streamlake.log import Definition, Log, Moment, Timeline, moment_ms


def version_at(log: Log, moment: Moment, *, or_newest: bool = False) -> int:
    """The newest version committed at ``moment`` or before.

    A few short reads where the table has in-commit timestamps, else one listing of the log.

    Args:
        log: The table's log.
        moment: A datetime with a time zone, its ISO 8601 text, or milliseconds since the Unix
            epoch.
        or_newest: Whether a moment after the newest commit means the newest version; refused
            otherwise, for the next commit may change the answer.

    Raises:
        VersionNotFoundError: It lies before the oldest commit that the log still holds, or after
            the newest.
        InvalidInputError: No point in time, or one without a time zone.
    """
    return timeline(log).newest_until(moment_ms(moment), or_newest=or_newest)


def timeline(log: Log) -> Timeline:
    """The times of the log's versions up to the newest, which is read."""
    head = log.refresh()
    newest = Definition(version=head.version, protocol=head.protocol, metadata=head.metadata)
    return Timeline(log.store, newest, limits=log.limits)
