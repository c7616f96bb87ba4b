"""streamlake: a Delta Lake table as a message bus.

Producers append small commits that carry exactly-once markers; consumers tail the log from where
they were. The log in object storage is the only shared state.

General layout, from the bottom; a file imports only from floors below its own:

    errors, clock     what can go wrong; time and chance                        floor 0
    arguments         what a user gives, refused where it can't be              floor 0
    protocol          the Delta protocol as values, without I/O                 floor 1
    storage           bytes by path; knows nothing of Delta                     floor 1
    log               segments, replay, snapshots, checkpoints, commits         floor 2
    data              Parquet files, with statistics                            floor 3
    operations        one file per table operation                              floor 4
    stream            offsets, tail, sources, sinks, pipeline                   floor 5
    table             Table, the handle that users hold                         floor 6
    cli, testing      the command line; what tests of users can use             floor 7

Everything a user needs is in this namespace; the modules below are not part of the contract.
"""

from streamlake.clock import SYSTEM_CLOCK, Clock, SystemClock
from streamlake.data import Stager, Tabular
from streamlake.errors import (
    ClockError,
    CommitConflictError,
    CommitError,
    CommitUnknownError,
    ConcurrentAppendError,
    ConcurrentDeleteDeleteError,
    ConcurrentDeleteReadError,
    ConcurrentTransactionError,
    ConditionalPutUnsupportedError,
    ConstraintViolationError,
    CorruptTableError,
    DataRemovedError,
    FencedError,
    InvalidInputError,
    LimitExceededError,
    LogGapError,
    LogTruncatedError,
    MetadataChangedError,
    ObjectExistsError,
    ObjectNotFoundError,
    OffsetOutOfRangeError,
    PartlyCommittedError,
    ProtocolChangedError,
    SchemaMismatchError,
    SourceError,
    SourceUnavailableError,
    StorageError,
    StreamError,
    StreamlakeError,
    TableError,
    TableExistsError,
    TableNotFoundError,
    TableReplacedError,
    TopicNotFoundError,
    UnsafePathError,
    UnsupportedFeatureError,
    VersionNotFoundError,
    WriteRefusedError,
)
from streamlake.log import (
    CleanUp,
    CommitResult,
    Expectation,
    FileList,
    Limits,
    MarkerClaim,
    Moment,
)
from streamlake.operations import CommitRecord, Markers, OptimizeResult
from streamlake.protocol import AddFile, DeletionVector, Metadata, SetTransaction
from streamlake.storage import ObjectMeta, ObjectStore
from streamlake.stream import (
    Batch,
    Batching,
    Offset,
    Pipeline,
    PipelineEvent,
    PipelineResult,
    Positions,
    Sink,
    Source,
    Start,
    Stop,
    TableSink,
    TableSource,
    TailOptions,
    TendedSink,
)
from streamlake.table import Snapshot, Table

__version__ = "0.1.0"

__all__ = [
    "SYSTEM_CLOCK",
    "AddFile",
    "Batch",
    "Batching",
    "CleanUp",
    "Clock",
    "ClockError",
    "CommitConflictError",
    "CommitError",
    "CommitRecord",
    "CommitResult",
    "CommitUnknownError",
    "ConcurrentAppendError",
    "ConcurrentDeleteDeleteError",
    "ConcurrentDeleteReadError",
    "ConcurrentTransactionError",
    "ConditionalPutUnsupportedError",
    "ConstraintViolationError",
    "CorruptTableError",
    "DataRemovedError",
    "DeletionVector",
    "Expectation",
    "FencedError",
    "FileList",
    "InvalidInputError",
    "LimitExceededError",
    "Limits",
    "LogGapError",
    "LogTruncatedError",
    "MarkerClaim",
    "Markers",
    "Metadata",
    "MetadataChangedError",
    "Moment",
    "ObjectExistsError",
    "ObjectMeta",
    "ObjectNotFoundError",
    "ObjectStore",
    "Offset",
    "OffsetOutOfRangeError",
    "OptimizeResult",
    "PartlyCommittedError",
    "Pipeline",
    "PipelineEvent",
    "PipelineResult",
    "Positions",
    "ProtocolChangedError",
    "SchemaMismatchError",
    "SetTransaction",
    "Sink",
    "Snapshot",
    "Source",
    "SourceError",
    "SourceUnavailableError",
    "Stager",
    "Start",
    "Stop",
    "StorageError",
    "StreamError",
    "StreamlakeError",
    "SystemClock",
    "Table",
    "TableError",
    "TableExistsError",
    "TableNotFoundError",
    "TableReplacedError",
    "TableSink",
    "TableSource",
    "Tabular",
    "TailOptions",
    "TendedSink",
    "TopicNotFoundError",
    "UnsafePathError",
    "UnsupportedFeatureError",
    "VersionNotFoundError",
    "WriteRefusedError",
    "__version__",
]
