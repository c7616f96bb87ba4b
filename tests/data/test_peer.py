"""delta-rs reads files that were staged here, by their AddFiles alone."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, QueryBuilder

from data.staging import stager_of
from streamlake.protocol import Metadata, encode_actions, protocol_for, schema_to_json
from streamlake.storage.local import LocalStore

NOON = datetime(2024, 1, 1, 12, 0, 0, 123_456, tzinfo=UTC)
FIRST, LAST = datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999_999)  # noqa: DTZ001

EVERY_TYPE = pa.table(
    {
        "bool": pa.array([True, None, False]),
        "byte": pa.array([-128, None, 127], pa.int8()),
        "short": pa.array([-(2**15), None, 2**15 - 1], pa.int16()),
        "int": pa.array([-(2**31), None, 2**31 - 1], pa.int32()),
        "long": pa.array([-(2**63), None, 2**63 - 1], pa.int64()),
        "float": pa.array([-1.5, None, float("inf")], pa.float32()),
        "double": pa.array([float("-inf"), None, -0.0], pa.float64()),
        "string": pa.array(["", None, "z" * 100 + "😀"]),
        "binary": pa.array([b"", None, bytes(range(256))]),
        "date": pa.array([date(1, 1, 1), None, date(9999, 12, 31)]),
        "timestamp": pa.array([NOON, None, NOON], pa.timestamp("us", "UTC")),
        "local": pa.array([FIRST, None, LAST], pa.timestamp("us")),
        "small": pa.array([Decimal("-1.50"), None, Decimal("9.99")], pa.decimal128(5, 2)),
        "large": pa.array([Decimal("-1e27"), None, Decimal("1e27")], pa.decimal128(38, 10)),
        "list": pa.array([[], None, [1, None]], pa.list_(pa.int64())),
        "map": pa.array([[], None, [("k", None)]], pa.map_(pa.string(), pa.int64())),
        "struct": pa.array([{"a": {"b": 1}}, None, {"a": None}]),
    }
)


@pytest.fixture
def peer_of(tmp_path):
    """Stage rows as several files, commit them by hand, and open the table as delta-rs."""

    def open_peer(*tables, partition_columns=()):
        schema = tables[0].schema
        stager = stager_of(LocalStore(tmp_path), schema, partition_columns)
        adds = [add for table in tables for add in stager.stage(table)]
        metadata = Metadata(
            id="5fba94ed-9794-4965-ba6e-6ee3c0d22af9",
            schema_string=schema_to_json(schema),
            partition_columns=tuple(partition_columns),
            created_time=0,
        )
        log = tmp_path / "_delta_log"
        log.mkdir()
        actions = [protocol_for(schema, {}), metadata, *adds]
        (log / f"{0:020d}.json").write_bytes(encode_actions(actions))
        return DeltaTable(tmp_path)

    return open_peer


def test_every_type_is_read_as_it_was_written(peer_of):
    found = pa.table(peer_of(EVERY_TYPE).to_pyarrow_table())
    assert found.cast(EVERY_TYPE.schema).equals(EVERY_TYPE)


def test_partition_values_are_read_whatever_their_characters(peer_of):
    values = [chr(code) for code in range(0x20, 0x100)]
    values += ["😀", "a/b", "..", "a\\b", "%2F", "%25", "x=y", "2024-01-01 00:00:00", None]
    table = pa.table({"p": values, "id": range(len(values))})
    found = pa.table(peer_of(table, partition_columns=["p"]).to_pyarrow_table()).sort_by("id")
    assert found.column("p").to_pylist() == values
    assert found.column("id").to_pylist() == list(range(len(values)))


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.bool_(), [True, False, None]),
        (pa.int8(), [-128, 127, None]),
        (pa.int64(), [-(2**63), 2**63 - 1, None]),
        (pa.float64(), [0.1, -1e300, None]),
        (pa.decimal128(20, 3), [Decimal("12345678901234567.125"), None]),
        (pa.date32(), [date(1, 1, 1), date(9999, 12, 31), None]),
        (pa.timestamp("us", "UTC"), [NOON, NOON - timedelta(days=40_000), None]),
        (pa.timestamp("us"), [NOON.replace(tzinfo=None), None]),
    ],
    ids=str,
)
def test_partition_values_of_every_type_are_read_with_their_type(peer_of, kind, values):
    table = pa.table({"p": pa.array(values, kind), "id": range(len(values))})
    found = pa.table(peer_of(table, partition_columns=["p"]).to_pyarrow_table()).sort_by("id")
    assert found.column("p").cast(kind).to_pylist() == values


SKIPPED = [
    pa.array([NOON, NOON + timedelta(microseconds=877)], pa.timestamp("us", "UTC")),
    pa.array([NOON.replace(tzinfo=None), FIRST, LAST], pa.timestamp("us")),
    pa.array([datetime(1960, 1, 1, 0, 0, 0, 1, UTC)], pa.timestamp("us", "UTC")),
    pa.array(["a" * 40, "a" * 32, "b" * 31 + "é\x7fz"]),
    pa.array(["a" * 32 + "\U0010ffff" + "b", "a" * 32 + "\x7f"]),
    pa.array([0.0, -0.0]),
    pa.array([1.5, float("inf"), float("-inf")]),
    pa.array([1.5, float("nan")]),
    pa.array([0.1, 16777217.0], pa.float32()),
    pa.array([Decimal("-1234567890123456789012345678.0123456789")], pa.decimal128(38, 10)),
    pa.array([date(1, 1, 1), date(9999, 12, 31)]),
    pa.array([2**63 - 1, -(2**63)]),
]


@pytest.mark.parametrize("column", SKIPPED, ids=lambda column: f"{column.type} {len(column)}")
def test_no_row_is_lost_to_data_skipping(peer_of, column):
    table = pa.table({"c": column})
    dataset = peer_of(table, table.slice(0, 0), table.slice(len(column) - 1)).to_pyarrow_dataset()
    for value in column:
        found = dataset.to_table(filter=pc.field("c") == value)
        expected = int(pc.sum(pc.equal(table["c"], value)).as_py())
        expected += pc.sum(pc.equal(table["c"].slice(len(column) - 1), value)).as_py()
        assert found.num_rows == expected


def test_no_row_is_lost_to_data_skipping_in_a_query(peer_of):
    whens = pa.array([NOON, NOON + timedelta(microseconds=877)], pa.timestamp("us", "UTC"))
    texts = ["a" * 40, "b" * 50]
    query = QueryBuilder().register("t", peer_of(pa.table({"at": whens, "text": texts})))
    condition = f"at >= TIMESTAMP '2024-01-01T12:00:00.124333Z' AND text = '{texts[1]}'"
    found = pa.table(query.execute(f"SELECT text FROM t WHERE {condition}").read_all())
    assert found.num_rows == 1
