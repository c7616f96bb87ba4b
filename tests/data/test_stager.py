import json
import pickle
from datetime import UTC, date, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.arrow_strategies import LEAVES, nullable, tables
from data.staging import objects, read_back, stager_of
from streamlake.data import WriteLimits
from streamlake.errors import (
    ConstraintViolationError,
    InvalidInputError,
    SchemaMismatchError,
    StorageError,
    WriteRefusedError,
)
from streamlake.storage.local import LocalStore
from streamlake.storage.memory import MemoryStore

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("city", pa.string())])
DAYS = [date(2024, 1, 1), date(2024, 1, 2), None]


def rows(count):
    return pa.table(
        {
            "id": range(count),
            "day": pa.array([DAYS[i % 3] for i in range(count)], pa.date32()),
            "city": [f"city {i % 2}" for i in range(count)],
        }
    )


@pytest.fixture
def store():
    return MemoryStore()


@given(tables())
def test_any_data_comes_back_as_it_was(table):
    store = MemoryStore()
    adds = stager_of(store, table.schema).stage(table)
    assert read_back(store, adds, table.schema).equals(table)


partition_leaves = [
    leaf for leaf in LEAVES if not (pa.types.is_date(leaf[0]) or pa.types.is_timestamp(leaf[0]))
]


@given(st.data())
def test_partitioned_data_comes_back_whatever_the_values(data):
    kind, values = data.draw(st.sampled_from(partition_leaves))
    chosen = data.draw(st.lists(nullable(values), min_size=1, max_size=6))
    table = pa.table({"p": pa.array(chosen, kind), "id": range(len(chosen))})
    store = MemoryStore()
    adds = stager_of(store, table.schema, ["p"]).stage(table)
    found = read_back(store, adds, table.schema, ["p"]).sort_by("id").column("p").to_pylist()
    assert str(found) == str(
        [
            value or None if kind in (pa.string(), pa.binary()) else value
            for value in table.column("p").to_pylist()
        ]
    )


def test_one_small_table_is_one_file_and_one_request(store):
    (add,) = stager_of(store, SCHEMA).stage(rows(100))
    assert objects(store) == [add.path]
    assert (add.size, add.data_change, add.partition_values) == (
        store.stat(add.path).size_bytes,
        True,
        {},
    )
    assert json.loads(add.stats)["numRecords"] == 100


def test_file_names_are_fresh_each_time(store):
    stager = stager_of(store, SCHEMA)
    names = {add.path for _ in range(3) for add in stager.stage(rows(1))}
    assert len(names) == 3
    assert all(name.startswith("part-00000-") for name in names)
    assert all(name.endswith("-c000.snappy.parquet") for name in names)


def test_no_rows_make_no_file(store):
    assert stager_of(store, SCHEMA).stage(rows(0)) == ()
    assert stager_of(store, SCHEMA, ["day"]).stage(rows(0)) == ()
    assert stager_of(store, SCHEMA).stage(pa.RecordBatchReader.from_batches(SCHEMA, [])) == ()
    assert objects(store) == []


def test_each_partition_has_a_folder_and_a_file_without_its_column(store):
    adds = stager_of(store, SCHEMA, ["day"]).stage(rows(9))
    assert [add.partition_values["day"] for add in adds] == ["2024-01-01", "2024-01-02", None]
    assert [add.path.split("/")[0] for add in adds] == [
        "day=2024-01-01",
        "day=2024-01-02",
        "day=__HIVE_DEFAULT_PARTITION__",
    ]
    stored = pq.read_schema(pa.BufferReader(store.get(adds[0].path)))
    assert stored.names == ["id", "city"]
    assert set(json.loads(adds[0].stats)["nullCount"]) == {"id", "city"}


def test_rows_keep_their_order_within_a_partition(store):
    adds = stager_of(store, SCHEMA, ["city", "day"]).stage(rows(60))
    assert len(adds) == 6
    for add in adds:
        ids = read_back(store, [add], SCHEMA, ["city", "day"]).column("id").to_pylist()
        assert len(ids) == 10
        assert ids == sorted(ids)


def test_the_log_spells_the_path_of_odd_partition_values_encoded(store):
    table = pa.table({"p": ["a b/c%d=é😀"], "id": [1]})
    (add,) = stager_of(store, table.schema, ["p"]).stage(table)
    assert add.path.isascii()
    assert " " not in add.path
    assert read_back(store, [add], table.schema, ["p"]).to_pylist() == table.to_pylist()


def test_a_value_too_long_for_a_folder_name_goes_without(tmp_path):
    table = pa.table({"p": ["x" * 300], "id": [1]})
    store = LocalStore(tmp_path)
    (add,) = stager_of(store, table.schema, ["p"]).stage(table)
    assert add.partition_values == {"p": "x" * 300}
    assert read_back(store, [add], table.schema, ["p"]).to_pylist() == table.to_pylist()


def test_an_empty_string_counts_as_null_in_a_partition(store):
    table = pa.table({"p": ["", None], "id": [1, 2]})
    adds = stager_of(store, table.schema, ["p"]).stage(table)
    assert {add.partition_values["p"] for add in adds} == {None}


def test_an_empty_string_is_refused_where_the_partition_column_is_not_null(store):
    schema = pa.schema([pa.field("p", pa.string(), nullable=False), ("id", pa.int64())])
    with pytest.raises(ConstraintViolationError, match="'p'"):
        stager_of(store, schema, ["p"]).stage(pa.table({"p": [""], "id": [1]}))


def test_a_date_that_no_partition_value_can_tell_is_refused(store):
    table = pa.table({"p": pa.array([2**31 - 1], pa.date32()), "id": [1]})
    with pytest.raises(InvalidInputError, match="'p'"):
        stager_of(store, table.schema, ["p"]).stage(table)


def test_timestamps_partition_by_their_instant(store):
    noon = datetime(2024, 1, 1, 12, 0, 0, 5, tzinfo=UTC)
    table = pa.table({"p": pa.array([noon], pa.timestamp("us", "UTC")), "id": [1]})
    adds = stager_of(store, table.schema, ["p"]).stage(table)
    assert read_back(store, adds, table.schema, ["p"]).column("p").to_pylist() == [noon]


def test_a_long_stream_becomes_files_of_about_the_target_size(store):
    limits = WriteLimits(row_group_rows=1000)
    stager = stager_of(store, SCHEMA, target_file_size_bytes=20_000, limits=limits)
    adds = stager.stage(rows(20_000).to_reader(max_chunksize=300))
    assert len(adds) > 2
    assert all(20_000 <= add.size < 40_000 for add in adds[:-1])
    assert read_back(store, adds, SCHEMA).equals(rows(20_000))


def test_statistics_span_all_row_groups_of_a_file(store):
    limits = WriteLimits(row_group_rows=10)
    (add,) = stager_of(store, SCHEMA, limits=limits).stage(rows(95))
    stats = json.loads(add.stats)
    assert (stats["numRecords"], stats["minValues"]["id"], stats["maxValues"]["id"]) == (95, 0, 94)


def test_open_files_of_many_partitions_are_bounded(store):
    limits = WriteLimits(open_files=2)
    adds = stager_of(store, SCHEMA, ["day"], limits=limits).stage(rows(30))
    assert read_back(store, adds, SCHEMA, ["day"]).sort_by("id").equals(rows(30))


def test_staged_files_can_be_no_change_of_data(store):
    (add,) = stager_of(store, SCHEMA).stage(rows(1), data_change=False)
    assert add.data_change is False


def test_the_tables_properties_say_what_is_indexed(store):
    configuration = {"delta.dataSkippingNumIndexedCols": "1"}
    (add,) = stager_of(store, SCHEMA, configuration=configuration).stage(rows(3))
    assert list(json.loads(add.stats)["nullCount"]) == ["id"]
    configuration = {"delta.dataSkippingStatsColumns": "city"}
    (add,) = stager_of(store, SCHEMA, configuration=configuration).stage(rows(3))
    assert list(json.loads(add.stats)["nullCount"]) == ["city"]


def test_a_stager_works_from_another_process(tmp_path):
    stager = pickle.loads(pickle.dumps(stager_of(LocalStore(tmp_path), SCHEMA, ["day"])))  # noqa: S301
    adds = pickle.loads(pickle.dumps(stager.stage(rows(9))))  # noqa: S301
    found = read_back(LocalStore(tmp_path), adds, SCHEMA, ["day"])
    assert found.sort_by("id").equals(rows(9))


def test_data_that_does_not_fit_writes_nothing(store):
    with pytest.raises(SchemaMismatchError):
        stager_of(store, SCHEMA).stage(pa.table({"id": ["1"]}))
    assert objects(store) == []


def test_a_violation_late_in_a_stream_removes_the_files_before_it(store):
    limits = WriteLimits(row_group_rows=1)
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    parts = [pa.record_batch({"id": pa.array([value], pa.int64())}) for value in (1, 2, None)]
    reader = pa.RecordBatchReader.from_batches(parts[0].schema, parts)
    with pytest.raises(ConstraintViolationError):
        stager_of(store, schema, target_file_size_bytes=1, limits=limits).stage(reader)
    assert objects(store) == []


class FullStore(MemoryStore):
    """Refuses the third file, as a full disk does."""

    def put(self, path, data):
        if len(objects(self)) == 2:
            raise WriteRefusedError("The disk is full.")
        super().put(path, data)


def test_a_store_that_fails_midway_is_told_and_cleaned():
    store = FullStore()
    with pytest.raises(StorageError, match="full"):
        stager_of(store, SCHEMA, ["day"]).stage(rows(9))
    assert objects(store) == []


def test_a_target_size_must_be_positive(store):
    with pytest.raises(InvalidInputError, match="positive"):
        stager_of(store, SCHEMA, target_file_size_bytes=0).stage(rows(1))


def test_a_table_of_partition_columns_only_has_nothing_to_store(store):
    table = pa.table({"p": [1]})
    with pytest.raises(InvalidInputError, match="no column but"):
        stager_of(store, table.schema, ["p"]).stage(table)
