import json
import operator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.arrow_strategies import LEAVES, WITH_NAN, tables
from streamlake.data.statistics import collect_statistics, file_statistics, statistics_leaves

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def stats_of(values, kind):
    return json.loads(collect_statistics(pa.table({"c": pa.array(values, kind)})))


def bounds_of(values, kind):
    stats = stats_of(values, kind)
    return stats.get("minValues", {}).get("c"), stats.get("maxValues", {}).get("c")


def as_read(bound, kind):
    """A bound as a reader of the log takes it: in the form of the column's raw values."""
    if pa.types.is_date(kind):
        return date.fromisoformat(bound).toordinal() - date(1970, 1, 1).toordinal()
    if pa.types.is_timestamp(kind):
        assert bound.endswith("Z") == (kind.tz is not None)
        when = datetime.fromisoformat(bound.removesuffix("Z")).replace(tzinfo=UTC)
        return (when - EPOCH) // timedelta(microseconds=1)
    if pa.types.is_string(kind):
        return bound.encode()
    if pa.types.is_floating(kind):
        return pa.scalar(float(bound), kind).as_py()
    return bound


def raw_values(column):
    """The values that are not null, in a form that orders as the column does."""
    if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
        return column.drop_null().combine_chunks().cast(f"int{column.type.bit_width}").to_pylist()
    values = column.drop_null().to_pylist()
    return [value.encode() for value in values] if pa.types.is_string(column.type) else values


def assert_sound(table, text):
    stats = json.loads(text, parse_float=Decimal)
    assert stats["numRecords"] == table.num_rows
    for name in table.column_names:
        column = table.column(name)
        assert stats["nullCount"][name] == column.null_count
        for side, holds in (("minValues", operator.le), ("maxValues", operator.ge)):
            if name in stats.get(side, {}):
                bound = as_read(stats[side][name], column.type)
                assert all(holds(bound, value) for value in raw_values(column))


@given(tables(types=st.sampled_from(WITH_NAN)))
def test_no_bound_leaves_out_a_row(table):
    assert_sound(table, collect_statistics(table))


@given(tables(types=st.sampled_from(WITH_NAN)), st.data())
def test_statistics_of_parts_add_up_to_those_of_the_whole(table, data):
    cut = data.draw(st.integers(0, table.num_rows))
    kept = statistics_leaves(table.schema)
    parts = [file_statistics(part, kept) for part in (table.slice(0, cut), table.slice(cut))]
    assert_sound(table, parts[0].union(parts[1]).to_json())


@given(st.sampled_from(LEAVES))
def test_a_column_of_nulls_has_a_count_and_no_bounds(leaf):
    assert stats_of([None, None], leaf[0]) == {"numRecords": 2, "nullCount": {"c": 2}}


def test_a_file_without_rows_says_so():
    assert stats_of([], pa.int64()) == {"numRecords": 0, "nullCount": {"c": 0}}


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [
        (pa.int64(), -(2**63), 2**63 - 1),
        (pa.float64(), -1.5, 1e300),
        (pa.string(), "", "zürich"),
        (pa.int8(), -128, 127),
    ],
)
def test_values_that_json_has_are_bounds_as_they_are(kind, low, high):
    assert bounds_of([high, None, low], kind) == (low, high)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.bool_(), [True, False]),
        (pa.binary(), [b"a"]),
        (pa.list_(pa.int64()), [[1]]),
        (pa.map_(pa.string(), pa.int64()), [[("a", 1)]]),
    ],
)
def test_types_without_an_order_in_the_log_have_null_counts_only(kind, values):
    assert stats_of([*values, None], kind) == {
        "numRecords": len(values) + 1,
        "nullCount": {"c": 1},
    }


def test_decimals_keep_every_digit():
    digits = Decimal("-1234567890123456789012345678.0123456789")
    table = pa.table({"c": pa.array([digits, Decimal(0)], pa.decimal128(38, 10))})
    text = collect_statistics(table)
    assert '"minValues":{"c":-1234567890123456789012345678.0123456789}' in text
    assert '"maxValues":{"c":0.0000000000}' in text


def test_nan_leaves_out_both_bounds():
    assert bounds_of([1.0, float("nan")], pa.float64()) == (None, None)


def test_an_infinity_leaves_out_its_own_bound_only():
    assert bounds_of([1.0, float("inf")], pa.float64()) == (1.0, None)
    assert bounds_of([1.0, float("-inf")], pa.float32()) == (None, 1.0)


def test_infinities_of_both_signs_are_not_taken_for_nan_nor_for_numbers():
    assert bounds_of([float("-inf"), float("inf")], pa.float64()) == (None, None)


def test_a_sum_that_overflows_is_no_infinity():
    assert bounds_of([1.7e308, 1.7e308], pa.float64()) == (1.7e308, 1.7e308)


def test_zero_bounds_hold_for_readers_that_order_negative_zero_below_zero():
    table = pa.table({"c": [0.0, -0.0]})
    assert '"minValues":{"c":-0.0},"maxValues":{"c":0.0}' in collect_statistics(table)


def test_strings_are_cut_at_32_characters_and_the_upper_bound_is_raised():
    low, high = bounds_of(["a" * 40], pa.string())
    assert (low, high) == ("a" * 32, "a" * 32 + "\x7f")


def test_a_string_of_32_characters_is_kept_whole():
    assert bounds_of(["é" * 32], pa.string()) == ("é" * 32, "é" * 32)


@pytest.mark.parametrize("following", ["\x7f", "é", "\uffff", "😀"])
def test_an_upper_bound_is_raised_above_characters_beyond_ascii(following):
    _, high = bounds_of(["a" * 32 + following + "b"], pa.string())
    assert high == "a" * 32 + "\U0010ffff"


def test_an_upper_bound_goes_past_characters_that_nothing_is_above_of():
    _, high = bounds_of(["a" * 32 + "\U0010ffff" * 2 + "bc"], pa.string())
    assert high == "a" * 32 + "\U0010ffff" * 2 + "\x7f"


def test_an_upper_bound_that_would_be_endless_is_left_out():
    assert bounds_of(["\U0010ffff" * 100], pa.string()) == ("\U0010ffff" * 32, None)


def test_strings_that_are_no_utf_8_have_no_bounds():
    broken = pa.array([b"\xff\xfe"]).view(pa.string())
    assert "minValues" not in collect_statistics(pa.table({"c": broken}))


def test_timestamps_are_cut_to_milliseconds_downwards_and_upwards():
    zoned = bounds_of([1_123_456, 2_000_001], pa.timestamp("us", "UTC"))
    assert zoned == ("1970-01-01T00:00:01.123Z", "1970-01-01T00:00:02.001Z")
    assert bounds_of([1_000], pa.timestamp("us")) == ("1970-01-01T00:00:00.001",) * 2


def test_timestamps_before_the_epoch_are_cut_in_the_same_directions():
    low, high = bounds_of([-1], pa.timestamp("us", "UTC"))
    assert (low, high) == ("1969-12-31T23:59:59.999Z", "1970-01-01T00:00:00.000Z")


def test_the_first_and_the_last_year_are_written_with_four_digits():
    days = [date(1, 1, 1), date(9999, 12, 31)]
    assert bounds_of(days, pa.date32()) == ("0001-01-01", "9999-12-31")
    first, _ = bounds_of([datetime(1, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    assert first == "0001-01-01T00:00:00.000Z"


def test_years_that_the_format_does_not_know_are_left_out():
    last_microsecond = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    low, high = bounds_of([last_microsecond], pa.timestamp("us", "UTC"))
    assert (low, high) == ("9999-12-31T23:59:59.999Z", None)
    assert bounds_of([-(2**31), 2**31 - 1], pa.date32()) == (None, None)
    assert bounds_of([-(2**63), 2**63 - 1], pa.timestamp("us")) == (None, None)


def test_fields_of_structs_are_nested_and_count_the_nulls_above_them():
    kind = pa.struct([("a", pa.struct([("b", pa.int64())])), ("s", pa.string())])
    stats = stats_of([{"a": {"b": 1}, "s": "x"}, {"a": None, "s": "y"}, None], kind)
    assert stats["minValues"] == {"c": {"a": {"b": 1}, "s": "x"}}
    assert stats["nullCount"] == {"c": {"a": {"b": 2}, "s": 1}}


def test_only_the_first_leaves_are_indexed():
    table = pa.table({"s": [{"a": 1, "b": 2}], "c": [3], "d": [4]})
    stats = json.loads(collect_statistics(table, num_indexed=3))
    assert stats["nullCount"] == {"s": {"a": 0, "b": 0}, "c": 0}


def test_no_leaf_indexed_still_counts_the_records():
    table = pa.table({"c": [3]})
    assert json.loads(collect_statistics(table, num_indexed=0)) == {"numRecords": 1}


def test_all_leaves_are_indexed_on_demand():
    table = pa.table({f"c{i}": [i] for i in range(40)})
    assert len(json.loads(collect_statistics(table))["nullCount"]) == 32
    assert len(json.loads(collect_statistics(table, num_indexed=-1))["nullCount"]) == 40


def test_named_columns_take_the_place_of_the_first_ones():
    table = pa.table({"s": [{"a": 1, "b": 2}], "c": [3], "d.e": [4]})
    columns = (("s", "b"), ("d.e",))
    stats = json.loads(collect_statistics(table, num_indexed=1, columns=columns))
    assert stats["minValues"] == {"s": {"b": 2}, "d.e": 4}
    whole = json.loads(collect_statistics(table, columns=(("s",),)))
    assert whole["minValues"] == {"s": {"a": 1, "b": 2}}


def test_values_in_several_chunks_are_one_column():
    column = pa.chunked_array([[5, None], [], [1, 9]], pa.int64())
    stats = json.loads(collect_statistics(pa.table({"c": column})))
    assert (stats["minValues"]["c"], stats["maxValues"]["c"], stats["nullCount"]["c"]) == (1, 9, 1)
