"""Columns that Spark made as char or varchar keep the lengths of their strings."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import streamlake as sl
from streamlake.protocol import with_field_metadata


def made(path: Path, kind: str, arrow: pa.DataType | None = None) -> sl.Table:
    field = pa.field("the `b`", arrow or pa.string())
    field = with_field_metadata(field, {"__CHAR_VARCHAR_TYPE_STRING": kind})
    properties = {"delta.columnMapping.mode": "name"}
    return sl.Table.create(path / "t", schema=pa.schema([field]), properties=properties)


@pytest.mark.parametrize("kind", ["varchar(3)", "char(3)"])
def test_a_string_that_is_too_long_is_refused(tmp_path: Path, kind):
    table = made(tmp_path, kind)
    table.append(pa.table({"the `b`": ["äöü", "a", None]}))
    with pytest.raises(sl.ConstraintViolationError, match=r"type (var)?char\(3\) of column"):
        table.append(pa.table({"the `b`": ["a", "abcd"]}))
    assert table.snapshot().to_arrow().num_rows == 3


def test_lengths_inside_of_other_types_are_refused_by_name(tmp_path: Path):
    with pytest.raises(sl.UnsupportedFeatureError, match="lengths of strings in column"):
        made(tmp_path, "array<varchar(3)>", pa.list_(pa.string()))
    assert not (tmp_path / "t").exists() or not list((tmp_path / "t").glob("_delta_log/*.json"))
