"""Columns under other names."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

from streamlake.data.relabel import relabelled

PLAIN = pa.struct(
    [
        pa.field("a", pa.int64()),
        pa.field("b", pa.list_(pa.field("element", pa.struct([pa.field("c", pa.string())])))),
        pa.field("d", pa.map_(pa.string(), pa.struct([pa.field("e", pa.int32())]))),
    ]
)
OTHER = pa.struct(
    [
        pa.field("x1", pa.int64(), metadata={b"PARQUET:field_id": b"7"}),
        pa.field("x2", pa.list_(pa.field("element", pa.struct([pa.field("a", pa.string())])))),
        pa.field("x3", pa.map_(pa.string(), pa.struct([pa.field("b", pa.int32())]))),
    ]
)
VALUES = st.none() | st.fixed_dictionaries(
    {
        "a": st.none() | st.integers(0, 9),
        "b": st.none() | st.lists(st.none() | st.fixed_dictionaries({"c": st.text(max_size=3)})),
        "d": st.none()
        | st.lists(
            st.tuples(st.text(max_size=2), st.fixed_dictionaries({"e": st.integers(0, 9)})),
            max_size=2,
        ),
    }
)


@given(st.lists(VALUES, max_size=6), st.integers(0, 3))
def test_every_value_stands_under_the_other_names_and_back(values, start):
    column: Any = pa.chunked_array([pa.array(values, PLAIN).slice(start), pa.array(values, PLAIN)])
    renamed = relabelled(column, OTHER)
    renamed.validate(full=True)
    assert renamed.type.equals(OTHER, check_metadata=True)
    assert [None if row is None else row["x1"] for row in renamed.to_pylist()] == [
        None if row is None else row["a"] for row in column.to_pylist()
    ]
    assert relabelled(renamed, PLAIN).equals(column)


def test_a_column_without_chunks_stays_one():
    assert relabelled(pa.chunked_array([], PLAIN), OTHER).type.equals(OTHER)


@pytest.mark.parametrize(
    "kind",
    [
        pa.int64(),
        pa.struct([pa.field("a", pa.int64())]),
        pa.list_(pa.int64()),
        pa.struct([pa.field("a", pa.int32()), *list(PLAIN)[1:]]),
    ],
)
def test_another_layout_is_refused(kind):
    with pytest.raises(ValueError, match="laid out otherwise"):
        relabelled(pa.chunked_array([], PLAIN), kind)
