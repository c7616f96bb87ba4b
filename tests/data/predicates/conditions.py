"""Random conditions over a small table, and the table's random rows."""

import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa
from hypothesis import strategies as st

SCHEMA = pa.schema(
    [
        pa.field("p", pa.int32()),
        pa.field("i", pa.int32()),
        pa.field("l", pa.int64()),
        pa.field("s", pa.string()),
        pa.field("f", pa.float64()),
        pa.field("b", pa.bool_()),
        pa.field("d", pa.date32()),
        pa.field("n", pa.timestamp("us")),
        pa.field("t", pa.timestamp("us", "UTC")),
        pa.field("m", pa.decimal128(9, 2)),
        pa.field("o", pa.struct([pa.field("x", pa.int32())])),
    ]
)
"""``p`` is what tables are partitioned by."""

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC).replace(tzinfo=None)
_SMALL = st.integers(-3, 3)
_STRINGS = st.sampled_from(["", "a", "ab", "b", "B", "é", "a" * 40, "a" * 40 + "\U0001f600", "z%_"])
_FLOATS = st.sampled_from([0.0, -0.0, 1.5, -2.0, math.nan, math.inf, -math.inf, 0.1])
_DAYS = st.integers(-2, 3).map(lambda days: dt.date(1970, 1, 1) + dt.timedelta(days))
_MOMENTS = st.integers(-3, 3).flatmap(
    lambda days: st.sampled_from([0, 1, 999, 1000, 86_399_999_999]).map(
        lambda us: _EPOCH + dt.timedelta(days, microseconds=us)
    )
)
_VALUES = {
    "p": _SMALL,
    "i": _SMALL | st.sampled_from([2**31 - 1, -(2**31)]),
    "l": _SMALL | st.sampled_from([2**63 - 1, 2**53 + 1]),
    "s": _STRINGS,
    "f": _FLOATS,
    "b": st.booleans(),
    "d": _DAYS,
    "n": _MOMENTS,
    "t": _MOMENTS.map(lambda moment: moment.replace(tzinfo=dt.UTC)),
    "m": st.sampled_from([Decimal("0.10"), Decimal("-1.25"), Decimal("9999999.99"), Decimal(2)]),
    "o": st.fixed_dictionaries({"x": st.none() | _SMALL}),
}


def rows(*, max_size: int = 6) -> st.SearchStrategy[list[dict[str, object]]]:
    """Rows of the schema; each column null now and then."""
    row = st.fixed_dictionaries({name: st.none() | values for name, values in _VALUES.items()})
    return st.lists(row, min_size=1, max_size=max_size)


def _text(value: object) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "\\'") + "'"
    if isinstance(value, dt.datetime):
        kind = "timestamp_ntz" if value.tzinfo is None else "timestamp"
        return f"{kind} '{value.replace(tzinfo=None).isoformat(sep=' ')}'"
    if isinstance(value, dt.date):
        return f"date '{value.isoformat()}'"
    if isinstance(value, float):
        return f"double('{value}')" if not math.isfinite(value) else f"cast({value!r} as double)"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


_FAMILIES = {
    "number": ["p", "i", "l", "f", "m", "o.x"],
    "string": ["s"],
    "boolean": ["b"],
    "time": ["d", "n", "t"],
}
_COLUMNS = {column: family for family, columns in _FAMILIES.items() for column in columns}


def _constants(column: str) -> st.SearchStrategy[str]:
    values = _SMALL if column == "o.x" else _VALUES[column]
    return (values | st.none()).map(lambda value: "NULL" if value is None else _text(value))


_OPERATORS = st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>"])


@st.composite
def comparisons(draw: st.DrawFn) -> str:
    """One comparison of a column."""
    column = draw(st.sampled_from(sorted(_COLUMNS)))
    kin = st.sampled_from(_FAMILIES[_COLUMNS[column]])
    constant = kin.flatmap(_constants)
    other = constant | kin
    forms = [
        st.builds("{} {} {}".format, st.just(column), _OPERATORS, other),
        st.builds("{} {} {}".format, constant, _OPERATORS, st.just(column)),
        st.builds("{} BETWEEN {} AND {}".format, st.just(column), constant, other),
        st.builds(
            "{} {} ({})".format,
            st.just(column),
            st.sampled_from(["IN", "NOT IN"]),
            st.lists(constant, min_size=1, max_size=4).map(", ".join),
        ),
        st.just(f"{column} IS NULL"),
        st.just(f"{column} IS NOT NULL"),
    ]
    if column == "s":
        patterns = st.sampled_from(["a%", "%", "a_", "aa%é", "b", "z\\\\%%", ""])
        forms += [
            st.builds("s {} '{}'".format, st.sampled_from(["LIKE", "NOT LIKE"]), patterns),
            st.builds("startswith(s, '{}')".format, st.sampled_from(["", "a", "aaa", "b"])),
            st.builds("length(s) {} 1".format, _OPERATORS),
        ]
    if column in {"d", "n", "t"}:
        forms += [
            st.builds("year({}) {} 1970".format, st.just(column), _OPERATORS),
            st.builds("cast({} as date) {} date '1970-01-01'".format, st.just(column), _OPERATORS),
            st.builds("trunc({}, 'MONTH') {} '1970-01-01'".format, st.just(column), _OPERATORS),
        ]
    if column in {"p", "o.x"}:
        forms += [
            st.builds("{} + {} {} 1".format, st.just(column), _SMALL, _OPERATORS),
            st.builds("{} % 2 {} 1".format, st.just(column), _OPERATORS),
            st.builds("coalesce({}, 0) {} 1".format, st.just(column), _OPERATORS),
        ]
    if column == "b":
        forms += [st.just("b"), st.just("b IS TRUE"), st.just("b IS NOT FALSE")]
    return draw(st.one_of(forms))


def conditions() -> st.SearchStrategy[str]:
    """Comparisons joined by AND, OR, NOT and CASE."""
    return st.recursive(
        comparisons(),
        lambda inner: st.one_of(
            st.builds("({} AND {})".format, inner, inner),
            st.builds("({} OR {})".format, inner, inner),
            st.builds("NOT ({})".format, inner),
            st.builds("(CASE WHEN {} THEN {} ELSE {} END)".format, inner, inner, inner),
            st.builds("(({}) IS TRUE)".format, inner),
        ),
        max_leaves=4,
    )
