"""ForeachBatchSink with batch markers: exactly once as long as the checkpoint folder is kept."""

from __future__ import annotations

import os
import shutil

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException

import streamlake as sl
from pyspark_streamlake import ForeachBatchSink
from spark_session import drain

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


class Arrivals:
    """A folder of JSON files as a stream: each ``add`` is one file, and one batch."""

    def __init__(self, spark, folder):
        folder.mkdir()
        self._folder = folder
        self._count = 0
        reader = spark.readStream.schema("id bigint, name string").option("maxFilesPerTrigger", 1)
        self.rows = reader.json(str(folder))

    def add(self, *ids):
        self._count += 1
        lines = "".join(f'{{"id": {number}, "name": "n{number}"}}\n' for number in ids)
        path = self._folder / f"{self._count:03}.json"
        path.write_text(lines)
        os.utime(path, (self._count, self._count))  # Spark takes the oldest first


@pytest.fixture
def arrivals(spark, tmp_path):
    return Arrivals(spark, tmp_path / "arrivals")


@pytest.fixture
def table(tmp_path):
    return sl.Table.create(tmp_path / "table", schema=SCHEMA)


def ids(table):
    return sorted(table.snapshot().to_arrow()["id"].to_pylist())


def test_each_batch_is_one_commit_with_its_marker_and_query(arrivals, table, checkpoint):
    arrivals.add(1, 2)
    arrivals.add(3)
    drain(arrivals.rows, ForeachBatchSink(table.url, app_id="agg"), checkpoint)
    assert ids(table) == [1, 2, 3]
    newest = next(iter(table.history()))
    assert (table.version, newest.operation) == (2, "STREAMING UPDATE")
    assert newest.is_blind_append
    assert newest.operation_parameters["epochId"] == "1"
    assert newest.markers["agg"].version == 1


def test_a_query_goes_on_where_its_checkpoint_is(arrivals, table, checkpoint):
    sink = ForeachBatchSink(table.url, app_id="agg")
    for number in (1, 2, 3):
        arrivals.add(number)
        drain(arrivals.rows, sink, checkpoint)
    assert ids(table) == [1, 2, 3]
    assert table.snapshot().txn_version("agg") == 2


def test_a_batch_brings_its_columns_where_that_is_allowed(arrivals, tmp_path, checkpoint):
    narrow = sl.Table.create(tmp_path / "narrow", schema=pa.schema([("id", pa.int64())]))
    arrivals.add(1)
    sink = ForeachBatchSink(narrow.url, app_id="agg", merge_schema=True)
    drain(arrivals.rows, sink, checkpoint)
    assert narrow.snapshot().to_arrow().to_pylist() == [{"id": 1, "name": "n1"}]


def forget_last_commit(checkpoint):
    """As if Spark had died after the sink returned and before it noted the batch as done."""
    commits = sorted((checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    commits[-1].unlink()
    (checkpoint / "commits" / f".{commits[-1].name}.crc").unlink(missing_ok=True)


def test_a_replay_of_the_last_batch_is_skipped(arrivals, table, checkpoint):
    arrivals.add(1)
    arrivals.add(2)
    drain(arrivals.rows, ForeachBatchSink(table.url, app_id="agg"), checkpoint)
    forget_last_commit(checkpoint)
    arrivals.add(3)
    drain(arrivals.rows, ForeachBatchSink(table.url, app_id="agg"), checkpoint)
    assert ids(table) == [1, 2, 3]


def test_a_lost_checkpoint_is_refused_and_nothing_is_written(arrivals, table, checkpoint):
    arrivals.add(1)
    drain(arrivals.rows, ForeachBatchSink(table.url, app_id="agg"), checkpoint)
    shutil.rmtree(checkpoint)
    with pytest.raises(StreamingQueryException, match="Give the query back its checkpoint folder"):
        drain(arrivals.rows, ForeachBatchSink(table.url, app_id="agg"), checkpoint)
    assert ids(table) == [1]


def test_a_batch_that_was_written_long_ago_is_refused(arrivals, table, checkpoint, tmp_path):
    arrivals.add(1)
    drain(arrivals.rows, ForeachBatchSink(table.url, app_id="agg"), checkpoint)
    shutil.copytree(checkpoint, tmp_path / "older")
    forget_last_commit(tmp_path / "older")
    arrivals.add(2)
    drain(arrivals.rows, ForeachBatchSink(table.url, app_id="agg"), checkpoint)
    with pytest.raises(StreamingQueryException, match="Batch 0 of this query is not the next"):
        drain(arrivals.rows, ForeachBatchSink(table.url, app_id="agg"), tmp_path / "older")
    assert ids(table) == [1, 2]


def clean_log_up(table, folder):
    """As log clean-up does: a checkpoint first, then the commits below it go."""
    table.append(pa.table({"id": [0], "name": ["filler"]}, schema=SCHEMA))
    newest = table.checkpoint()
    for version in range(newest):
        (folder / "_delta_log" / f"{version:020}.json").unlink()


def test_a_replay_that_cannot_be_proved_names_the_way_out(arrivals, table, checkpoint, tmp_path):
    arrivals.add(1)
    drain(arrivals.rows, ForeachBatchSink(table.url, app_id="agg"), checkpoint)
    forget_last_commit(checkpoint)
    clean_log_up(table, tmp_path / "table")
    with pytest.raises(StreamingQueryException, match="pass assume_committed=0"):
        drain(arrivals.rows, ForeachBatchSink(table.url, app_id="agg"), checkpoint)
    sink = ForeachBatchSink(table.url, app_id="agg", assume_committed=0)
    drain(arrivals.rows, sink, checkpoint)
    assert ids(table) == [0, 1]


def test_an_owner_whose_marker_another_moved_is_fenced(arrivals, table, checkpoint):
    arrivals.add(1)
    arrivals.add(2)
    sink = ForeachBatchSink(table.url, app_id="agg")

    def overtaken(rows, batch_id):
        if batch_id == 1:
            other = sl.Table.open(table.url)
            other.append(SCHEMA.empty_table(), txn=sl.SetTransaction("agg", 50))
        sink(rows, batch_id)

    with pytest.raises(StreamingQueryException, match=r"FencedError.*moved by another"):
        drain(arrivals.rows, overtaken, checkpoint)
    assert ids(table) == [1]


def test_a_second_query_of_one_app_id_in_one_process_is_refused(arrivals, table, tmp_path):
    arrivals.add(1)
    arrivals.add(2)
    first, second = (ForeachBatchSink(table.url, app_id="agg") for _ in range(2))

    def while_the_first_runs(rows, batch_id):
        first(rows, batch_id)
        if batch_id == 0:
            with pytest.raises(StreamingQueryException, match="already open in this process"):
                drain(arrivals.rows, second, tmp_path / "second")

    drain(arrivals.rows, while_the_first_runs, tmp_path / "first")
    assert ids(table) == [1, 2]


def test_rows_that_do_not_fit_fail_with_the_difference(arrivals, table, checkpoint):
    arrivals.add(1)
    wrong = arrivals.rows.withColumnRenamed("name", "label")
    with pytest.raises(StreamingQueryException, match="SchemaMismatchError") as caught:
        drain(wrong, ForeachBatchSink(table.url, app_id="agg"), checkpoint)
    assert "label" in str(caught.value)
    assert table.snapshot().files() == ()


def test_a_missing_table_is_told(arrivals, checkpoint, tmp_path):
    arrivals.add(1)
    with pytest.raises(StreamingQueryException, match="TableNotFoundError"):
        drain(arrivals.rows, ForeachBatchSink(tmp_path / "none", app_id="agg"), checkpoint)


def test_a_missing_table_is_created_when_that_is_asked_for(arrivals, checkpoint, tmp_path):
    arrivals.add(1, 2)
    sink = ForeachBatchSink(tmp_path / "new", app_id="agg", create=True, partition_by=["name"])
    drain(arrivals.rows, sink, checkpoint)
    table = sl.Table.open(tmp_path / "new")
    assert (table.partition_columns, ids(table)) == (("name",), [1, 2])


def test_an_app_id_with_markers_of_kafka_is_refused(arrivals, table, checkpoint):
    table.append(SCHEMA.empty_table(), txn=sl.SetTransaction("agg/orders/0", 5))
    arrivals.add(1)
    with pytest.raises(StreamingQueryException, match="markers of another kind"):
        drain(arrivals.rows, ForeachBatchSink(table.url, app_id="agg"), checkpoint)


def test_a_table_whose_markers_expire_is_refused(arrivals, checkpoint, tmp_path):
    properties = {"delta.setTransactionRetentionDuration": "interval 1 days"}
    table = sl.Table.create(tmp_path / "expiring", schema=SCHEMA, properties=properties)
    arrivals.add(1)
    with pytest.raises(StreamingQueryException, match="setTransactionRetentionDuration"):
        drain(arrivals.rows, ForeachBatchSink(table.url, app_id="agg"), checkpoint)


def test_outside_of_a_query_the_sink_says_where_it_belongs(spark, table):
    with pytest.raises(sl.InvalidInputError, match="outside of a streaming query"):
        ForeachBatchSink(table.url, app_id="agg")(spark.range(3), 0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"app_id": ""},
        {"app_id": "a/b"},
        {"app_id": "a", "markers": "offsets"},
        {"app_id": "a", "markers": "kafka"},
    ],
)
def test_a_sink_that_can_never_work_is_refused_at_once(table, wrong):
    with pytest.raises(sl.InvalidInputError):
        ForeachBatchSink(table.url, **wrong)


def test_a_table_in_memory_is_refused_for_tasks_do_not_see_it():
    with pytest.raises(sl.InvalidInputError, match="memory"):
        ForeachBatchSink("memory://here", app_id="a")


def in_two(sink, other=None):
    """A function for foreachBatch that writes the even ids, then the odd ones."""

    def write(rows, batch_id):
        sink(rows.where("id % 2 = 0"), batch_id)
        (other or sink)(rows.where("id % 2 = 1"), batch_id)

    return write


def test_a_second_dataframe_of_one_batch_is_refused(arrivals, table, checkpoint):
    arrivals.add(1, 2)
    sink = ForeachBatchSink(table.url, app_id="agg")
    for _ in range(2):  # a query that is started again does not lose it either
        with pytest.raises(StreamingQueryException, match="one dataframe a batch") as caught:
            drain(arrivals.rows, in_two(sink), checkpoint)
        assert "app_id 'agg' has had its dataframe of batch 0" in str(caught.value)
    assert ids(table) == [2]


def test_a_refused_dataframe_is_written_by_a_sink_with_an_app_id_of_its_own(
    arrivals, table, checkpoint
):
    arrivals.add(1, 2)
    sink = ForeachBatchSink(table.url, app_id="agg")
    with pytest.raises(StreamingQueryException, match="an app_id of its own for each"):
        drain(arrivals.rows, in_two(sink), checkpoint)
    arrivals.add(3, 4)
    drain(arrivals.rows, in_two(sink, ForeachBatchSink(table.url, app_id="odd")), checkpoint)
    assert ids(table) == [1, 2, 3, 4]


def test_another_sink_of_the_same_app_id_gets_no_second_dataframe(arrivals, table, checkpoint):
    arrivals.add(1, 2)

    def write(rows, batch_id):
        for rest in (0, 1):
            sink = ForeachBatchSink(table.url, app_id="agg")
            sink(rows.where(f"id % 2 = {rest}"), batch_id)
            sink.close()

    with pytest.raises(StreamingQueryException, match="one dataframe a batch"):
        drain(arrivals.rows, write, checkpoint)


def test_a_batch_that_failed_after_its_write_is_skipped_by_the_same_sink(
    arrivals, table, checkpoint
):
    arrivals.add(1)
    sink = ForeachBatchSink(table.url, app_id="agg")
    told = []

    def write(rows, batch_id):
        told.append(sink(rows, batch_id))
        if len(told) == 1:
            raise RuntimeError("after the write")

    with pytest.raises(StreamingQueryException, match="after the write"):
        drain(arrivals.rows, write, checkpoint)
    drain(arrivals.rows, write, checkpoint)
    assert told[0].rows == 1
    assert told[1:] == [None]
    assert ids(table) == [1]


def test_a_write_that_failed_may_be_tried_again_in_its_batch(arrivals, table, checkpoint):
    arrivals.add(1)
    sink = ForeachBatchSink(table.url, app_id="agg")

    def write(rows, batch_id):
        with pytest.raises(sl.SchemaMismatchError):
            sink(rows.withColumnRenamed("name", "label"), batch_id)
        sink(rows, batch_id)

    drain(arrivals.rows, write, checkpoint)
    assert ids(table) == [1]
