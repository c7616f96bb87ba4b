"""Whether two readers found the same rows: as multisets, of values without their reader's types."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

MOST_TABLES = 10
MOST_CHARACTERS = 1500
"""How much of what is wrong a failure tells."""


def differences(found: pa.Table, expected: pa.Table) -> list[str]:
    """How the rows differ; empty where they don't. Column names and their order count too."""
    if found.column_names != expected.column_names:
        return [f"columns {found.column_names} instead of {expected.column_names}"]
    mine, theirs = Counter(plain_rows(found)), Counter(plain_rows(expected))
    return [
        *[f"{times} x too many: {row}" for row, times in (mine - theirs).items()],
        *[f"{times} x missing: {row}" for row, times in (theirs - mine).items()],
    ][:10]


def told(name: str, found: pa.Table | Exception, expected: pa.Table) -> list[str]:
    """What a message says of a table that was not read as expected; nothing where it was."""
    said = [repr(found)] if isinstance(found, Exception) else differences(found, expected)
    return ["\n    ".join([name, *said])] if said else []


def check(problems: Iterable[list[str]]) -> None:
    """Fail with what is wrong, told so that it can be made again."""
    found = [problem for told_of in problems for problem in told_of]
    if found:
        text = "\n".join(problem[:MOST_CHARACTERS] for problem in found[:MOST_TABLES])
        pytest.fail(f"{len(found)} tables are read wrongly:\n{text}", pytrace=False)


def plain_rows(table: pa.Table) -> list[str]:
    """Each row as text that is equal where the rows are."""
    columns = [plain_column(column) for column in table.columns]
    return [repr(row) for row in zip(*columns, strict=True)] if columns else [""] * table.num_rows


def plain_column(column: pa.ChunkedArray[Any]) -> Sequence[Any]:
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.cast(column.type.storage_type)
    if isinstance(column.type, pa.TimestampType) and column.type.unit == "ns":
        column = column.cast(pa.timestamp("us", column.type.tz))
    return [plain(value) for value in column.to_pylist()]


def plain(value: Any) -> Any:
    """A value without what only its reader's type says: scale, zone, order of map entries."""
    match value:
        case Decimal():
            return ("decimal", format(value.normalize(), "f"))
        case dt.datetime():
            moment = value if value.tzinfo is None else value.astimezone(dt.UTC)
            return ("moment", value.tzinfo is not None, moment.isoformat())
        case dict():
            return {name: plain(member) for name, member in sorted(value.items())}
        case list():
            return sorted_map(value) if is_map(value) else [plain(member) for member in value]
        case _:
            return value


def is_map(value: list[Any]) -> bool:
    return bool(value) and all(isinstance(member, tuple) for member in value)


def sorted_map(entries: list[tuple[Any, Any]]) -> list[Any]:
    return sorted(((plain(key), plain(item)) for key, item in entries), key=repr)
