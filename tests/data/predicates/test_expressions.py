"""Expressions mean what they mean in Spark in ANSI mode."""

import datetime as dt
from decimal import Decimal
from math import nan

import pyarrow as pa
import pytest

from streamlake.data.predicates import evaluate, expression
from streamlake.errors import InvalidInputError

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("i", pa.int32()),
        pa.field("tiny", pa.int8()),
        pa.field("s", pa.string()),
        pa.field("f", pa.float64()),
        pa.field("g", pa.float32()),
        pa.field("b", pa.bool_()),
        pa.field("d", pa.date32()),
        pa.field("t", pa.timestamp("us", "UTC")),
        pa.field("n", pa.timestamp("us")),
        pa.field("m", pa.decimal128(10, 2)),
        pa.field("bytes", pa.binary()),
        pa.field("odd name", pa.int32()),
        pa.field(
            "st",
            pa.struct([pa.field("In", pa.struct([pa.field("a.b", pa.string())]))]),
        ),
    ]
)
ROWS = pa.Table.from_pylist(
    [
        {
            "id": 1,
            "i": 0,
            "tiny": 100,
            "s": "abc",
            "f": 1.5,
            "g": 0.1,
            "b": True,
            "d": dt.date(2024, 1, 31),
            "t": dt.datetime(2024, 1, 1, 10, 11, 12, 130000, tzinfo=dt.UTC),
            "n": dt.datetime.fromisoformat("2024-01-01"),
            "m": Decimal("1.50"),
            "bytes": b"a",
            "odd name": 7,
            "st": {"In": {"a.b": "q"}},
        },
        {
            "id": 2,
            "i": 5,
            "tiny": -7,
            "s": "",
            "f": nan,
            "g": 2.0,
            "b": False,
            "d": dt.date(1969, 12, 31),
            "t": dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC),
            "n": dt.datetime.fromisoformat("1969-12-31T00:00:00.000001"),
            "m": Decimal("-2.25"),
            "bytes": b"",
            "odd name": 8,
            "st": {"In": None},
        },
        {},
    ],
    schema=SCHEMA,
)


def answers(sql: str) -> list[object]:
    """The value for each of the three rows; the last has nothing but nulls."""
    return evaluate(expression(sql, SCHEMA), ROWS).to_pylist()


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("ID = 1", [True, False, None]),
        ("`odd name` = 7", [True, False, None]),
        ("st.in.`a.b` = 'q'", [True, None, None]),
        ("st.In.`a.b` IS NULL", [False, True, True]),
        ("st IS NULL", [False, False, True]),
        ("id <=> NULL", [False, False, True]),
        ("id IS DISTINCT FROM 1", [False, True, True]),
        ("id = NULL", [None, None, None]),
        ("NULL AND b", [None, False, None]),
        ("NULL OR b", [True, None, None]),
        ("NOT b", [False, True, None]),
        ("!b", [False, True, None]),
        ("b = true", [True, False, None]),
        ("b > false", [True, False, None]),
        ("b IS NOT TRUE", [False, True, True]),
        ("id IN (1, NULL)", [True, None, None]),
        ("id NOT IN (1, NULL)", [False, None, None]),
        ("id IN (i, 1)", [True, False, None]),
        ("f IN (1.5, double('NaN'))", [True, True, None]),
        ("id BETWEEN 2 AND i", [False, True, None]),
        ("id = 1 -- the first", [True, False, None]),
    ],
)
def test_logic_has_three_values(sql, expected):
    assert answers(sql) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("f > 100", [False, True, None]),
        ("f = 'NaN'", [False, True, None]),
        ("f <> 1.5", [False, True, None]),
        ("g = 0.1", [False, False, None]),
        ("g = 0.1F", [True, False, None]),
        ("tiny < 1000", [True, True, None]),
        ("m = 1.5", [True, False, None]),
        ("m = '1.500'", [True, False, None]),
        ("m > f", [False, False, None]),
        ("m < id", [False, True, None]),
        ("id = '1'", [True, False, None]),
        ("d = '2024-01-31'", [True, False, None]),
        ("d = '2024-1-31'", [True, False, None]),
        ("d >= '2024'", [True, False, None]),
        ("d = '2024-01-31 23:59:59'", [True, False, None]),
        ("n = '2024-01'", [True, False, None]),
        ("t > '2024-01-01 10:11'", [True, False, None]),
        ("t > '2024-01-01 10:12'", [False, False, None]),
        ("t > '2024-01-01 11:11+01:00'", [True, False, None]),
        ("d < t", [False, True, None]),
        ("n = t", [False, False, None]),
        ("t >= '2024-01-01 10:11:12.13'", [True, False, None]),
        ("t >= '2024-01-01T11:11:12.130+01:00'", [True, False, None]),
        ("t > TIMESTAMP '2024-01-01'", [True, False, None]),
        ("n = TIMESTAMP_NTZ '2024-01-01 00:00:00'", [True, False, None]),
        ("d = DATE '2024-01-31'", [True, False, None]),
        ("bytes = X'61'", [True, False, None]),
        ("bytes = 'a'", [True, False, None]),
        ("id = 9223372036854775807L", [False, False, None]),
        ("id < 99999999999999999999", [True, True, None]),
    ],
)
def test_values_of_different_types_are_compared_as_spark_compares_them(sql, expected):
    assert answers(sql) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("i + 1", [1, 6, None]),
        ("id - tiny * 2", [-199, 16, None]),
        ("-i", [0, -5, None]),
        ("i / 2", [0.0, 2.5, None]),
        ("tiny % 8", [4, -7, None]),
        ("tiny DIV 8", [12, 0, None]),
        ("m * 2", [Decimal("3.00"), Decimal("-4.50"), None]),
        ("m + 0.001", [Decimal("1.501"), Decimal("-2.249"), None]),
        ("abs(tiny)", [100, 7, None]),
        ("floor(g)", [0, 2, None]),
        ("ceil(m)", [Decimal(2), Decimal(-2), None]),
        ("greatest(id, i, NULL)", [1, 5, None]),
        ("d + 1", [dt.date(2024, 2, 1), dt.date(1970, 1, 1), None]),
        ("date_sub(d, 31)", [dt.date(2023, 12, 31), dt.date(1969, 11, 30), None]),
        ("datediff(d, '2024-01-01')", [30, -19724, None]),
        ("year(d)", [2024, 1969, None]),
        ("quarter(t)", [1, 4, None]),
        ("dayofweek(d)", [4, 4, None]),
        ("weekofyear(d)", [5, 1, None]),
        ("hour(t)", [10, 23, None]),
        ("trunc(d, 'MM')", [dt.date(2024, 1, 1), dt.date(1969, 12, 1), None]),
    ],
)
def test_numbers_and_dates_are_calculated_with(sql, expected):
    assert answers(sql) == expected


def test_arrays_and_maps_have_a_size():
    kinds = {"l": pa.list_(pa.int64()), "m": pa.map_(pa.string(), pa.int64())}
    rows = [{"l": [1, 2], "m": [("a", 1)]}, {"l": [], "m": []}, {"l": None, "m": None}]
    table = pa.Table.from_pylist(rows, schema=pa.schema(list(kinds.items())))
    assert evaluate(expression("size(l)", table.schema), table).to_pylist() == [2, 0, None]
    assert evaluate(expression("size(m) = 1", table.schema), table).to_pylist() == [
        True,
        False,
        None,
    ]


def test_timestamps_are_cut_and_written():
    midnight = dt.datetime.fromisoformat("1969-12-31")
    assert answers("date_trunc('hour', n)") == [ROWS["n"][0].as_py(), midnight, None]
    text = ["2024/01/01 10:11:12", "1969/12/31 23:59:59", None]
    assert answers("date_format(t, 'yyyy/MM/dd HH:mm:ss')") == text


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("length(s)", [3, 0, None]),
        ("upper(s)", ["ABC", "", None]),
        ("upper('ß' || s)", ["SSABC", "SS", None]),
        ("lower('ΑΣ')", ["ας"] * 3),
        ("s || '-' || i", ["abc-0", "-5", None]),
        ("concat_ws('-', s, 'x')", ["abc-x", "-x", "x"]),
        ("concat_ws('-', s, i, s)", ["abc-0-abc", "-5-", ""]),
        ("concat_ws('-', s, NULL)", ["abc", "", ""]),
        ("substring(s, 2)", ["bc", "", None]),
        ("substring(s, 0, 2)", ["ab", "", None]),
        ("substring(s, -2, 1)", ["b", "", None]),
        ("substring('abc', -5, 3)", ["a", "a", "a"]),
        ("left(s, 2)", ["ab", "", None]),
        ("right(s, 2)", ["bc", "", None]),
        ("trim('  a ')", ["a", "a", "a"]),
        ("replace(s, 'b', '')", ["ac", "", None]),
        ("replace(s, '', 'x')", ["abc", "", None]),
        ("s RLIKE ''", [True, True, None]),
        ("'abc\n' RLIKE 'c$'", [True] * 3),
        ("'abc\nd' RLIKE 'c$'", [False] * 3),
        ("'a\u2028b' RLIKE 'a.b'", [False] * 3),
        (r"'ab-12 c' RLIKE '^[a-c]+-\\d{2,}\\s(c|d)$'", [True] * 3),
        (r"'a.c' RLIKE '^a\\.[^\\d\\s]$'", [True] * 3),
        ("'aé' RLIKE 'é|x'", [True] * 3),
        ("'it''s'", ["it's"] * 3),
        ("'it' 's'", ["its"] * 3),
        ("s LIKE ''", [False, True, None]),
        ("left(s, -1)", ["", "", None]),
        ("right(s, 0)", ["", "", None]),
        ("right(s, 9)", ["abc", "", None]),
        ("substring(s, 9, 1)", ["", "", None]),
        ("substring(s, 2, -1)", ["", "", None]),
        ("s LIKE 'a%'", [True, False, None]),
        ("s LIKE 'A%'", [False, False, None]),
        ("s ILIKE 'A_C'", [True, False, None]),
        ("s NOT LIKE '%b%'", [False, True, None]),
        ("'a\nb' LIKE 'a_b'", [True, True, True]),
        ("'50%' LIKE '50\\\\%'", [True, True, True]),
        ("'50x' LIKE '50\\\\%'", [False, False, False]),
        ("'50%' LIKE '50/%' ESCAPE '/'", [True, True, True]),
        ("'a.c' LIKE 'a.c'", [True, True, True]),
        ("'abc' LIKE 'a.c'", [False, False, False]),
        ("s RLIKE '^a.c$'", [True, False, None]),
        ("startswith(s, 'ab')", [True, False, None]),
        ("contains(s, '')", [True, True, None]),
        ("'it\\'s'", ["it's"] * 3),
        ("CAST(t AS STRING)", ["2024-01-01 10:11:12.13", "1969-12-31 23:59:59.999999", None]),
        ("CAST(m AS STRING)", ["1.50", "-2.25", None]),
    ],
)
def test_strings_are_cut_joined_and_matched(sql, expected):
    assert answers(sql) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("CAST('12' AS INT)", [12] * 3),
        ("CAST(' +7 ' AS BIGINT)", [7] * 3),
        ("CAST(m AS INT)", [1, -2, None]),
        ("CAST(b AS INT)", [1, 0, None]),
        ("CAST(m AS DECIMAL(10,1))", [Decimal("1.5"), Decimal("-2.3"), None]),
        ("CAST(id AS DECIMAL(5,2))", [Decimal("1.00"), Decimal("2.00"), None]),
        ("CAST(t AS DATE)", [dt.date(2024, 1, 1), dt.date(1969, 12, 31), None]),
        ("d::string", ["2024-01-31", "1969-12-31", None]),
        ("TRY_CAST(s AS INT)", [None, None, None]),
        ("TRY_CAST('2024-02-01' || left(s, 0) AS DATE)", [dt.date(2024, 2, 1)] * 2 + [None]),
        ("int('3') + bigint(2)", [5] * 3),
        ("CASE WHEN i = 0 THEN 'none' WHEN i > 3 THEN 'many' END", ["none", "many", None]),
        ("CASE i WHEN 0 THEN 1 ELSE 2 END", [1, 2, 2]),
        ("if(b, id, i)", [1, 5, None]),
        ("coalesce(id, 0)", [1, 2, 0]),
        ("nvl(s, 'none')", ["abc", "", "none"]),
        ("nullif(i, 5)", [0, None, None]),
        ("isnull(s)", [False, False, True]),
        ("isnan(f)", [False, True, False]),
    ],
)
def test_values_are_cast_and_chosen(sql, expected):
    assert answers(sql) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("i <> 0 AND 10 / i > 1", [False, True, None]),
        ("i = 0 OR 10 / i > 1", [True, True, None]),
        ("CASE WHEN i = 0 THEN -1 ELSE 10 DIV i END", [-1, 2, None]),
        ("if(i = 0, 0, 10 % i)", [0, 0, None]),
        ("coalesce(i, 1 DIV 0)", InvalidInputError),
        ("coalesce(id, i, 7) + 0", [1, 2, 7]),
        ("length(s) = 0 AND CAST(s AS INT) = 1", InvalidInputError),
    ],
)
def test_what_is_guarded_is_computed_only_for_the_rows_that_come_to_it(sql, expected):
    if expected is InvalidInputError:
        with pytest.raises(InvalidInputError, match="can't be computed"):
            answers(sql)
    else:
        assert answers(sql) == expected


@pytest.mark.parametrize(
    "sql",
    ["1 / i", "i % 0", "tiny + tiny", "i + 2147483647", "CAST(s AS INT)", "CAST(f AS INT)"],
)
def test_a_value_that_cannot_be_computed_is_an_error_and_no_other_value(sql):
    with pytest.raises(InvalidInputError, match="can't be computed for every row"):
        answers(sql if sql != "tiny + tiny" else "tiny + cast(100 as tinyint)")


def test_an_expression_over_no_rows_has_its_type():
    found = evaluate(expression("i + 1 > 2", SCHEMA), ROWS.slice(0, 0))
    assert found.type == pa.bool_()
    assert len(found) == 0


def test_an_expression_goes_over_every_chunk():
    table = pa.concat_tables([ROWS, ROWS])
    assert evaluate(expression("id", SCHEMA), table).to_pylist() == [1, 2, None] * 2
