import json
from datetime import UTC, date, datetime
from decimal import Decimal

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.arrow_strategies import tables
from data.staging import read_back, stager_of
from streamlake.data import (
    ReadLimits,
    WriteLimits,
    encode_parquet,
    iter_file,
    plain_columns,
    read_file,
)
from streamlake.errors import (
    CorruptTableError,
    InvalidInputError,
    LimitExceededError,
    StorageError,
    UnsafePathError,
    UnsupportedFeatureError,
)
from streamlake.protocol.actions import AddFile
from streamlake.storage.memory import MemoryStore
from streamlake.testing.counting_store import CountingStore

RANGED = ReadLimits(whole_file_bytes=0, batch_rows=1000)
NUMBERS = pa.schema([("id", pa.int64()), ("text", pa.string())])


def numbers(count):
    return pa.table({"id": range(count), "text": [f"text {i}" for i in range(count)]})


@pytest.fixture
def store():
    return MemoryStore()


def put(store, data, *, size=None, **fields):
    """The AddFile of a data file with these bytes."""
    data = memoryview(data)
    store.put("f.parquet", data)
    size = len(data) if size is None else size
    values = {"partition_values": {}, "modification_time": 0, "data_change": True, **fields}
    return AddFile(path="f.parquet", size=size, **values)


def foreign(store, table, **options):
    """The AddFile of a data file as another writer made it."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return put(store, sink.getvalue())


def read(store, add, schema, **options):
    return read_file(store, add, plain_columns(schema), **options)


@given(tables(), st.integers(1, 3))
def test_ranged_reads_give_what_whole_reads_give(table, batch_rows):
    store = MemoryStore()
    (*adds,) = stager_of(store, table.schema).stage(table)
    limits = ReadLimits(whole_file_bytes=0, batch_rows=batch_rows)
    assert read_back(store, adds, table.schema, limits=limits).equals(table)


@given(st.integers(0, 100), st.integers(1, 40), st.integers(1, 40))
def test_iterating_from_any_row_gives_the_rest_in_bounded_parts(start, group_rows, batch_rows):
    store = MemoryStore()
    add = foreign(store, numbers(100), row_group_size=group_rows)
    limits = ReadLimits(batch_rows=batch_rows)
    parts = list(iter_file(store, add, plain_columns(NUMBERS), start_row=start, limits=limits))
    assert all(0 < part.num_rows <= batch_rows for part in parts)
    found = pa.concat_tables([NUMBERS.empty_table(), *parts])
    assert found.equals(numbers(100).slice(start))


def test_a_start_beyond_the_last_row_is_refused(store):
    add = foreign(store, numbers(3))
    with pytest.raises(InvalidInputError, match="no row 4"):
        list(iter_file(store, add, plain_columns(NUMBERS), start_row=4))


def test_a_small_file_takes_one_request():
    store = CountingStore(MemoryStore())
    add = foreign(store, numbers(100))
    store.requests.clear()
    read(store, add, NUMBERS, columns=["id"])
    assert store.requests == [("get", "f.parquet")]


def test_of_a_large_file_only_the_columns_asked_for_are_fetched():
    store = CountingStore(MemoryStore())
    schema = pa.schema([("id", pa.int64()), ("blob", pa.binary())])
    table = pa.table({"id": range(100), "blob": [bytes(10_000)] * 100}, schema=schema)
    add = foreign(store, table, compression="none", use_dictionary=False)
    store.requests.clear()
    found = read(store, add, schema, columns=["id"], limits=RANGED)
    assert found.column("id").to_pylist() == list(range(100))
    assert {name for name, _ in store.requests} == {"get_range"}
    assert len(store.requests) == 2


def test_row_groups_before_the_start_are_not_fetched():
    limits = WriteLimits(row_group_rows=50_000)
    store = CountingStore(MemoryStore())
    (add,) = stager_of(store, NUMBERS, limits=limits).stage(numbers(200_000))
    columns = plain_columns(NUMBERS)
    store.requests.clear()
    assert sum(part.num_rows for part in iter_file(store, add, columns, limits=RANGED)) == 200_000
    whole = len(store.requests)
    store.requests.clear()
    rest = iter_file(store, add, columns, start_row=160_000, limits=RANGED)
    assert sum(part.num_rows for part in rest) == 40_000
    assert len(store.requests) < whole


def test_columns_come_as_they_are_asked_for(store):
    add = foreign(store, numbers(2))
    assert read(store, add, NUMBERS, columns=["text", "id"]).column_names == ["text", "id"]
    assert read(store, add, NUMBERS, columns=[]).num_rows == 2


def test_rows_are_there_also_where_no_column_is_stored(store):
    schema = pa.schema([*NUMBERS, ("new", pa.int64())])
    add = foreign(store, numbers(25), row_group_size=10)
    limits = ReadLimits(batch_rows=4)
    assert read(store, add, schema, columns=["new"], limits=limits).column("new").null_count == 25
    assert read(store, add, schema, columns=[], limits=limits).num_rows == 25


def test_a_column_that_the_table_does_not_have_is_refused(store):
    with pytest.raises(InvalidInputError, match="'nope'"):
        read(store, foreign(store, numbers(2)), NUMBERS, columns=["nope"])


def test_a_column_with_a_dot_is_not_a_field_of_a_struct(store):
    table = pa.table({"a": [{"b": 1}], "a.b": [2]})
    add = foreign(store, table)
    found = read(store, add, table.schema, columns=["a.b"])
    assert found.to_pylist() == [{"a.b": 2}]


def test_columns_that_the_file_is_older_than_are_null(store):
    schema = pa.schema([("new", pa.map_(pa.string(), pa.int64())), *NUMBERS])
    found = read(store, foreign(store, numbers(1)), schema)
    assert found.to_pylist() == [{"new": None, "id": 0, "text": "text 0"}]
    assert found.schema == schema


def test_columns_that_the_table_no_longer_has_are_passed_over(store):
    schema = pa.schema([("text", pa.string())])
    assert read(store, foreign(store, numbers(1)), schema).to_pylist() == [{"text": "text 0"}]


def test_columns_are_found_whatever_the_case_of_their_letters(store):
    schema = pa.schema([("ID", pa.int64())])
    assert read(store, foreign(store, numbers(2)), schema).to_pylist() == [{"ID": 0}, {"ID": 1}]


@pytest.mark.parametrize(
    ("values", "stored", "expected"),
    [
        ([1], pa.int32(), pa.int64()),
        ([1], pa.int32(), pa.int8()),
        ([1.5], pa.float32(), pa.float64()),
        ([1], pa.int32(), pa.float64()),
        ([Decimal("1.5")], pa.decimal128(5, 1), pa.decimal128(10, 1)),
        (["a"], pa.large_string(), pa.string()),
        ([b"ab"], pa.binary(2), pa.binary()),
        ([[{"a": 1}]], pa.list_(pa.struct([("a", pa.int32())])), None),
        ([datetime(2024, 1, 1, 12)], pa.timestamp("ms"), pa.timestamp("us")),  # noqa: DTZ001
        ([datetime(2024, 1, 1, tzinfo=UTC)], pa.timestamp("ns", "UTC"), pa.timestamp("us", "UTC")),
    ],
    ids=str,
)
def test_types_of_older_or_foreign_files_become_the_tables(store, values, stored, expected):
    expected = expected or pa.list_(pa.struct([("a", pa.int64()), ("new", pa.string())]))
    add = foreign(store, pa.table({"c": pa.array(values, stored)}), store_schema=False)
    found = read(store, add, pa.schema([("c", expected)]))
    assert found.column("c").type == expected
    if not pa.types.is_nested(expected):
        assert found.column("c").to_pylist() == values


def test_int96_is_an_instant_in_utc_to_the_microsecond(store):
    whens = [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)]
    table = pa.table({"c": pa.array([w.replace(tzinfo=None) for w in whens], pa.timestamp("us"))})
    add = foreign(store, table, use_deprecated_int96_timestamps=True)
    found = read(store, add, pa.schema([("c", pa.timestamp("us", "UTC"))]))
    assert found.column("c").to_pylist() == whens


def test_partition_columns_come_from_the_log_with_their_types(store):
    schema = pa.schema([("day", pa.date32()), *NUMBERS, ("price", pa.decimal128(5, 2))])
    values = {"day": "2024-02-29", "price": "1.50"}
    add = msgspec.structs.replace(foreign(store, numbers(2)), partition_values=values)
    found = read_file(store, add, plain_columns(schema, ("day", "price")))
    assert found.schema == schema
    assert found.column("day").to_pylist() == [date(2024, 2, 29)] * 2
    assert found.column("price").to_pylist() == [Decimal("1.50")] * 2


@pytest.mark.parametrize(
    ("kind", "text"), [(pa.int8(), "1000"), (pa.date32(), "noon"), (pa.int64(), "1.5")]
)
def test_a_partition_value_that_is_none_of_its_type_is_corruption(store, kind, text):
    add = msgspec.structs.replace(foreign(store, numbers(1)), partition_values={"p": text})
    schema = pa.schema([*NUMBERS, ("p", kind)])
    with pytest.raises(CorruptTableError):
        read_file(store, add, plain_columns(schema, ("p",)))


def test_a_column_of_another_type_is_corruption(store):
    schema = pa.schema([("id", pa.string())])
    with pytest.raises(CorruptTableError, match="'id' is int64, not string"):
        read(store, foreign(store, numbers(1)), schema)


def test_a_value_that_its_type_can_not_hold_is_corruption(store):
    schema = pa.schema([("id", pa.int8())])
    with pytest.raises(CorruptTableError):
        read(store, foreign(store, numbers(1000)), schema)


def test_nulls_in_not_null_are_corruption(store):
    schema = pa.schema([pa.field("c", pa.int64(), nullable=False)])
    with pytest.raises(CorruptTableError, match="c: 1 null"):
        read(store, foreign(store, pa.table({"c": pa.array([None], pa.int64())})), schema)


def test_a_missing_file_is_corruption_that_tells_of_vacuum(store):
    add = AddFile("gone.parquet", {}, 9, 0, data_change=True)
    for limits in (ReadLimits(), RANGED):
        with pytest.raises(CorruptTableError, match="vacuum") as caught:
            read(store, add, NUMBERS, limits=limits)
        assert caught.value.where.endswith("/gone.parquet")


@pytest.mark.parametrize("limits", [ReadLimits(), RANGED], ids=["whole", "ranged"])
@given(data=st.data())
def test_a_torn_file_is_corruption(limits, data):
    store = MemoryStore()
    whole = bytes(encode_parquet(numbers(50)))
    cut = data.draw(st.integers(0, len(whole) - 1))
    torn = put(store, whole[:cut], size=len(whole))
    with pytest.raises(CorruptTableError):
        read(store, torn, NUMBERS, limits=limits)


@given(st.data())
def test_a_garbled_file_is_never_read_as_if_it_were_whole(data):
    store = MemoryStore()
    table = numbers(50)
    garbled = bytearray(encode_parquet(table))
    position = data.draw(st.integers(0, len(garbled) - 1))
    garbled[position] ^= data.draw(st.integers(1, 255))
    try:
        found = read(store, put(store, garbled), NUMBERS)
    except (CorruptTableError, LimitExceededError, UnsupportedFeatureError):
        return
    assert found.num_rows in {0, 50}


@pytest.mark.parametrize("content", [b"", b"PAR1", bytes(5000), b"{}" * 100])
def test_what_is_no_parquet_is_corruption(store, content):
    with pytest.raises(CorruptTableError, match="no Parquet"):
        read(store, put(store, content), NUMBERS)


def test_an_encrypted_file_is_refused(store):
    content = bytes(encode_parquet(numbers(1)))[:-4] + b"PARE"
    with pytest.raises(UnsupportedFeatureError, match="encrypted"):
        read(store, put(store, content), NUMBERS)


def test_a_footer_past_the_limit_is_refused(store):
    add = foreign(store, numbers(1))
    for whole_file_bytes in (0, 10_000):
        limits = ReadLimits(footer_bytes=100, whole_file_bytes=whole_file_bytes)
        with pytest.raises(LimitExceededError, match="footer_bytes is 100"):
            read(store, add, NUMBERS, limits=limits)


def test_a_footer_of_too_many_elements_is_refused(store):
    wide = pa.table({f"c{n}": [n] for n in range(100)})
    with pytest.raises(LimitExceededError, match="footer_elements 50"):
        read(store, foreign(store, wide), wide.schema, limits=ReadLimits(footer_elements=50))


def test_rows_that_outgrow_the_limit_are_refused_on_the_way(store):
    schema = pa.schema([("c", pa.string())])
    bomb = pa.table({"c": pa.repeat(pa.scalar("x" * 1000), 100_000)})
    add = foreign(store, bomb)
    assert add.size < 100_000
    limits = ReadLimits(decoded_bytes=10_000_000, batch_rows=1000)
    with pytest.raises(LimitExceededError, match="decoded_bytes is 10000000"):
        read(store, add, schema, limits=limits)


def test_a_file_of_other_rows_than_the_log_says_is_corruption(store):
    add = msgspec.structs.replace(foreign(store, numbers(3)), stats='{"numRecords":4}')
    with pytest.raises(CorruptTableError, match="3 rows; the log says 4"):
        read(store, add, NUMBERS)


@pytest.mark.parametrize("count", ["0", '{"a":2,"b":1}'])
def test_a_column_that_the_log_knows_values_of_must_be_there(store, count):
    stats = f'{{"numRecords":2,"nullCount":{{"new":{count}}}}}'
    add = msgspec.structs.replace(foreign(store, numbers(2)), stats=stats)
    with pytest.raises(CorruptTableError, match="no column 'new'"):
        read(store, add, pa.schema([*NUMBERS, ("new", pa.int64())]))


@pytest.mark.parametrize("stats", ["{", "null", '{"nullCount":{"new":2}}', '{"numRecords":2}'])
def test_statistics_that_say_nothing_are_no_obstacle(store, stats):
    add = msgspec.structs.replace(foreign(store, numbers(2)), stats=stats)
    assert read(store, add, pa.schema([*NUMBERS, ("new", pa.int64())])).num_rows == 2


def test_a_path_that_leaves_the_table_is_refused(store):
    for path in ("../f.parquet", "%2e%2e/f.parquet", "file:///etc/passwd"):
        with pytest.raises(UnsafePathError):
            read(store, AddFile(path, {}, 9, 0, data_change=True), NUMBERS)


class FailingStore(MemoryStore):
    """Fails whatever is read by range below the end of the file."""

    def get_range(self, path, start, length):
        if start < 100:
            raise StorageError("The network is down.")
        return super().get_range(path, start, length)


def test_a_store_that_fails_under_the_reader_keeps_its_own_error():
    store = FailingStore()
    table = numbers(200_000)
    (add,) = stager_of(store, NUMBERS).stage(table)
    with pytest.raises(StorageError, match="network"):
        read(store, add, NUMBERS, limits=RANGED)


def test_statistics_count_what_is_read(store):
    (add,) = stager_of(store, NUMBERS).stage(numbers(77))
    assert json.loads(add.stats)["numRecords"] == read(store, add, NUMBERS).num_rows
