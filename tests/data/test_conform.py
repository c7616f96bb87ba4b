from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given

from data.arrow_strategies import tables
from streamlake.data import conform, conform_parts
from streamlake.errors import ConstraintViolationError, InvalidInputError, SchemaMismatchError

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string())])
ROWS = [{"id": 1, "name": "a"}, {"id": 2, "name": None}]


def only(kind, *, nullable=True):
    return pa.schema([pa.field("c", kind, nullable=nullable)])


def as_column(values, given_kind, expected):
    table = conform(pa.table({"c": pa.array(values, given_kind)}), only(expected))
    assert table.schema == only(expected)
    table.validate(full=True)
    return table.column("c").to_pylist()


@given(tables())
def test_data_of_the_tables_own_schema_stays_as_it_is(table):
    assert conform(table, table.schema).equals(table)


@pytest.mark.parametrize(
    "data",
    [
        pa.Table.from_pylist(ROWS),
        pa.RecordBatch.from_pylist(ROWS),
        pa.Table.from_pylist(ROWS).to_reader(),
        pa.Table.from_pylist(ROWS).to_struct_array().combine_chunks(),
    ],
    ids=["table", "batch", "reader", "arrow_c_array"],
)
def test_every_arrow_form_is_taken(data):
    table = conform(data, SCHEMA)
    assert (table.schema, table.to_pylist()) == (SCHEMA, ROWS)


def test_whatever_exports_a_stream_is_taken():
    class Exporter:
        def __arrow_c_stream__(self, requested_schema=None):
            return pa.Table.from_pylist(ROWS).__arrow_c_stream__(requested_schema)

    assert conform(Exporter(), SCHEMA).to_pylist() == ROWS


def test_a_stream_without_batches_gives_no_rows():
    reader = pa.RecordBatchReader.from_batches(SCHEMA, [])
    assert conform(reader, SCHEMA).equals(SCHEMA.empty_table())


def test_a_stream_is_taken_part_by_part():
    table = pa.Table.from_pylist(ROWS)
    parts = conform_parts(table.to_reader(max_chunksize=1), SCHEMA)
    assert [part.num_rows for part in parts] == [1, 1]


def test_other_objects_are_refused_by_their_type():
    with pytest.raises(InvalidInputError, match=r"builtins\.list[\s\S]*from_pylist"):
        conform(ROWS, SCHEMA)


def test_columns_are_put_in_the_tables_order_and_absent_ones_are_null():
    schema = SCHEMA.append(pa.field("more", pa.list_(pa.int64())))
    table = conform(pa.table({"name": ["a"], "id": [1]}), schema)
    assert table.to_pylist() == [{"id": 1, "name": "a", "more": None}]
    assert table.schema == schema


def test_metadata_is_the_tables_not_the_datas():
    given_table = pa.Table.from_pylist(ROWS).replace_schema_metadata({"pandas": "{}"})
    assert conform(given_table, SCHEMA).schema.metadata is None


@pytest.mark.parametrize(
    ("values", "given_kind", "expected"),
    [
        ([1, None], pa.int8(), pa.int64()),
        ([255], pa.uint8(), pa.int16()),
        ([2**32 - 1], pa.uint32(), pa.int64()),
        ([1.5], pa.float32(), pa.float64()),
        ([7], pa.int32(), pa.float64()),
        ([Decimal(7)], pa.int32(), pa.decimal128(10, 0)),
        ([Decimal("1.20")], pa.decimal128(5, 2), pa.decimal128(7, 4)),
        ([Decimal("1.20")], pa.decimal256(50, 2), pa.decimal256(50, 2)),
        (["a", None], pa.large_string(), pa.string()),
        (["a", None], pa.string_view(), pa.string()),
        (["a", "b", "a"], pa.dictionary(pa.int8(), pa.string()), pa.string()),
        ([b"ab"], pa.binary(2), pa.binary()),
        ([b"ab"], pa.large_binary(), pa.binary()),
        ([None, None], pa.null(), pa.struct([("a", pa.int64())])),
        ([date(2024, 1, 1)], pa.date64(), pa.date32()),
        ([NOON], pa.timestamp("s", "Europe/Berlin"), pa.timestamp("us", "UTC")),
        ([NOON], pa.timestamp("ns", "UTC"), pa.timestamp("us", "UTC")),
        ([NOON.replace(tzinfo=None)], pa.timestamp("ms"), pa.timestamp("us")),
        ([[1], None, []], pa.large_list(pa.int32()), pa.list_(pa.int64())),
        ([[1, 2], None], pa.list_(pa.int32(), 2), pa.list_(pa.int64())),
        (
            [[("a", 1)], None],
            pa.map_(pa.large_string(), pa.int8()),
            pa.map_(pa.string(), pa.int64()),
        ),
    ],
    ids=str,
)
def test_types_that_lose_nothing_become_the_tables(values, given_kind, expected):
    assert as_column(values, given_kind, expected) == values


def test_run_end_encoded_and_extension_columns_become_their_values():
    runs = pc.run_end_encode(pa.array(["a", "a", None]))  # type: ignore[attr-defined]
    documents = pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}", None, "1"]))
    schema = pa.schema([("runs", pa.string()), ("documents", pa.string())])
    table = conform(pa.table({"runs": runs, "documents": documents}), schema)
    assert table.column("runs").to_pylist() == ["a", "a", None]
    assert table.column("documents").to_pylist() == ["{}", None, "1"]


def test_structs_are_matched_by_the_names_of_their_fields():
    expected = pa.struct([("a", pa.int64()), ("b", pa.string()), ("new", pa.float64())])
    given_kind = pa.struct([("b", pa.large_string()), ("a", pa.int16())])
    found = as_column([{"b": "x", "a": 1}, None], given_kind, expected)
    assert found == [{"a": 1, "b": "x", "new": None}, None]


@pytest.mark.parametrize(
    ("given_kind", "expected"),
    [
        (pa.int64(), pa.int32()),
        (pa.uint64(), pa.int64()),
        (pa.int64(), pa.float64()),
        (pa.float64(), pa.float32()),
        (pa.float64(), pa.int64()),
        (pa.int64(), pa.decimal128(18, 0)),
        (pa.decimal128(10, 2), pa.decimal128(10, 3)),
        (pa.decimal128(10, 3), pa.decimal128(12, 2)),
        (pa.string(), pa.binary()),
        (pa.binary(), pa.string()),
        (pa.int64(), pa.string()),
        (pa.string(), pa.int64()),
        (pa.bool_(), pa.int8()),
        (pa.timestamp("us"), pa.timestamp("us", "UTC")),
        (pa.timestamp("us", "UTC"), pa.timestamp("us")),
        (pa.date32(), pa.timestamp("us")),
        (pa.time64("us"), pa.timestamp("us")),
        (pa.list_(pa.int64()), pa.int64()),
        (pa.list_(pa.string()), pa.list_(pa.int64())),
        (pa.list_view(pa.int64()), pa.list_(pa.int64())),
        (pa.map_(pa.string(), pa.int64()), pa.struct([("a", pa.int64())])),
        (pa.map_(pa.int64(), pa.int64()), pa.map_(pa.string(), pa.int64())),
        (pa.struct([("a", pa.int64()), ("x", pa.int64())]), pa.struct([("a", pa.int64())])),
        (pa.struct([("a", pa.string())]), pa.struct([("a", pa.int64())])),
        (
            pa.struct([("a", pa.int64())]),
            pa.struct([pa.field("a", pa.int64()), pa.field("b", pa.int64(), nullable=False)]),
        ),
    ],
    ids=str,
)
def test_types_that_could_lose_something_are_refused(given_kind, expected):
    with pytest.raises(SchemaMismatchError, match="c"):
        conform(only(given_kind).empty_table(), only(expected))


def test_a_mismatch_names_every_column_that_does_not_fit_and_no_other():
    data = pa.table({"id": ["1"], "name": [None], "extra": [1]})
    with pytest.raises(SchemaMismatchError) as caught:
        conform(data, SCHEMA.append(pa.field("needed", pa.int64(), nullable=False)))
    found = caught.value.found
    assert all(name in found for name in ("id", "extra", "needed"))
    assert "name" not in found.replace("named", "")


def test_a_mismatch_shows_before_a_stream_is_read():
    def batches():
        pytest.fail("a batch was read")
        yield

    data = pa.RecordBatchReader.from_batches(only(pa.string()), batches())
    with pytest.raises(SchemaMismatchError):
        conform(data, only(pa.int64()))


def test_a_column_given_twice_is_refused():
    data = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["c", "c"])
    with pytest.raises(SchemaMismatchError, match="2 times"):
        conform(data, only(pa.int64()))


def test_a_timestamp_with_nanoseconds_is_refused_where_they_would_be_lost():
    data = pa.table({"c": pa.array([1001], pa.timestamp("ns", "UTC"))})
    with pytest.raises(SchemaMismatchError, match="would lose data"):
        conform(data, only(pa.timestamp("us", "UTC")))


def test_a_timestamp_beyond_the_range_of_microseconds_is_refused():
    data = pa.table({"c": pa.array([2**62], pa.timestamp("s"))})
    with pytest.raises(SchemaMismatchError, match="out of bounds"):
        conform(data, only(pa.timestamp("us")))


def test_nulls_in_not_null_are_refused_with_column_and_count():
    data = pa.table({"id": [None, 1, None], "name": ["a", "b", "c"]})
    with pytest.raises(ConstraintViolationError, match="id: 2 null"):
        conform(data, SCHEMA)


def test_a_null_among_the_values_of_a_dictionary_counts():
    codes = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", None]))
    with pytest.raises(ConstraintViolationError, match="c: 1 null"):
        conform(pa.table({"c": codes}), only(pa.string(), nullable=False))


REQUIRED = pa.field("a", pa.int64(), nullable=False)


@pytest.mark.parametrize(
    ("kind", "values", "path"),
    [
        (pa.struct([REQUIRED]), [{"a": 1}, {"a": None}, None], "c.a"),
        (pa.list_(REQUIRED.with_name("element")), [[1, None], None], "c.element"),
        (pa.map_(pa.string(), REQUIRED.with_name("value")), [[("k", None)], None], "c.value"),
        (pa.list_(pa.struct([REQUIRED])), [[{"a": None}, None], None], "c.element.a"),
        (
            pa.struct([pa.field("s", pa.struct([REQUIRED]), nullable=False)]),
            [{"s": None}, {"s": {"a": 1}}, None],
            "c.s",
        ),
    ],
)
def test_nulls_in_nested_not_null_are_refused_with_their_path(kind, values, path):
    loose = pa.array(values, kind)
    with pytest.raises(ConstraintViolationError, match=f"{path}: 1 null"):
        conform(pa.table({"c": loose}), only(kind))


def test_a_required_field_may_be_null_where_the_struct_around_it_is():
    loose = pa.StructArray.from_arrays(
        [pa.array([1, None, 3])], names=["a"], mask=pa.array([False, True, False])
    )
    kind = pa.struct([REQUIRED])
    listed = pa.ListArray.from_arrays(pa.array([0, 3]), loose)
    schema = pa.schema([("s", kind), ("l", pa.list_(kind))])
    table = conform(pa.table({"s": loose.slice(1, 1), "l": listed}), schema)
    table.validate(full=True)
    assert table.to_pylist() == [{"s": None, "l": [{"a": 1}, None, {"a": 3}]}]


def test_elements_that_no_list_reaches_do_not_count():
    hidden = pa.ListArray.from_arrays(pa.array([0, 1, 2]), pa.array([1, None]))
    kind = pa.list_(REQUIRED.with_name("element"))
    assert conform(pa.table({"c": hidden.slice(0, 1)}), only(kind)).to_pylist() == [{"c": [1]}]
