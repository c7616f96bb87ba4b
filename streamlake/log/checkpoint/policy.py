"""How often a checkpoint is written."""

from __future__ import annotations

from streamlake.errors import InvalidInputError
from streamlake.log.head import Head
from streamlake.protocol import checkpoint_interval as configured_interval

FEWEST_COMMITS_PER_CHECKPOINT = 100
MOST_COMMITS_PER_CHECKPOINT = 10_000
FILES_PER_COMMIT_OF_INTERVAL = 8
"""An interval that is a fixed part of the table's files keeps the mean cost of a commit flat."""
RETRY_PART_OF_INTERVAL = 10
"""A checkpoint that could not be written is tried again after this part of the interval."""


def checkpoint_interval(configured: int | None, file_count: int) -> int:
    """Commits between two checkpoints: as configured, else one that grows with the table."""
    if configured is not None:
        return configured
    grown = file_count // FILES_PER_COMMIT_OF_INTERVAL
    return min(max(FEWEST_COMMITS_PER_CHECKPOINT, grown), MOST_COMMITS_PER_CHECKPOINT)


def interval_of(head: Head) -> int:
    """The interval of a table; what another engine set and can't be read does not count."""
    try:
        configured = configured_interval(head.metadata.configuration)
    except InvalidInputError:
        configured = None
    return checkpoint_interval(configured, head.file_count)


def retried_from(head: Head, interval: int) -> int:
    """The version to count from after a checkpoint that could not be written."""
    return head.version - interval + max(1, interval // RETRY_PART_OF_INTERVAL)
