"""What is not supported is refused by its name, before anything is read."""

import subprocess
import sys

import pyarrow as pa
import pytest

from streamlake.data.predicates import condition, expression
from streamlake.errors import InvalidInputError

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("s", pa.string()),
        pa.field("m", pa.decimal128(38, 2)),
        pa.field("f", pa.float64()),
        pa.field("l", pa.list_(pa.int64())),
        pa.field("st", pa.struct([pa.field("x", pa.int64())])),
    ]
)


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("current_date()", "current_date"),
        ("current_timestamp() > '2024-01-01'", "current_timestamp"),
        ("rand() > 0.5", "rand"),
        ("sum(id) > 1", "sum"),
        ("id IN (SELECT 1)", "'query'"),
        ("EXISTS (SELECT 1)", "Exists"),
        ("frobnicate(id)", "frobnicate"),
        ("id = 1; DROP TABLE x", "Block"),
        ("id + INTERVAL 1 DAY > 1", "Interval"),
        ("l[0] = 1", "Bracket"),
        ("id & 1 = 1", "BitwiseAnd"),
        ("id = :p", "Placeholder"),
        ("*", "Star"),
        ("id AS x", "Alias"),
        ("s LIKE ANY ('a', 'b')", "Any"),
        ("CAST(s AS CHAR(5)) = 'a'", "char"),
        ("CAST(s AS ARRAY<INT>) IS NULL", "ARRAY"),
        ("CAST(f AS STRING) = '1'", "cast from double to string"),
        ("CAST(f AS DECIMAL(10, 2)) = 1", "cast from double"),
        ("sum(id) OVER () > 1", "Window"),
        ("date_format('2024-01-01', 'EEEE') = 'x'", "EEEE"),
        ("trunc('2024-01-01', 'century') IS NULL", "century"),
        ("s COLLATE utf8 = 'a'", "Collate"),
        ("(id, s) = (1, 'a')", "Tuple"),
    ],
)
def test_a_part_that_is_not_supported_is_named(sql, named):
    with pytest.raises(InvalidInputError) as caught:
        condition(sql, SCHEMA)
    assert named.lower() in str(caught.value).lower()
    assert caught.value.remedy
    assert sql[:20] in caught.value.where


@pytest.mark.parametrize(
    "sql",
    [
        "",
        "   ",
        "id =",
        "id -> 1BD escape s",
        "length('' =>",
        "id = 'a",
        "(id = 1",
        "id == = 1",
        "AND",
        "id..x = 1",
        "\x00",
        "x'0'",
    ],
)
def test_what_is_no_expression_is_refused(sql):
    with pytest.raises(InvalidInputError):
        condition(sql, SCHEMA)


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("nope = 1", "no column 'nope'"),
        ("st.nope = 1", "no column 'st.nope'"),
        ("id.x = 1", "no column 'id.x'"),
        ("st = st", "= can't be computed"),
        ("l = 1", "can't take"),
        ("id = 'one'", "'one' in the expression is no int64"),
        ("id = '1.5'", "'1.5' in the expression is no int64"),
        ("id = true", "can't take"),
        ("id", "needs something that is true or false"),
        ("id AND true", "needs something that is true or false"),
        ("NOT id", "not needs a boolean"),
        ("s + 1 = 2", "needs a number"),
        ("m / 2 = 1", "needs a double"),
        ("m * m = 1", "can't be computed for these arguments"),
        ("length(id, s) = 1", "length takes 1 argument."),
        ("length(id) = 1", "needs a string or binary"),
        ("left(X'c3a9', 1) = 'x'", "left needs a string"),
        ("s LIKE s", "needs a constant string"),
        ("s LIKE 'a\\\\'", "stray escape"),
        ("s RLIKE '('", "can't be computed"),
        ("s RLIKE 'a++'", "can't be computed"),
        ("s RLIKE '(?i)a'", "(?i)a"),
        ("s RLIKE '[a-z&&[^b]]'", "[a-z&&"),
        (r"s RLIKE '\\bword'", r"\\b"),
        (r"s RLIKE '\\p{Alpha}'", r"\\p"),
        (r"s RLIKE '(a)\\1'", r"\\1"),
        ("s RLIKE 'a$b'", "$b"),
        ("s RLIKE 'a{,2}'", "{,2}"),
        ("id = " + "9" * 40, "too many digits"),
    ],
)
def test_columns_and_types_that_do_not_fit_are_told(sql, told):
    with pytest.raises(InvalidInputError) as caught:
        condition(sql, SCHEMA)
    assert told in str(caught.value)


def test_a_column_with_a_collation_is_not_compared_byte_by_byte():
    collated = pa.field("s", pa.string(), metadata={b"delta.__COLLATIONS": b'{"s": "UTF8_LCASE"}'})
    assert condition("id = 1 AND s = 'a'", SCHEMA).type == pa.bool_()
    schema = pa.schema([SCHEMA.field("id"), collated])
    assert condition("id = 1", schema).type == pa.bool_()
    with pytest.raises(InvalidInputError, match="'s' has a collation"):
        condition("id = 1 AND s = 'a'", schema)


def test_an_expression_beyond_the_limits_is_refused():
    for sql in (
        "id = 1 " + " " * 100_000,
        "(" * 150 + "id = 1" + ")" * 150,
        "(" * 20_000 + "id = 1" + ")" * 20_000,
        "id" + " + 1" * 5_000 + " = 1",
    ):
        with pytest.raises(InvalidInputError):
            condition(sql, SCHEMA)


def test_a_long_chain_of_conditions_is_no_deep_one():
    assert condition(" OR ".join(f"id = {i}" for i in range(3_000)), SCHEMA).type == pa.bool_()
    assert expression(f"id IN ({', '.join(map(str, range(10_000)))})", SCHEMA).type == pa.bool_()


def test_who_uses_no_expression_never_loads_the_parser():
    program = """if True:
        import sys
        import pyarrow as pa
        import streamlake as sl
        table = sl.Table.create("memory://parser", schema=pa.schema([("n", pa.int64())]))
        table.append(pa.table({"n": [1]}))
        assert table.snapshot().to_arrow().num_rows == 1
        assert "sqlglot" not in sys.modules
        assert table.snapshot().to_arrow(where="n = 1").num_rows == 1
        assert "sqlglot" in sys.modules
    """
    subprocess.run([sys.executable, "-c", program], check=True)
