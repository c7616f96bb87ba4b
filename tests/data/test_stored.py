"""Columns of a data file found by name or by id, at every depth, and brought to the table's."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.arrow_strategies import tables
from streamlake.data import ReadLimits, TableColumns, plain_columns, read_file
from streamlake.data.relabel import relabelled
from streamlake.errors import CorruptTableError, UnsupportedFeatureError
from streamlake.protocol import AddFile, ColumnMapping
from streamlake.protocol.mapping import FIELD_ID
from streamlake.protocol.schema.variant import VariantType
from streamlake.storage.memory import MemoryStore


def column(name: str, kind: pa.DataType, number: int | None = None, **options: Any) -> Any:
    metadata = None if number is None else {FIELD_ID: str(number).encode()}
    return pa.field(name, kind, metadata=metadata, **options)


def put(store: MemoryStore, table: pa.Table, **options: Any) -> AddFile:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    data = sink.getvalue()
    store.put("f.parquet", memoryview(data))
    return AddFile("f.parquet", {}, len(data), 0, data_change=True)


def read(table: pa.Table, columns: TableColumns, **options: Any) -> pa.Table:
    store = MemoryStore()
    return read_file(store, put(store, table, **options), columns)


def mapped(mode: Any, logical: pa.Schema, physical: pa.Schema) -> TableColumns:
    return TableColumns(ColumnMapping(mode=mode, logical=logical, physical=physical))


INNER = pa.struct([pa.field("x", pa.int64()), pa.field("y", pa.string())])
LOGICAL = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("list", pa.list_(pa.field("element", INNER))),
        pa.field("map", pa.map_(pa.string(), INNER)),
    ]
)
PHYSICAL_INNER = pa.struct([column("px", pa.int64(), 11), column("py", pa.string(), 12)])
PHYSICAL = pa.schema(
    [
        column("p1", pa.int64(), 1),
        column("p2", pa.list_(pa.field("element", PHYSICAL_INNER)), 2),
        column("p3", pa.map_(pa.string(), PHYSICAL_INNER), 3),
    ]
)
ROWS: list[dict[str, Any]] = [
    {"id": 1, "list": [{"x": 1, "y": "a"}, None], "map": [("k", {"x": 2, "y": None})]},
    {"id": None, "list": None, "map": None},
    {"id": 3, "list": [], "map": []},
]


def renamed(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [relabelled(rows.column(i), field.type) for i, field in enumerate(schema)]
    return pa.Table.from_arrays(columns, schema=schema)


def test_physical_names_are_found_at_every_depth():
    rows = pa.Table.from_pylist(ROWS, schema=LOGICAL)
    found = read(renamed(rows, PHYSICAL), mapped("name", LOGICAL, PHYSICAL))
    assert found.equals(rows)
    assert found.schema.equals(LOGICAL)


def test_ids_are_found_at_every_depth_whatever_the_names():
    swapped = pa.struct([column("x", pa.string(), 12), column("y", pa.int64(), 11)])
    schema = pa.schema(
        [
            column("b", pa.map_(pa.string(), swapped), 3),
            column("id", pa.list_(pa.field("element", swapped)), 2),
            column("list", pa.int64(), 1),
        ]
    )
    rows = [
        {"b": [("k", {"x": None, "y": 2})], "id": [{"x": "a", "y": 1}, None], "list": 1},
        {"b": None, "id": None, "list": None},
        {"b": [], "id": [], "list": 3},
    ]
    found = read(pa.Table.from_pylist(rows, schema=schema), mapped("id", LOGICAL, PHYSICAL))
    assert found.equals(pa.Table.from_pylist(ROWS, schema=LOGICAL))


def test_an_id_that_the_file_lacks_is_null_and_one_it_has_besides_is_passed_over():
    schema = pa.schema([column("p1", pa.int64(), 7), column("other", pa.int64(), 1)])
    found = read(pa.table([[1], [2]], schema=schema), mapped("id", LOGICAL, PHYSICAL))
    assert found.to_pylist() == [{"id": 2, "list": None, "map": None}]


def test_a_file_without_ids_is_not_read_by_ids():
    with pytest.raises(CorruptTableError, match="no Parquet field ids of p1"):
        read(pa.table({"p1": [1]}), mapped("id", LOGICAL, PHYSICAL))


def test_a_struct_without_ids_is_not_read_by_ids():
    inner = pa.struct([("px", pa.int64()), ("py", pa.string())])
    schema = pa.schema([column("p2", pa.list_(pa.field("element", inner)), 2)])
    with pytest.raises(CorruptTableError, match="no Parquet field ids of px, py"):
        read(pa.table([[[]]], schema=schema), mapped("id", LOGICAL, PHYSICAL))


def test_one_id_twice_is_corruption():
    schema = pa.schema([column("a", pa.int64(), 1), column("b", pa.int64(), 1)])
    with pytest.raises(CorruptTableError, match="several columns for 'id': 'a', 'b'"):
        read(pa.table([[1], [2]], schema=schema), mapped("id", LOGICAL, PHYSICAL))


def test_names_that_differ_by_case_are_told_apart_or_are_corruption():
    columns = plain_columns(pa.schema([("Id", pa.int64())]))
    assert read(pa.table({"Id": [1], "id": [2]}), columns).to_pydict() == {"Id": [1]}
    with pytest.raises(CorruptTableError, match="several columns for 'Id'"):
        read(pa.table({"ID": [1], "id": [2]}), columns)


def test_fields_of_structs_are_found_in_any_order_and_case():
    stored = pa.table({"s": [{"C": 3, "a": 1, "gone": 0}, None]})
    kind = pa.struct([("a", pa.int64()), ("b", pa.string()), ("c", pa.int64())])
    found = read(stored, plain_columns(pa.schema([("s", kind)])))
    assert found.column("s").to_pylist() == [{"a": 1, "b": None, "c": 3}, None]


def test_a_struct_of_new_fields_alone_keeps_its_nulls():
    kind = pa.struct([("new", pa.int64())])
    found = read(pa.table({"s": [{"old": 1}, None]}), plain_columns(pa.schema([("s", kind)])))
    assert found.column("s").to_pylist() == [{"new": None}, None]


@given(tables(), st.integers(1, 3))
def test_what_was_stored_under_other_names_comes_back(table, batch_rows):
    store = MemoryStore()
    physical = pa.schema([column(f"p{i}", f.type, i) for i, f in enumerate(table.schema)])
    add = put(store, renamed(table, physical))
    columns = mapped("name", table.schema, physical)
    limits = ReadLimits(batch_rows=batch_rows)
    assert read_file(store, add, columns, limits=limits).equals(table)


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        (pa.large_list(pa.int32()), pa.list_(pa.int64())),
        (pa.list_(pa.int32(), 2), pa.list_(pa.int64())),
        (pa.large_list(pa.large_string()), pa.list_(pa.string())),
        (pa.dictionary(pa.int32(), pa.string()), pa.string()),
        (pa.map_(pa.large_string(), pa.large_list(pa.int8())), None),
        (pa.string(), pa.binary()),
        (pa.binary(), pa.string()),
        (pa.large_binary(), pa.string()),
    ],
    ids=str,
)
def test_what_other_arrow_writers_store_becomes_the_tables(stored, expected):
    expected = expected or pa.map_(pa.string(), pa.list_(pa.int64()))
    values: Any = {
        pa.list_(pa.int64()): [[1, 2], None],
        pa.list_(pa.string()): [["a"], None],
        pa.map_(pa.string(), pa.list_(pa.int64())): [[("k", [1])], None],
        pa.binary(): [b"a", None],
    }.get(expected, ["a", None])
    given_values = [b"a", None] if pa.types.is_large_binary(stored) else values
    if pa.types.is_binary(stored) or pa.types.is_string(stored):
        given_values = [b"a", None] if pa.types.is_binary(stored) else ["a", None]
    rows = pa.table({"c": pa.array(given_values, stored)})
    found = read(rows, plain_columns(pa.schema([("c", expected)])))
    assert found.column("c").type == expected
    assert found.column("c").to_pylist() == values


def test_bytes_that_are_no_text_are_no_string():
    rows = pa.table({"c": pa.array([b"\xff"], pa.binary())})
    with pytest.raises(CorruptTableError):
        read(rows, plain_columns(pa.schema([("c", pa.string())])))


# -------------------------------------------------------------------------------------------------
# Type widening: every change of the protocol document, by itself and inside of others

WIDENED: list[tuple[pa.DataType, pa.DataType, Any, Any]] = [
    (pa.int8(), pa.int16(), -128, -128),
    (pa.int8(), pa.int64(), 127, 127),
    (pa.int16(), pa.int32(), 1, 1),
    (pa.int32(), pa.int64(), -(2**31), -(2**31)),
    (pa.float32(), pa.float64(), 1.5, 1.5),
    (pa.int8(), pa.float64(), -1, -1.0),
    (pa.int16(), pa.float64(), 1, 1.0),
    (pa.int32(), pa.float64(), 2**31 - 1, 2.0**31 - 1),
    (pa.date32(), pa.timestamp("us"), date(2024, 2, 29), datetime(2024, 2, 29)),  # noqa: DTZ001
    (pa.decimal128(5, 2), pa.decimal128(7, 4), Decimal("1.25"), Decimal("1.2500")),
    (pa.decimal128(5, 2), pa.decimal128(20, 2), Decimal("-999.99"), Decimal("-999.99")),
    (pa.decimal128(18, 2), pa.decimal128(38, 20), Decimal("0.01"), Decimal("0.01")),
    (pa.int8(), pa.decimal128(10, 0), 1, Decimal(1)),
    (pa.int32(), pa.decimal128(12, 2), 2**31 - 1, Decimal(2**31 - 1)),
    (pa.int64(), pa.decimal128(20, 0), -(2**63), Decimal(-(2**63))),
]


@pytest.mark.parametrize(("before", "after", "stored", "wanted"), WIDENED, ids=str)
def test_older_files_are_widened(before, after, stored, wanted):
    def nested(kind: pa.DataType) -> pa.Schema:
        struct = pa.struct([pa.field("f", kind)])
        return pa.schema(
            [
                pa.field("c", kind),
                pa.field("s", struct),
                pa.field("l", pa.list_(pa.field("element", struct))),
                pa.field("m", pa.map_(kind, pa.list_(kind))),
            ]
        )

    def row(value: Any) -> dict[str, Any]:
        return {
            "c": value,
            "s": {"f": value},
            "l": [{"f": value}, None],
            "m": [(value, [value, None])],
        }

    rows = pa.Table.from_pylist([row(stored), dict.fromkeys("cslm")], schema=nested(before))
    found = read(rows, plain_columns(nested(after)))
    assert found.to_pylist() == [row(wanted), dict.fromkeys("cslm")]


@pytest.mark.parametrize(
    ("stored", "table"),
    [
        (pa.int64(), pa.float64()),
        (pa.float64(), pa.float32()),
        (pa.date32(), pa.timestamp("us", "UTC")),
        (pa.decimal128(7, 4), pa.decimal128(7, 2)),
        (pa.int64(), pa.decimal128(18, 0)),
        (pa.string(), pa.int64()),
        (pa.timestamp("us"), pa.date32()),
        (pa.struct([("x", pa.int64())]), pa.list_(pa.int64())),
        (pa.list_(pa.int64()), pa.int64()),
    ],
    ids=str,
)
def test_what_is_no_widening_is_corruption(stored, table):
    rows = pa.table({"c": pa.nulls(1, stored)})
    with pytest.raises(CorruptTableError, match="column 'c' is"):
        read(rows, plain_columns(pa.schema([("c", table)])))


# -------------------------------------------------------------------------------------------------
# Variant

ENCODED = pa.struct([("value", pa.binary()), ("metadata", pa.binary())])
ONE = {"metadata": b"\x01\x00\x00", "value": b"\x0c\x01"}


def test_variants_are_the_two_binaries_at_every_depth():
    kind = VariantType()
    rows = [
        {"v": ONE, "l": [ONE, None], "s": {"v": ONE}},
        {"v": None, "l": None, "s": {"v": None}},
    ]
    stored = pa.schema(
        [("v", ENCODED), ("l", pa.list_(ENCODED)), ("s", pa.struct([("v", ENCODED)]))]
    )
    schema = pa.schema([("v", kind), ("l", pa.list_(kind)), ("s", pa.struct([("v", kind)]))])
    found = read(pa.Table.from_pylist(rows, schema=stored), plain_columns(schema))
    assert found.schema.field("v").type == kind
    assert found.to_pylist() == rows


def test_variants_that_a_file_is_older_than_are_null():
    schema = pa.schema([("v", VariantType()), ("l", pa.list_(VariantType())), ("n", pa.int64())])
    found = read(pa.table({"n": [1]}), plain_columns(schema))
    assert found.to_pylist() == [{"v": None, "l": None, "n": 1}]


def test_a_variant_that_is_required_inside_of_a_struct_keeps_the_nulls_of_the_struct():
    kind = pa.struct([pa.field("v", VariantType(), nullable=False)])
    stored = pa.schema([("s", pa.struct([("v", ENCODED)]))])
    rows = [{"s": {"v": ONE}}, {"s": None}]
    columns = plain_columns(pa.schema([("s", kind)]))
    found = read(pa.Table.from_pylist(rows, schema=stored), columns)
    found.validate(full=True)
    assert found.to_pylist() == rows
    with pytest.raises(CorruptTableError, match=r"s\.v: 1 null"):
        read(pa.Table.from_pylist([{"s": {"v": None}}], schema=stored), columns)


def test_a_shredded_variant_is_refused_by_name():
    shredded = pa.struct([*ENCODED, pa.field("typed_value", pa.int64())])
    with pytest.raises(
        UnsupportedFeatureError, match=r"'v' is a shredded .* variantShredding"
    ) as error:
        read(
            pa.table({"v": pa.nulls(1, shredded)}), plain_columns(pa.schema([("v", VariantType())]))
        )
    assert error.value.where.endswith("/f.parquet")


@pytest.mark.parametrize(
    "stored",
    [
        pa.array([b"x"], pa.binary()),
        pa.array([{"value": b"x"}], pa.struct([("value", pa.binary())])),
        pa.array([{"value": b"x", "metadata": None}], ENCODED),
    ],
    ids=["binary", "half", "null"],
)
def test_what_is_no_variant_is_corruption(stored):
    with pytest.raises(CorruptTableError, match="variant"):
        read(pa.table({"v": stored}), plain_columns(pa.schema([("v", VariantType())])))


# -------------------------------------------------------------------------------------------------
# Partition values


def test_partition_values_go_by_physical_names():
    logical = pa.schema([("id", pa.int64()), ("day", pa.date32())])
    physical = pa.schema([column("p1", pa.int64(), 1), column("p2", pa.date32(), 2)])
    columns = TableColumns(ColumnMapping(mode="name", logical=logical, physical=physical), ("day",))
    store = MemoryStore()
    add = put(store, pa.table({"p1": [1]}))
    by = msgspec.structs.replace
    known = by(add, partition_values={"p2": "2024-02-29"})
    assert read_file(store, known, columns).to_pylist() == [{"id": 1, "day": date(2024, 2, 29)}]
    assert read_file(store, add, columns).to_pylist() == [{"id": 1, "day": None}]
    with pytest.raises(CorruptTableError, match="'p2' in the log, but of 'day'"):
        read_file(store, by(add, partition_values={"day": "2024-02-29"}), columns)


def test_what_a_file_holds_of_a_partition_column_does_not_count():
    columns = plain_columns(pa.schema([("id", pa.int64()), ("p", pa.string())]), ("p",))
    store = MemoryStore()
    add = put(store, pa.table({"id": [1], "p": [7]}))
    add = msgspec.structs.replace(add, partition_values={"p": "a"})
    assert read_file(store, add, columns).to_pylist() == [{"id": 1, "p": "a"}]
