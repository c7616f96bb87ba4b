import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlake.cli.json_text import BinaryText, json_lines, slices
from streamlake.cli.printers import OutputFormat, printer
from streamlake.protocol.schema.variant import VariantType


def printed(data, binary=BinaryText.AUTO):
    text = b"".join(json_lines(data, binary=binary)).decode()
    return [json.loads(line) for line in text.split("\n")[:-1]]


def one(value, kind, binary=BinaryText.AUTO):
    return printed(pa.table({"v": pa.array([value], kind)}), binary)[0]["v"]


@given(st.lists(st.none() | st.text()), st.text(min_size=1))
def test_any_text_and_any_name_come_back(values, name):
    data = pa.table({name: pa.array(values, pa.string())})
    assert printed(data) == [{name: value} for value in values]


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)))
def test_every_integer_comes_back(values):
    assert printed(pa.table({"v": pa.array(values, pa.int64())})) == [{"v": v} for v in values]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_float_comes_back(value):
    assert one(value, pa.float64()) == value


@given(st.lists(st.none() | st.lists(st.none() | st.dictionaries(st.text(), st.text()))))
def test_nested_values_come_back(values):
    pairs = [v if v is None else [m if m is None else list(m.items()) for m in v] for v in values]
    kind = pa.list_(pa.map_(pa.string(), pa.string()))
    assert printed(pa.table({"v": pa.array(pairs, kind)})) == [{"v": v} for v in values]


def test_what_json_lacks_is_named():
    floats = pa.table({"v": [math.nan, math.inf, -math.inf, None, 1.5]})
    assert [row["v"] for row in printed(floats)] == ["NaN", "Infinity", "-Infinity", None, 1.5]


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (
            datetime(2026, 1, 2, 3, 4, 5, 6, UTC),
            pa.timestamp("us", "UTC"),
            "2026-01-02T03:04:05.000006Z",
        ),
        (
            datetime.fromisoformat("1969-01-02T03:04:05"),
            pa.timestamp("us"),
            "1969-01-02T03:04:05.000000",
        ),
        (date(2026, 1, 2), pa.date32(), "2026-01-02"),
        (Decimal("12.50"), pa.decimal128(10, 2), 12.5),
        (True, pa.bool_(), True),
        (
            {"a": 1, "b": None},
            pa.struct([("a", pa.int8()), ("b", pa.string())]),
            {"a": 1, "b": None},
        ),
        ([(1, 2)], pa.map_(pa.int32(), pa.int32()), {"1": 2}),
        (None, pa.null(), None),
        (None, VariantType(), None),
    ],
)
def test_each_type_is_printed_as_json_has_it(value, kind, expected):
    assert one(value, kind) == expected


def test_a_null_struct_hides_what_lies_below_it():
    child = pa.array(["below", "kept"])
    structs = pa.StructArray.from_arrays([child], names=["a"], mask=pa.array([True, False]))
    assert printed(pa.table({"v": structs})) == [{"v": None}, {"v": {"a": "kept"}}]


def test_bytes_are_text_or_marked_base64():
    data = pa.table({"v": [b"plain", b"\xff\x00", b"base64:plain", None]})
    told = [row["v"] for row in printed(data)]
    assert told == ["plain", "base64:/wA=", "base64:YmFzZTY0OnBsYWlu", None]


def test_bytes_are_all_base64_on_request():
    assert one(b"plain", pa.binary(), BinaryText.BASE64) == "cGxhaW4="


def test_a_slice_of_a_table_prints_its_own_rows():
    data = pa.table({"a": list(range(10)), "l": [[n] for n in range(10)]})
    assert printed(data.slice(3, 2)) == [{"a": 3, "l": [3]}, {"a": 4, "l": [4]}]


def test_large_tables_are_printed_in_pieces():
    wide = pa.table({"v": ["x" * (1 << 20)] * 100})
    assert max(piece.nbytes for piece in slices(wide)) <= 33 << 20
    assert sum(piece.num_rows for piece in slices(wide)) == 100


def test_rows_without_columns_are_still_rows():
    assert printed(pa.table({"a": [1, 2]}).select([])) == [{}, {}]


@pytest.mark.parametrize(
    ("form", "printed_as"),
    [
        (OutputFormat.JSONL, '{"v":{"metadata":"m","value":"base64:/w=="}}\n{"v":null}\n'),
        (OutputFormat.CSV, '"v"\n"{""metadata"":""m"",""value"":""base64:/w==""}"\n\n'),
    ],
)
def test_a_variant_is_printed_as_its_two_binaries(capfdbinary, form, printed_as):
    kind = VariantType()
    values = pa.array([{"metadata": b"m", "value": b"\xff"}, None], kind.storage_type)
    rows = pa.table({"v": pa.ExtensionArray.from_storage(kind, values)})
    printer(form, BinaryText.AUTO).print(rows)
    assert capfdbinary.readouterr().out.decode() == printed_as
