"""No file is left out that holds a row which satisfies the condition; most others are."""

import datetime as dt
import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.predicates.conditions import SCHEMA, conditions, rows
from streamlake.data import collect_statistics, plain_columns
from streamlake.data.predicates import condition, matching_files, matching_rows
from streamlake.errors import InvalidInputError
from streamlake.log import FileList
from streamlake.protocol import AddFile

STORED = [field.name for field in SCHEMA if field.name != "p"]


def add(stats: str | None = None, name: str = "f", **partition: str | None) -> AddFile:
    return AddFile(name, dict(partition), 1, 0, data_change=True, stats=stats)


def kept(
    stats: list[str | None] | str | None, where: str, kind: pa.DataType, *, metadata=None
) -> list[bool]:
    """Which of some files are kept, each of the column ``c`` and with the statistics given."""
    given_stats = stats if isinstance(stats, list) else [stats]
    table = plain_columns(pa.schema([pa.field("c", kind, metadata=metadata)]))
    files = FileList.from_actions([add(one, name=f"f{i}") for i, one in enumerate(given_stats)])
    found = {file.path for file in matching_files(files, where, table)}
    return [f"f{i}" in found for i in range(len(given_stats))]


def bounds(low: object, high: object, nulls: int | None = 0, rows: int = 10, **more: object) -> str:
    stats = {"numRecords": rows, "minValues": {"c": low}, "maxValues": {"c": high}, **more}
    return json.dumps(stats if nulls is None else {**stats, "nullCount": {"c": nulls}})


def spoilt(stats: str, way: str) -> str | None:
    """Statistics as less careful writers leave them; true nevertheless."""
    found = json.loads(stats)
    if way == "none":
        return None
    if way == "wide":
        found["tightBounds"] = False
        found["nullCount"] = {
            name: count if count in (0, found["numRecords"]) or isinstance(count, dict) else 1
            for name, count in found.get("nullCount", {}).items()
        }
    elif way == "cut":
        for name in ("n", "t"):
            if name in found.get("maxValues", {}):
                found["maxValues"][name] = cut_to_milliseconds(found["maxValues"][name])
        if len(found.get("maxValues", {}).get("s", "")) > 32:
            found["maxValues"]["s"] = found["maxValues"]["s"][:32]
    elif way == "spread":
        return json.dumps(found, indent=1)
    return json.dumps(found)


def cut_to_milliseconds(text: str) -> str:
    """Our upper bounds are rounded up; one less is what cutting gives at worst."""
    zone = "Z" if text.endswith("Z") else ""
    moment = dt.datetime.fromisoformat(text.removesuffix("Z")) - dt.timedelta(milliseconds=1)
    return moment.isoformat(timespec="milliseconds") + zone


@given(
    parts=st.lists(rows(), min_size=1, max_size=4),
    ways=st.lists(
        st.sampled_from(["as is", "wide", "cut", "none", "spread"]), min_size=4, max_size=4
    ),
    where=conditions(),
)
def test_skipping_never_loses_a_row_that_the_row_filter_keeps(parts, ways, where):
    table = plain_columns(SCHEMA, ["p"])
    wanted = condition(where, SCHEMA)
    files, matches = [], []
    for i, (part, way) in enumerate(zip(parts, ways, strict=False)):
        held = [{**row, "p": part[0]["p"]} for row in part]
        data = pa.Table.from_pylist(held, schema=SCHEMA)
        stats = spoilt(collect_statistics(data.select(STORED)), way)
        value = part[0]["p"]
        files.append(add(stats, name=f"f{i}", p=None if value is None else str(value)))
        try:
            matches.append(matching_rows(data, wanted).num_rows > 0)
        except InvalidInputError:
            matches.append(False)  # an overflow: no answer there could be lost
    found = {file.path for file in matching_files(FileList.from_actions(files), where, table)}
    assert {f"f{i}" for i, match in enumerate(matches) if match} <= found


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("c = 5", [False, True, False]),
        ("c > 20", [False, False, True]),
        ("c >= 20", [False, True, True]),
        ("NOT (c < 20)", [False, True, True]),
        ("c < 6 AND c > 4", [False, True, False]),
        ("c < 0 OR c > 29", [False, False, True]),
        ("c IN (0, 25)", [False, False, True]),
        ("c BETWEEN 3 AND 4", [True, False, False]),
        ("c IS NULL", [False, True, False]),
        ("c <=> NULL", [False, True, False]),
        ("c IS NOT NULL", [True, True, True]),
        ("c <> 3", [True, True, True]),
        ("5 = c", [False, True, False]),
        ("c + 1 > 30", [False, False, True]),
        ("cast(c as double) > 29.5", [False, False, True]),
        ("c > '25'", [False, False, True]),
        (f"c IN ({', '.join(str(n) for n in range(100, 200))})", [False, False, False]),
        ("TRUE", [True, True, True]),
        ("FALSE", [False, False, False]),
        ("NULL", [False, False, False]),
        ("c = NULL", [False, False, False]),
    ],
)
def test_files_are_skipped_by_the_bounds_of_numbers(where, expected):
    stats = [bounds(1, 4), bounds(5, 20, nulls=2), bounds(21, 30)]
    assert kept(stats, where, pa.int64()) == expected


@pytest.mark.parametrize(
    "stats",
    [
        None,
        "",
        "  ",
        "{}",
        "not json",
        '{"numRecords": 1}',
        "[1]",
        '{"minValues": {"c": "1"}, "maxValues": {"c": "2"}}',
        '{"minValues": {"c": {"x": 1}}, "maxValues": 7}',
        '{"minValues": {"c": 1e300}, "maxValues": {"c": 1.5}}',
        '{"minValues": {"c": 99999999999999999999}, "maxValues": {"c": true}}',
        '{"numRecords": 3}{"numRecords": 4}',
        "{}}{",
    ],
)
def test_a_file_whose_statistics_tell_nothing_is_kept_and_the_others_are_skipped(stats):
    found = kept([bounds(1, 2), stats, bounds(100, 101)], "c = 100", pa.int64())
    assert found == [False, True, True]


def test_a_wide_null_count_counts_only_where_it_is_none_or_all():
    wide = [bounds(1, 5, nulls=count, rows=10, tightBounds=False) for count in (0, 3, 10, None)]
    assert kept(wide, "c IS NULL", pa.int64()) == [False, True, True, True]
    assert kept(wide, "c IS NOT NULL", pa.int64()) == [True, True, False, True]
    assert kept(wide, "c = 3", pa.int64()) == [True, True, False, True]


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("a" * 40, True),
        ("a" * 32 + "\U0001f600", True),
        ("a" * 31 + "b", False),
        ("b", False),
        ("a", False),
    ],
)
@pytest.mark.parametrize("mark", ["", "\x7f", "\ufffd", "\U0010ffff"])
def test_strings_beyond_an_upper_bound_that_was_cut_are_found(value, wanted, mark):
    stats = bounds("a" * 32, "a" * 32 + mark)
    assert kept(stats, f"c = '{value}'", pa.string()) == [wanted]


def test_an_upper_bound_cut_within_a_surrogate_pair_is_no_bound_of_what_followed():
    stats = bounds("a", "a" * 31 + "?\ufffd")
    assert kept(stats, "c = '" + "a" * 31 + "\U0001f600'", pa.string()) == [True]


@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.timestamp("us", "UTC")])
def test_a_timestamp_below_the_millisecond_of_its_bound_is_found(kind):
    zone = "" if kind.tz is None else "Z"
    stats = bounds(f"2024-01-01T00:00:00.000{zone}", f"2024-01-01T10:00:00.123{zone}")
    assert kept(stats, "c >= '2024-01-01 10:00:00.123999'", kind) == [True]
    assert kept(stats, "c >= '2024-01-01 10:00:00.125'", kind) == [False]
    assert kept(stats, "c < '2024-01-01'", kind) == [False]


def test_a_timestamp_before_the_epoch_may_be_below_a_lower_bound_that_was_cut_towards_zero():
    stats = bounds("1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999Z")
    where = "c = '1969-12-31 23:59:59.998100'"
    assert kept(stats, where, pa.timestamp("us", "UTC")) == [True]


def test_bounds_of_timestamps_are_read_with_any_offset():
    stats = [
        bounds("2024-01-01T00:00:00.000-08:00", "2024-01-01T01:00:00.000-08:00"),
        bounds("2024-01-01T00:00:00.000", "2024-01-01T01:00:00.000"),
        bounds("0000-00-00T00:00:00.000Z", "2024-02-30T00:00:00.000Z"),
    ]
    kind = pa.timestamp("us", "UTC")
    assert kept(stats[:2], "c = '2024-01-01 08:30:00'", kind) == [True, True]
    assert kept(stats[:2], "c = '2024-01-01 12:00:00'", kind) == [False, True]
    assert kept(stats[2], "c = '2025-01-01'", kind) == [True]


def test_a_file_may_hold_nan_whatever_the_upper_bound_says():
    assert kept(bounds(1.0, 2.0), "c > 5", pa.float64()) == [True]
    assert kept(bounds(1.0, 2.0), "c = double('NaN')", pa.float64()) == [True]
    assert kept(bounds(1.0, 2.0), "NOT (c <= 5)", pa.float64()) == [True]
    assert kept(bounds(1.0, 2.0), "c > 5 AND c < 7", pa.float64()) == [False]
    assert kept(bounds(1.0, 2.0), "c = 5", pa.float64()) == [False]
    assert kept(bounds(1.0, 2.0), "c < 1", pa.float64()) == [False]


@pytest.mark.parametrize("named", ["NaN", "Infinity", "-Infinity"])
def test_bounds_that_are_named_numbers_are_no_bounds_or_their_value(named):
    assert kept(bounds(1.0, named), "c = 1e300", pa.float64()) == [named != "-Infinity"]
    assert kept(bounds(named, 1.0), "c = -1e300", pa.float64()) == [named != "Infinity"]


def test_a_float_that_became_a_double_is_found_by_its_digits_as_a_double():
    widened = {b"delta.delta.typeChanges": b'[{"fromType": "float", "toType": "double"}]'}
    stats = bounds(0.1, 0.1)
    where = "c = cast(cast(0.1 as float) as double)"
    assert kept(stats, where, pa.float64(), metadata=widened) == [True]
    assert kept(stats, where, pa.float64()) == [False]
    assert kept(stats, "c = 0.1F", pa.float32()) == [True]
    assert kept(stats, "c = 0.2F", pa.float32()) == [False]


def test_a_decimal_is_found_where_its_bound_went_through_a_double():
    kind = pa.decimal128(38, 18)
    exact = "12345678901234567890.123456789012345678"
    stats = bounds(float(exact), float(exact))
    assert kept(stats, f"c = {exact}", kind) == [True]
    assert kept(stats, "c = 12345678901234000000", kind) == [False]


def test_a_date_that_became_a_timestamp_is_found_by_bounds_that_are_still_dates():
    stats = bounds("2024-01-05", "2024-01-05")
    assert kept(stats, "c = '2024-01-05'", pa.timestamp("us")) == [True]
    assert kept(stats, "c = '2024-01-06'", pa.timestamp("us")) == [False]


def test_nested_fields_are_looked_up_below_their_structs():
    kind = pa.struct([pa.field("x", pa.int64())])
    stats = json.dumps(
        {
            "numRecords": 2,
            "minValues": {"c": {"x": 1}},
            "maxValues": {"c": {"x": 5}},
            "nullCount": {"c": {"x": 0}},
        }
    )
    assert kept(stats, "c.x > 5", kind) == [False]
    assert kept(stats, "C.X = 5", kind) == [True]
    assert kept(stats, "c.x IS NULL", kind) == [False]
    assert kept(stats, "c IS NULL", kind) == [True]


def test_a_partition_is_pruned_by_any_expression_over_its_values():
    schema = pa.schema([pa.field("day", pa.date32()), pa.field("c", pa.string())])
    table = plain_columns(schema, ["day"])
    days = ["2024-01-31", "2024-02-29", None, "", "no date"]
    listed = [add(name=f"f{i}", day=day) for i, day in enumerate(days)]
    files = FileList.from_actions([*listed, add(name="f5")])

    def found(where: str) -> list[str]:
        return [file.path for file in matching_files(files, where, table)]

    doubtful = ["f4", "f5"]
    assert found("month(day) % 2 = 0") == ["f1", *doubtful]
    assert found("date_format(day, 'yyyy-MM') = '2024-01'") == ["f0", *doubtful]
    assert found("day IS NULL") == ["f2", "f3", *doubtful]
    assert found("NOT (day > '2024-02-01')") == ["f0", *doubtful]
    assert found("day > '2024-02-01' OR c = 'x'") == [f"f{i}" for i in range(6)]


def test_statistics_are_parsed_in_blocks_for_many_files():
    stats = [bounds(i, i + 1) for i in range(70_000)]
    files = FileList.from_actions([add(one, name=str(i)) for i, one in enumerate(stats)])
    table = plain_columns(pa.schema([pa.field("c", pa.int64())]))
    found = matching_files(files, "c = 40000", table)
    assert found.column("path").to_pylist() == ["39999", "40000"]
