"""Everything streamlake raises.

    StreamlakeError
    ├── InvalidInputError (ValueError)     an argument or a value that can never work
    │   ├── SchemaMismatchError            the data's schema does not fit the table's
    │   └── ConstraintViolationError       a row breaks NOT NULL or another constraint
    ├── TableError                         the table, as it is, can't serve the request
    │   ├── TableNotFoundError
    │   ├── TableExistsError
    │   ├── VersionNotFoundError
    │   ├── UnsupportedFeatureError        a protocol version or feature that is not supported
    │   ├── CorruptTableError              a torn, garbled or contradictory file
    │   ├── LogGapError                    a version is missing between two that exist
    │   ├── LogTruncatedError              the versions asked for were cleaned up
    │   ├── ClockError                     clocks contradict one another, so nothing is removed
    │   ├── UnsafePathError                a path in the log leaves the table
    │   └── LimitExceededError             a named bound was passed
    ├── StreamError                        a stream can't go on
    │   ├── DataRemovedError               a commit removed data that was handed on before
    │   └── TableReplacedError             the table under the stream is another one
    ├── CommitError                        a commit did not happen, or may not have
    │   ├── CommitUnknownError             the outcome could not be learnt in time
    │   ├── FencedError                    another owner moved our marker
    │   ├── PartlyCommittedError           of several markers only some are committed
    │   └── CommitConflictError            a concurrent commit rules this one out
    │       ├── ConcurrentAppendError
    │       ├── ConcurrentDeleteReadError
    │       ├── ConcurrentDeleteDeleteError
    │       ├── ConcurrentTransactionError
    │       ├── MetadataChangedError
    │       └── ProtocolChangedError
    ├── StorageError                       the object store refused or failed
    │   ├── ObjectNotFoundError
    │   ├── ObjectExistsError              a conditional put found the name taken
    │   ├── WriteRefusedError              refused for certain: disk full, no permission
    │   └── ConditionalPutUnsupportedError the store does not honour put-if-absent
    └── SourceError                        a source outside the table
        ├── TopicNotFoundError
        ├── SourceUnavailableError         the broker does not answer
        └── OffsetOutOfRangeError          the position asked for is gone from the source

Each error says what happened, where, what was found there and what to do about it. All survive
pickling, so that an executor's error reaches the driver whole.
"""

from __future__ import annotations


class StreamlakeError(Exception):
    """Base of all errors that streamlake raises on purpose.

    Attributes:
        what: One sentence: what was asked and why it can't be.
        where: The table, file, topic or option concerned; empty when the sentence says it.
        found: What is there instead; empty when the sentence says it.
        remedy: What the reader of the message can do.
    """

    def __init__(self, what: str, *, where: str = "", found: str = "", remedy: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.found = found
        self.remedy = remedy

    def __str__(self) -> str:
        """The whole message: what, where, found, remedy, each on a line of its own."""
        lines = [self.what]
        lines += [
            f"  {label}: {text}"
            for label, text in (("where", self.where), ("found", self.found), ("do", self.remedy))
            if text
        ]
        return "\n".join(lines)


class InvalidInputError(StreamlakeError, ValueError):
    """An argument or a value that can never work, told before anything is written."""


class SchemaMismatchError(InvalidInputError):
    """The data's schema does not fit the table's; ``found`` names each difference."""


class ConstraintViolationError(InvalidInputError):
    """A row breaks NOT NULL or another constraint, or would leave an append-only table.

    Nothing was committed.
    """


class TableError(StreamlakeError):
    """The table, as it is, can't serve the request."""


class TableNotFoundError(TableError):
    """There is no Delta table at the location."""


class TableExistsError(TableError):
    """``create`` met a table at the location."""


class VersionNotFoundError(TableError):
    """The version or timestamp asked for is not in the table."""


class UnsupportedFeatureError(TableError):
    """The table needs a protocol version or feature that is not supported; it is named."""


class CorruptTableError(TableError):
    """A torn, garbled or contradictory file in the table; never skipped, never guessed."""


class LogGapError(TableError):
    """A version is missing between two that exist."""


class LogTruncatedError(TableError):
    """The versions asked for were removed by log clean-up."""


class ClockError(TableError):
    """Clocks contradict one another, so that nobody can tell what is old enough to go."""


class UnsafePathError(TableError):
    """A path in the log leaves the table's root."""


class LimitExceededError(TableError):
    """A named bound (bytes, depth, actions, attempts) was passed."""


class StreamError(StreamlakeError):
    """A stream can't go on."""


class DataRemovedError(StreamError):
    """A commit removed data, and no policy says what a stream should do about it."""


class TableReplacedError(StreamError):
    """The position belongs to another table than the one that is there now."""


class CommitError(StreamlakeError):
    """A commit did not happen, or may not have."""


class CommitUnknownError(CommitError):
    """The outcome of a commit could not be learnt in time: it may have landed, or may still land.

    The commit's data files are kept. Try again with the same marker: it answers
    ``already_committed`` if the commit landed.

    Attributes:
        token: The commit's ``commitInfo.txnId``.
        version: The version that it was last put at.
    """

    def __init__(
        self,
        what: str,
        *,
        token: str = "",
        version: int = -1,
        where: str = "",
        found: str = "",
        remedy: str = "",
    ) -> None:
        super().__init__(what, where=where, found=found, remedy=remedy)
        self.token = token
        self.version = version


class FencedError(CommitError):
    """Another owner moved our marker: this owner must stop, or read the markers again."""


class PartlyCommittedError(CommitError):
    """Of the markers of one append some are committed and some are not; nothing was written."""


class CommitConflictError(CommitError):
    """A concurrent commit rules this one out; nothing was committed. Read again and retry."""


class ConcurrentAppendError(CommitConflictError):
    """A concurrent commit added files that this one should have read."""


class ConcurrentDeleteReadError(CommitConflictError):
    """A concurrent commit removed a file that this one read."""


class ConcurrentDeleteDeleteError(CommitConflictError):
    """A concurrent commit removed a file that this one removes too."""


class ConcurrentTransactionError(CommitConflictError):
    """A concurrent commit set a marker that this one sets too."""


class MetadataChangedError(CommitConflictError):
    """A concurrent commit changed the table's metadata in a way that this one does not fit."""


class ProtocolChangedError(CommitConflictError):
    """A concurrent commit changed the table's protocol."""


class StorageError(StreamlakeError):
    """The object store refused or failed."""


class ObjectNotFoundError(StorageError):
    """There is no object of that name."""


class ObjectExistsError(StorageError):
    """A conditional put found the name taken. It may be our own earlier put that took it."""


class WriteRefusedError(StorageError):
    """Refused before a byte became visible (disk full, no permission): certain, not unknown."""


class ConditionalPutUnsupportedError(StorageError):
    """The store does not honour put-if-absent, so two writers could both win a version."""


class SourceError(StreamlakeError):
    """A source outside the table (Kafka) refused or failed."""


class TopicNotFoundError(SourceError):
    """The topic does not exist."""


class SourceUnavailableError(SourceError):
    """The source does not answer, after all retries."""


class OffsetOutOfRangeError(SourceError):
    """The position asked for is no longer, or not yet, in the source."""
