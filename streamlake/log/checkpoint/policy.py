"""How often a checkpoint is written."""

from __future__ import annotations

from streamlake.errors import InvalidInputError
from streamlake.log.head import Head
from streamlake.protocol import checkpoint_interval as configured_interval

FEWEST_COMMITS_PER_CHECKPOINT = 100
MOST_COMMITS_PER_CHECKPOINT = 10_000
FILES_PER_COMMIT_OF_INTERVAL = 32
"""An interval that is a fixed part of the table's files keeps the mean cost of a commit flat."""
FEWEST_LARGE_COMMITS_PER_CHECKPOINT = 10
MOST_REPLAYED_ACTIONS = 50_000
REPLAYED_PART_OF_FILES = 2
"""Where the commits since the checkpoint hold more adds and removes than that, and than this part
of the table's files, a checkpoint is worth its writing."""
RETRY_PART_OF_INTERVAL = 10
"""A checkpoint that could not be written is tried again after this part of the interval."""


def checkpoint_interval(
    configured: int | None, file_count: int, *, actions_per_commit: int = 0
) -> int:
    """Commits between two checkpoints: as configured, else by the size of table and log.

    It grows with the table's files, and is the shorter the more files each commit adds or removes.
    """
    if configured is not None:
        return configured
    grown = file_count // FILES_PER_COMMIT_OF_INTERVAL
    by_table = min(max(FEWEST_COMMITS_PER_CHECKPOINT, grown), MOST_COMMITS_PER_CHECKPOINT)
    worth = max(MOST_REPLAYED_ACTIONS, file_count // REPLAYED_PART_OF_FILES)
    by_log = worth // max(1, actions_per_commit)
    return min(by_table, max(FEWEST_LARGE_COMMITS_PER_CHECKPOINT, by_log))


def interval_of(head: Head) -> int:
    """The interval of a table; what another engine set and can't be read does not count."""
    try:
        configured = configured_interval(head.metadata.configuration)
    except InvalidInputError:
        configured = None
    commits = max(1, head.version - head.checkpoint_version)
    return checkpoint_interval(
        configured, head.file_count, actions_per_commit=head.replayed_actions // commits
    )


def retried_from(head: Head, interval: int) -> int:
    """The version to count from after a checkpoint that could not be written."""
    return head.version - interval + max(1, interval // RETRY_PART_OF_INTERVAL)
