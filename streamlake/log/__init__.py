"""The transaction log: segments, replay, snapshots, checkpoints and commits (floor 2).

Imports protocol and storage; knows commit files and checkpoints, and nothing of what is inside data
files.
"""

from streamlake.log.checkpoint.compaction import compact
from streamlake.log.cleanup import CleanUp
from streamlake.log.commit import Commit, read_commit
from streamlake.log.committing.markers import (
    Expectation,
    MarkerClaim,
    already_committed,
    staged_markers,
)
from streamlake.log.committing.reads import WHOLE_TABLE, ReadPredicate
from streamlake.log.committing.transaction import CommitResult, Isolation, Transaction, removal
from streamlake.log.files import FileList
from streamlake.log.head import Definition, Head
from streamlake.log.limits import DEFAULT_LIMITS, Limits
from streamlake.log.log import Log
from streamlake.log.replay import canonical_key
from streamlake.log.segment import LogSegment, find_segment, list_log
from streamlake.log.snapshot import Snapshot
from streamlake.log.tail import LogTail, commit_range
from streamlake.log.times import (
    Moment,
    Timeline,
    commit_times,
    listed_times,
    moment_ms,
    rising,
    utc_text,
)

__all__ = [
    "DEFAULT_LIMITS",
    "WHOLE_TABLE",
    "CleanUp",
    "Commit",
    "CommitResult",
    "Definition",
    "Expectation",
    "FileList",
    "Head",
    "Isolation",
    "Limits",
    "Log",
    "LogSegment",
    "LogTail",
    "MarkerClaim",
    "Moment",
    "ReadPredicate",
    "Snapshot",
    "Timeline",
    "Transaction",
    "already_committed",
    "canonical_key",
    "commit_range",
    "commit_times",
    "compact",
    "find_segment",
    "list_log",
    "listed_times",
    "moment_ms",
    "read_commit",
    "removal",
    "rising",
    "staged_markers",
    "utc_text",
]
