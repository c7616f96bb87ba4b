"""Streams of batches into and out of tables (floor 5).

    arguments      checks of arguments
    offset         a position in a table's stream
    contracts      Batch, and what a Source and a Sink promise
    options        how a tail behaves
    start          where a tail begins
    plan           what of a commit it hands on
    reading_ahead  commits and files, read in place or ahead of time
    cutting        from files to batches
    planner        from commits to what is handed on of each
    tailer         the tail of a table
    table_source   a table as a Source
    table_sink     a table as a Sink
    batching       merging small batches
    pipeline       from a Source to a Sink

A file imports only from those above it.
"""

from streamlake.stream.batching import Batching
from streamlake.stream.contracts import Batch, Positions, Sink, Source, TendedSink
from streamlake.stream.offset import Offset
from streamlake.stream.options import OnLost, OnRemoved, OnSchemaChange, TailOptions
from streamlake.stream.pipeline import (
    EventKind,
    Pipeline,
    PipelineEvent,
    PipelineResult,
)
from streamlake.stream.start import Start
from streamlake.stream.table_sink import TableSink
from streamlake.stream.table_source import TableSource
from streamlake.stream.tailer import Stop, Tailer, tail

__all__ = [
    "Batch",
    "Batching",
    "EventKind",
    "Offset",
    "OnLost",
    "OnRemoved",
    "OnSchemaChange",
    "Pipeline",
    "PipelineEvent",
    "PipelineResult",
    "Positions",
    "Sink",
    "Source",
    "Start",
    "Stop",
    "TableSink",
    "TableSource",
    "TailOptions",
    "Tailer",
    "TendedSink",
    "tail",
]
