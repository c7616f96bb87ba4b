"""Data files written by Spark's tasks; the driver learns of them and commits."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PythonException

import streamlake as sl
from pyspark_streamlake.columns import POSITION_TYPES
from pyspark_streamlake.failures import typed_error

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FILES = pa.schema([pa.field("file", pa.binary())])
FILES_DDL = "file binary"


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The offsets of one Kafka partition that a batch may bring, and those that are stored."""

    first: int
    """The batch's first offset."""
    end: int
    """The offset after its last."""
    stored: int
    """The marker: rows up to and including it are in the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTask:
    """What a task does with its rows; pickles."""

    stager: sl.Stager
    windows: Mapping[tuple[str, int], Window] | None = None
    """By topic and partition, where rows are trimmed by their Kafka offsets."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the rows into data files, and yield their AddFiles as JSON.

        Raises:
            SchemaMismatchError: The rows do not fit the table.
            ConstraintViolationError: A null in a NOT NULL column.
            InvalidInputError: A row that is not of the batch's Kafka offsets.
            StorageError: The store failed.
        """
        first = next(batches, None)
        if first is None:
            return
        reader = pa.RecordBatchReader.from_batches(first.schema, self._fresh(first, batches))
        files = [msgspec.json.encode(add) for add in self.stager.stage(reader)]
        yield pa.record_batch([pa.array(files, pa.binary())], schema=FILES)

    def _fresh(
        self, first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        yield first if self.windows is None else trimmed(first, self.windows)
        for batch in rest:
            yield batch if self.windows is None else trimmed(batch, self.windows)


def trimmed(batch: pa.RecordBatch, windows: Mapping[tuple[str, int], Window]) -> pa.RecordBatch:
    """The rows past the markers.

    Raises:
        InvalidInputError: A row is of no window, so that no marker would account for it.
    """
    stale: list[pc.Expression] = []
    for part in _bounds(batch):
        tp, first, last = (part["topic"], part["partition"]), part["first"], part["last"]
        window = windows.get(tp)
        if window is None or not window.first <= first <= last < window.end:
            raise _astray(tp, first, last, window)
        if first <= window.stored:
            stale.append(
                (pc.field("topic") == tp[0])
                & (pc.field("partition") == tp[1])
                & (pc.field("offset") <= window.stored)
            )
    return batch.filter(~reduce(operator.or_, stale)) if stale else batch


def _bounds(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """The first and last offset of each topic and partition."""
    nulls = [name for name in POSITION_TYPES if batch.column(name).null_count]
    if nulls:
        raise sl.InvalidInputError(
            "A row does not say where in Kafka it comes from.",
            found=f"null in {', '.join(nulls)}",
            remedy='markers="kafka" takes rows as a Kafka source gives them.',
        )
    groups = pa.table(batch).group_by(["topic", "partition"], use_threads=False)
    ends = groups.aggregate([("offset", "min"), ("offset", "max")])
    return ends.rename_columns(["topic", "partition", "first", "last"]).to_pylist()


def _astray(
    tp: tuple[str, int], first: int, last: int, window: Window | None
) -> sl.InvalidInputError:
    expected = "none of it" if window is None else f"[{window.first}, {window.end})"
    return sl.InvalidInputError(
        "Rows are not of the offsets that the batch reads from Kafka, so no marker accounts for "
        "them.",
        where=f"{tp[0]}/{tp[1]}",
        found=f"rows of [{first}, {last}]; the batch reads {expected}",
        remedy='markers="kafka" takes rows straight from a Kafka source, through stateless steps '
        'that keep topic, partition and offset; for other rows use markers="batch".',
    )


def stage(df: DataFrame, task: StageTask) -> list[sl.AddFile]:
    """Run ``task`` over the rows of ``df``, one job of Spark's.

    Returns:
        The files of the tasks that Spark counts; a task that ran twice leaves files that nobody
        commits.

    Raises:
        StreamlakeError: As the task, whole.
    """

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return task(batches)

    try:
        rows = df.mapInArrow(write, FILES_DDL).collect()
    except PythonException as error:
        raise typed_error(str(error)) or error from error
    return [msgspec.json.decode(bytes(row[0]), type=sl.AddFile) for row in rows]
