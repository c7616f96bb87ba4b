"""Random Arrow data in every type that a table can have."""

from decimal import Decimal

import pyarrow as pa
from hypothesis import strategies as st


def integers(bits):
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def decimal_type(precision, scale):
    limit = 10**precision - 1
    values = st.integers(-limit, limit).map(lambda n: _decimal(n, scale))
    return pa.decimal128(precision, scale), values


def _decimal(unscaled, scale):
    digits = tuple(int(digit) for digit in str(abs(unscaled)))
    return Decimal((int(unscaled < 0), digits, -scale))


LEAVES = [
    (pa.bool_(), st.booleans()),
    (pa.int8(), integers(8)),
    (pa.int16(), integers(16)),
    (pa.int32(), integers(32)),
    (pa.int64(), integers(64)),
    (pa.float32(), st.floats(width=32, allow_nan=False)),
    (pa.float64(), st.floats(allow_nan=False)),
    (pa.string(), st.text(max_size=80)),
    (pa.binary(), st.binary(max_size=20)),
    (pa.date32(), integers(32)),
    (pa.timestamp("us", "UTC"), integers(64)),
    (pa.timestamp("us"), integers(64)),
    decimal_type(9, 2),
    decimal_type(18, 0),
    decimal_type(38, 38),
    decimal_type(38, 10),
]
"""Types of one value, each with a strategy of values that ``pyarrow.array`` takes; without NaN,
so that tables compare."""

WITH_NAN = [*LEAVES, (pa.float32(), st.floats(width=32)), (pa.float64(), st.floats())]

leaves = st.sampled_from(LEAVES)


def _struct(children):
    names = [f"f{i}" for i in range(len(children))]
    kind = pa.struct([pa.field(name, t) for name, (t, _) in zip(names, children, strict=True)])
    fields = {name: nullable(v) for name, (_, v) in zip(names, children, strict=True)}
    return kind, st.fixed_dictionaries(fields)


def _list(child):
    kind = pa.list_(pa.field("element", child[0]))
    return kind, st.lists(nullable(child[1]), max_size=3)


def _map(child):
    entries = st.dictionaries(st.text(max_size=5), nullable(child[1]), max_size=3)
    return pa.map_(pa.string(), child[0]), entries.map(lambda found: list(found.items()))


def nullable(values):
    return st.none() | values


typed_values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(_struct), inner.map(_list), inner.map(_map)
    ),
    max_leaves=4,
)
"""A type, nested or not, and the strategy of its values."""


@st.composite
def tables(draw, *, types=typed_values, min_rows=0, max_rows=8):
    """A table of one to four columns, all nullable."""
    columns = draw(st.lists(types, min_size=1, max_size=4))
    rows = draw(st.integers(min_rows, max_rows))
    arrays = [
        pa.array(draw(st.lists(nullable(values), min_size=rows, max_size=rows)), kind)
        for kind, values in columns
    ]
    return pa.table({f"c{i}": array for i, array in enumerate(arrays)})
