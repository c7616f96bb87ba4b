"""Conditions on tables that other engines wrote lose no row by their partitions and statistics."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import streamlake as sl
from acceptance.test_golden import GOLDEN, WITH_ROWS, name_of
from streamlake.data.predicates import condition, matching_rows

pytestmark = pytest.mark.skipif(
    not GOLDEN.is_dir(), reason="STREAMLAKE_GOLDEN names no folder of tables"
)

MAX_COLUMNS = 25
"""How many columns of a table are asked for, and how many values of each."""
MAX_VALUES = 4


def leaves(fields: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for field in fields:
        path = (*above, field.name)
        if isinstance(field.type, pa.StructType):
            yield from leaves(field.type, path)
        else:
            yield path, field.type


def written(value: object, kind: pa.DataType) -> str | None:
    """A value as SQL has it; None for one of a type that has no constants."""
    text: str | None
    if isinstance(value, dt.datetime):
        kind_name = "TIMESTAMP" if value.tzinfo else "TIMESTAMP_NTZ"
        text = f"{kind_name} '{value.replace(tzinfo=None).isoformat(sep=' ')}'"
    elif isinstance(value, dt.date):
        text = f"DATE '{value.isoformat()}'"
    elif isinstance(value, bytes):
        text = f"X'{value.hex()}'"
    elif isinstance(value, str):
        text = "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    elif isinstance(value, float):
        text = f"{'float' if pa.types.is_float32(kind) else 'double'}('{value!r}')"
    else:
        text = str(value) if isinstance(value, bool | int | Decimal) else None
    return text


def conditions(rows: pa.Table) -> Iterator[str]:
    for path, kind in list(leaves(rows.schema))[:MAX_COLUMNS]:
        name = ".".join("`" + part.replace("`", "``") + "`" for part in path)
        yield f"{name} IS NULL"
        column: Any = rows.column(path[0])
        for part in path[1:]:
            column = pa.chunked_array([chunk.field(part) for chunk in column.chunks])
        values = list(dict.fromkeys(map(str, column.to_pylist()[:50])))[:MAX_VALUES]
        for value in column.to_pylist()[:50]:
            text = written(value, kind)
            if str(value) in values and text is not None:
                values.remove(str(value))
                for operator in ("=", "<", ">="):
                    yield f"{name} {operator} {text}"


@pytest.mark.parametrize("root", [root for root, _ in WITH_ROWS], ids=name_of)
def test_a_condition_on_a_table_of_another_engine_finds_every_row_that_satisfies_it(root: Path):
    snapshot = sl.Table.open(root).snapshot()
    rows = snapshot.to_arrow()
    for where in conditions(rows):
        expected = matching_rows(rows, condition(where, snapshot.schema))
        assert snapshot.to_arrow(where=where).equals(expected), where
