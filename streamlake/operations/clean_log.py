"""Clean up the log."""

from __future__ import annotations

from streamlake.errors import InvalidInputError
from streamlake.log import CleanUp, Log
from streamlake.protocol import MAX_INT64


def clean_log(log: Log, *, dry_run: bool = False, keep_from: int | None = None) -> CleanUp:
    """Remove log entries that the table's retention has passed; see ``LogCleaner.clean``.

    Raises:
        ClockError: Clocks contradict one another; nothing was removed.
        InvalidInputError: ``keep_from`` is no version, or the retention has a value that it can't
            have.
    """
    is_version = isinstance(keep_from, int) and not isinstance(keep_from, bool)
    if keep_from is not None and not (is_version and 0 <= keep_from <= MAX_INT64):
        raise InvalidInputError(
            "The version to keep the log from is a whole number from 0.",
            found=repr(keep_from),
            remedy="Leave it out to go by the table's retention alone.",
        )
    return log.cleaner.clean(log.refresh(), dry_run=dry_run, keep_from=keep_from)
