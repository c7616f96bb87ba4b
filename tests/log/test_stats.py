"""Statistics between JSON and typed columns: nothing changes on the way, and nothing is made up."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlake.log.checkpoint.stats import parsed_stats, stats_json

INSIDE = pa.struct([('x"y', pa.int64())])
BOUNDS = pa.struct(
    [
        ("i", pa.int32()),
        ("b", pa.int8()),
        ("f", pa.float32()),
        ("d", pa.decimal128(10, 2)),
        ("s", pa.string()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("in.side", INSIDE),
    ]
)
KIND = pa.struct(
    [
        ("numRecords", pa.int64()),
        ("tightBounds", pa.bool_()),
        ("minValues", BOUNDS),
        ("maxValues", BOUNDS),
        ("nullCount", pa.struct([("i", pa.int64()), ("in.side", INSIDE)])),
    ]
)
STATS = {
    "numRecords": 3,
    "tightBounds": False,
    "minValues": {
        "i": -(2**31),
        "f": 0.1,
        "d": 1.50,
        "s": 'a"\\\n\u0001ä',
        "day": "0001-01-01",
        "at": "2020-01-01T00:00:00.123Z",
        "local": "2020-01-01T00:00:00.123",
        "in.side": {'x"y': 9007199254740993},
    },
    "nullCount": {"i": 0, "in.side": {'x"y': 2}},
}


def parse(*texts: str | None) -> Any:
    return values(parsed_stats(pa.array(texts, pa.string()), KIND))


def values(array: Any) -> Any:
    return array.to_pylist()


def test_each_type_of_the_log_gets_its_value():
    (row,) = parse(json.dumps(STATS))
    assert row["numRecords"] == 3
    assert row["tightBounds"] is False
    assert row["maxValues"] is None
    assert row["nullCount"] == {"i": 0, "in.side": {'x"y': 2}}
    found = row["minValues"]
    assert found.pop("f") == pytest.approx(0.1)
    assert found == {
        "i": -(2**31),
        "b": None,
        "d": Decimal("1.50"),
        "s": 'a"\\\n\u0001ä',
        "day": date(1, 1, 1),
        "at": datetime(2020, 1, 1, 0, 0, 0, 123000, UTC),
        "local": datetime(2020, 1, 1, 0, 0, 0, 123000),  # noqa: DTZ001
        "in.side": {'x"y': 9007199254740993},
    }


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("i", "1", None), ("i", 1.0, None), ("i", 2**31, None), ("i", True, None), ("i", {}, None),
        ("b", 128, None), ("b", -128, -128), ("f", "NaN", None), ("f", 3, 3.0),
        ("d", 1.505, None), ("d", 123456789.5, None), ("d", 7, Decimal("7.00")),
        ("s", 1, None), ("day", "2020-13-01", None), ("day", 18000, None), ("at", "soon", None),
        ("at", "2020-01-01T01:00:00+01:00", datetime(2020, 1, 1, tzinfo=UTC)),
        ("at", "2020-01-01T00:00:00", datetime(2020, 1, 1, tzinfo=UTC)),
        ("at", "2020-01-01", datetime(2020, 1, 1, tzinfo=UTC)),
        ("local", "2020-01-01T00:00:00Z", datetime(2020, 1, 1)),  # noqa: DTZ001
        ("local", "2020-01-01T00:00:00+01:00", None), ("in.side", 1, None),
    ],
)  # fmt: skip
def test_a_bound_that_is_none_of_its_type_is_not_known_and_its_neighbours_are(name, value, found):
    odd = json.dumps({"numRecords": 1, "minValues": {name: value}})
    rows = parse(json.dumps(STATS), odd, None)
    assert rows[0] == parse(json.dumps(STATS))[0]
    assert rows[1]["numRecords"] == 1
    assert (rows[1]["minValues"] or {}).get(name) == found
    assert rows[2] is None


@pytest.mark.parametrize(
    "text",
    ["", " ", "{}", "[]", "7", "null", "{", '{"minValues":3}', "\n", '{"x":[{}]}', "[" * 9999],
)
def test_what_are_no_statistics_tell_nothing_and_move_no_other(text):
    rows = parse('{"numRecords":1}', text, '{\n"numRecords":\r\n2}', None)
    assert [row and row["numRecords"] for row in rows] == [1, None, 2, None]


def test_no_statistics_at_all_are_null():
    assert parse(None, None) == [None, None]
    assert parse() == []


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
ROWS = st.lists(
    st.none()
    | st.fixed_dictionaries(
        {"numRecords": st.integers(0, 2**63 - 1)},
        optional={
            "minValues": st.fixed_dictionaries(
                {},
                optional={
                    "i": st.integers(-(2**31), 2**31 - 1),
                    "f": st.floats(width=32, allow_nan=False, allow_infinity=False),
                    "d": st.decimals(-(10**7), 10**7, places=2),
                    "s": TEXT,
                    "day": st.dates(),
                    "at": st.datetimes(timezones=st.just(UTC)),
                    "local": st.datetimes(),
                    "in.side": st.fixed_dictionaries({'x"y': st.integers(-(2**63), 2**63 - 1)}),
                },
            )
        },
    ),
    max_size=5,
)


@given(ROWS)
def test_typed_statistics_come_back_from_json_as_they_were(rows):
    typed = pa.array(rows, KIND)
    texts = stats_json(typed)
    for text in texts.to_pylist():
        assert text is None or json.loads(text)
    again = values(parsed_stats(texts, KIND))
    plain = [without_nulls(row) for row in values(typed)]
    assert [without_nulls(row) for row in again] == plain


def without_nulls(value):
    """The members that say something; None where none does."""
    if not isinstance(value, dict):
        return value
    members = {name: without_nulls(member) for name, member in value.items()}
    return {name: member for name, member in members.items() if member is not None} or None


def test_bounds_that_are_not_finite_are_left_out():
    kind = pa.struct([("maxValues", pa.struct([("f", pa.float64()), ("g", pa.float64())]))])
    rows = [{"maxValues": {"f": float(f), "g": 1}} for f in ("nan", "inf", "-inf")]
    assert set(stats_json(pa.array(rows, kind)).to_pylist()) == {'{"maxValues":{"g":1}}'}


def test_instants_that_parquet_keeps_as_int96_say_so():
    kind = pa.struct([("maxValues", pa.struct([("t", pa.timestamp("ns"))]))])
    rows = pa.array([{"maxValues": {"t": datetime(2020, 1, 1, 12)}}], kind)  # noqa: DTZ001
    assert stats_json(rows).to_pylist() == ['{"maxValues":{"t":"2020-01-01T12:00:00.000000Z"}}']
