"""ForeachBatchSink: a streaming query of Spark's into a table, exactly once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike, fspath
from typing import TYPE_CHECKING, Literal

import msgspec

import streamlake as sl
from pyspark_streamlake.batch_markers import BatchMarkers
from pyspark_streamlake.claims import claim_for, turn
from pyspark_streamlake.columns import check_position, table_schema
from pyspark_streamlake.kafka_markers import KafkaMarkers, stored_markers
from pyspark_streamlake.query import Query, running_query
from pyspark_streamlake.staging import StageTask, stage
from pyspark_streamlake.steps import Markers, Step, check_app_id, check_expiry
from pyspark_streamlake.tables import open_or_create

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pyspark_streamlake.kafka_probe import KafkaProbe

FENCED_TRIES = 5
"""How often a batch with Kafka's markers is trimmed again and written again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What one batch came to."""

    version: int
    """The version of the table that has it."""
    rows: int
    files: int


class ForeachBatchSink:
    """Appends the batches of a streaming query to a table: ``df.writeStream.foreachBatch(sink)``.

    Spark's tasks write the data files, the driver makes one commit a batch, and the markers of the
    commit say which batch it was. A sink serves one query at a time, on a classic Spark session,
    and takes one dataframe a batch; the package must be installed on the executors, which must
    reach the table under the same URL.

    Delivery: exactly once. With ``markers="batch"`` as long as the query keeps its checkpoint
    folder; without it the sink refuses to go on. With ``markers="kafka"`` also without it: the
    table knows the offsets that it has. That kind is for rows straight from a Kafka source, through
    stateless steps that keep the columns topic, partition and offset.
    """

    def __init__(
        self,
        url: str | PathLike[str],
        *,
        app_id: str,
        markers: Literal["batch", "kafka"] = "batch",
        kafka: Mapping[str, str] | None = None,
        topics: Sequence[str] = (),
        storage_options: Mapping[str, str] | None = None,
        create: bool = False,
        partition_by: Sequence[str] = (),
        merge_schema: bool = False,
        assume_committed: int | None = None,
    ) -> None:
        """Connect nowhere yet: the table is opened when it is first needed.

        Args:
            url: The table's location.
            app_id: Whose markers these are; one for each query, kept for life.
            markers: What they count: Spark's batches or Kafka's offsets.
            kafka: Settings of librdkafka; needed for ``markers="kafka"``.
            topics: What ``starting_offsets`` is about.
            storage_options: What the table's store needs besides the URL.
            create: Whether a missing table is created, from the columns of the first batch.
            partition_by: Its partition columns then.
            merge_schema: Whether a batch may add columns and nested fields to the table, and widen
                types where ``delta.enableTypeWidening`` is set: in a commit before its own.
            assume_committed: The id of the one batch that counts as written by this query although
                the commit that could prove it is gone from the log.

        Raises:
            InvalidInputError: A value that can never work.
        """
        check_app_id(app_id)
        self._url = fspath(url)
        self._app_id = app_id
        self._storage_options = dict(storage_options or {})
        self._topics = tuple(topics)
        self._create = create
        self._partition_by = tuple(partition_by)
        self._merge_schema = merge_schema
        self._assume_committed = assume_committed
        self._probe = _probe(markers, kafka)
        self._from_earliest = False
        self._run: _Run | None = None
        if self._url.startswith("memory:"):
            raise sl.InvalidInputError(
                "Spark's tasks can't reach a table in this process's memory.", where=self._url
            )

    def __repr__(self) -> str:
        return f"ForeachBatchSink({self._url!r}, app_id={self._app_id!r})"

    def __call__(self, df: DataFrame, batch_id: int) -> Written | None:
        """Write one batch; Spark calls it on the driver. Durable when it returns.

        Args:
            df: The rows; they must fit the table.
            batch_id: Spark's number of the batch.

        Returns:
            What was written; None where the table has the batch already or there is nothing to do.

        Raises:
            FencedError: Another query owns the app_id, or the checkpoint folder was lost.
            InvalidInputError: The query can't be written this way, its first batch would leave out
                records (``markers="kafka"``), or this run has given the batch a dataframe before.
            SchemaMismatchError: The rows do not fit the table.
            CommitUnknownError: The outcome could not be learnt in time; start the query again.
        """
        query = running_query(df)
        try:
            if self._probe is not None:
                check_position(df.schema)
            run = self._run_of(query, df)
            with turn(query, run.table, self._app_id):
                return run.write_fenced(df, batch_id)
        except BaseException:
            self.close()
            raise

    def starting_offsets(self) -> str:
        """Where a query must start to go on where the table is, as ``startingOffsets`` takes it.

        Of each partition of ``topics`` the offset after its marker, or -2 (earliest) without one.
        From then on the sink refuses a first batch that starts later, marker or not.

        Raises:
            InvalidInputError: No ``topics``, or ``markers`` is not ``"kafka"``.
            TopicNotFoundError: A topic does not exist.
            SourceUnavailableError: No broker answers.
            TableNotFoundError: There is no table, and the sink does not create it.
        """
        if self._probe is None or not self._topics:
            raise sl.InvalidInputError(
                "starting_offsets is told of topics, by Kafka's markers.",
                remedy='Make the sink with markers="kafka", kafka={...} and topics=[...].',
            )
        partitions = self._probe.partitions(self._topics)
        stored = self._stored()
        nested: dict[str, dict[str, int]] = {topic: {} for topic in self._topics}
        for tp in partitions:
            nested[tp[0]][str(tp[1])] = stored[tp].version + 1 if tp in stored else -2
        self._from_earliest = True
        return msgspec.json.encode(nested).decode()

    def close(self) -> None:
        """Let go of the app_id in this process. Idempotent; the next batch opens again."""
        if self._run is not None:
            self._run.claim.close()
            self._run = None

    def _run_of(self, query: Query, df: DataFrame) -> _Run:
        """The state for the run of the query that calls; a new run reads the table anew."""
        if self._run is not None and self._run.query.run_id == query.run_id:
            return self._run
        self.close()
        table = self._open(df)
        check_expiry(table)
        claim = claim_for(query, table, self._app_id)
        try:
            self._run = _Run(
                query, table, self._markers(table), claim, merge_schema=self._merge_schema
            )
        except BaseException:
            claim.close()
            raise
        return self._run

    def _open(self, df: DataFrame | None) -> sl.Table:
        if df is None or not self._create:
            return sl.Table.open(self._url, storage_options=self._storage_options)
        return open_or_create(
            self._url,
            schema=partial(table_schema, df.schema),
            partition_by=self._partition_by,
            storage_options=self._storage_options,
        )

    def _markers(self, table: sl.Table) -> Markers:
        if self._probe is None:
            return BatchMarkers(table, self._app_id, assume_committed=self._assume_committed)
        return KafkaMarkers(
            table, self._app_id, gaps=self._probe, from_earliest=self._from_earliest
        )

    def _stored(self) -> dict[tuple[str, int], sl.SetTransaction]:
        try:
            return stored_markers(self._open(None), self._app_id)
        except sl.TableNotFoundError:
            if not self._create:
                raise
            return {}


class _Run:
    """One run of a query: its table, its markers, its claim on the app_id."""

    def __init__(
        self,
        query: Query,
        table: sl.Table,
        markers: Markers,
        claim: sl.MarkerClaim,
        *,
        merge_schema: bool,
    ) -> None:
        self.query = query
        self.markers = markers
        self.claim = claim
        self.table = table
        self.merge_schema = merge_schema

    def write_fenced(self, df: DataFrame, batch_id: int) -> Written | None:
        """Write a batch, anew where another owner moved a marker and that can be answered."""
        for _ in range(FENCED_TRIES - 1):
            try:
                return self.write(df, batch_id)
            except sl.FencedError as error:
                self.markers.reread(error)
        return self.write(df, batch_id)

    def write(self, df: DataFrame, batch_id: int) -> Written | None:
        """Stage and commit a batch, unless the table has it."""
        step = self.markers.step(self.query, batch_id)
        if step is None:
            return None
        if self.merge_schema:
            self.table.merge_schema(table_schema(df.schema))
        files = stage(df, StageTask(stager=self.table.stager(), windows=step.windows))
        if not files and not step.commits_empty:
            return None
        result = self._commit(files, step, batch_id)
        self.markers.committed(result.markers)
        rows = sum(add.num_records or 0 for add in files)
        return Written(version=result.version, rows=rows, files=len(files))

    def _commit(self, files: Sequence[sl.AddFile], step: Step, batch_id: int) -> sl.CommitResult:
        return self.table.commit_staged(
            files,
            txn=step.markers,
            expect=step.expect,
            operation="STREAMING UPDATE",
            operation_parameters={
                "outputMode": "Append",
                "queryId": self.query.id,
                "epochId": str(batch_id),
            },
        )


def _probe(markers: str, kafka: Mapping[str, str] | None) -> KafkaProbe | None:
    if markers == "batch":
        return None
    if markers != "kafka" or kafka is None:
        raise sl.InvalidInputError(
            'markers is "batch", or "kafka" with kafka={"bootstrap.servers": ...} to reach it.',
            found=f"markers={markers!r}" + ("" if kafka else " without kafka"),
        )
    from pyspark_streamlake.kafka_probe import KafkaProbe  # noqa: PLC0415 (needs confluent-kafka)

    return KafkaProbe(kafka)
