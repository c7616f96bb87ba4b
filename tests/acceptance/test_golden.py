"""Tables that other engines wrote are read right or refused by a typed error, never read wrong.

STREAMLAKE_GOLDEN names a folder of them: ``NAME/delta`` with its rows in ``NAME/expected``, or a
table by itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamlake as sl

GOLDEN = Path(os.environ.get("STREAMLAKE_GOLDEN") or "/nonexistent")
pytestmark = pytest.mark.skipif(
    not GOLDEN.is_dir(), reason="STREAMLAKE_GOLDEN names no folder of tables"
)

FAULTY: dict[str, type[sl.StreamlakeError]] = {
    "data-reader-absolute-paths-escaped-chars": sl.CorruptTableError,
    "deltalog-commit-info": sl.CorruptTableError,
    "deltalog-invalid-protocol-version": sl.UnsupportedFeatureError,
    "deltalog-state-reconstruction-from-checkpoint-missing-protocol": sl.CorruptTableError,
    "deltalog-state-reconstruction-without-metadata": sl.CorruptTableError,
    "no-delta-log-folder": sl.TableNotFoundError,
    "update-deleted-directory": sl.CorruptTableError,
    "versions-not-contiguous": sl.LogGapError,
}
"""What must be told of tables that are no good."""
WITHOUT_FILES = {
    "checkpoint",
    "delete-re-add-same-file-different-transactions",
    "log-replay-special-characters-b",
}
"""Logs whose data files were never made."""


def tables() -> Iterator[tuple[str, Path]]:
    """Each table by the name of its folder, and where it is."""
    for folder in sorted(path for path in GOLDEN.iterdir() if path.is_dir()):
        inner = folder / "delta"
        top = inner if inner.is_dir() else folder
        roots = sorted(log.parent for log in top.rglob("_delta_log"))
        for root in roots or [top]:
            yield folder.name, root


TABLES = list(tables()) if GOLDEN.is_dir() else []
WITH_ROWS = [
    (root, GOLDEN / name / "expected")
    for name, root in TABLES
    if name not in FAULTY and (GOLDEN / name / "expected").is_dir()
]
WITHOUT_ROWS = [
    (name, root)
    for name, root in TABLES
    if name not in FAULTY and not (GOLDEN / name / "expected").is_dir()
]


def name_of(value: object) -> str:
    return str(value.relative_to(GOLDEN)) if isinstance(value, Path) else str(value)


def rows_of(root: Path) -> pa.Table:
    return sl.Table.open(root).snapshot().to_arrow()


def expected_rows(folder: Path, schema: pa.Schema) -> pa.Table:
    """The rows that a table must have, by the types that it has."""
    parts = [pq.read_table(file) for file in sorted(folder.rglob("*.parquet"))]
    rows = pa.concat_tables(parts, promote_options="permissive")
    assert sorted(rows.schema.names) == sorted(schema.names)
    return rows.select(schema.names).cast(schema)


def as_multiset(rows: pa.Table) -> list[str]:
    return sorted(repr(list(row.values())) for row in rows.to_pylist())


@pytest.mark.parametrize(("root", "expected"), WITH_ROWS, ids=name_of)
def test_a_table_has_the_rows_that_its_writer_put_there(root, expected):
    rows = rows_of(root)
    assert as_multiset(rows) == as_multiset(expected_rows(expected, rows.schema))


@pytest.mark.parametrize("root", [root for root, _ in WITH_ROWS], ids=name_of)
def test_each_column_by_itself_is_the_same(root):
    whole = rows_of(root)
    for name in whole.schema.names:
        alone = sl.Table.open(root).snapshot().to_arrow(columns=[name])
        assert alone.equals(whole.select([name]))


@pytest.mark.parametrize(("root", "expected"), WITH_ROWS, ids=name_of)
def test_a_tail_that_begins_with_the_snapshot_hands_on_the_same_rows(root, expected):
    batches = list(sl.Table.open(root).tail(start="snapshot", stop="latest"))
    found = [row for batch in batches for row in as_multiset(batch.data)]
    schema = sl.Table.open(root).snapshot().schema
    assert sorted(found) == as_multiset(expected_rows(expected, schema))


@pytest.mark.parametrize(("name", "root"), WITHOUT_ROWS, ids=name_of)
def test_a_log_without_known_rows_loads_and_its_files_read(name, root):
    snapshot = sl.Table.open(root).snapshot()
    if name in WITHOUT_FILES:
        with pytest.raises(sl.CorruptTableError, match="is missing"):
            rows_of(root)
        return
    rows = rows_of(root)
    assert rows.schema.names == snapshot.schema.names
    known = [add.num_records for add in snapshot.files() if add.deletion_vector is None]
    if len(known) == len(snapshot.files()) and None not in known:
        assert rows.num_rows == sum(count or 0 for count in known)


@pytest.mark.parametrize("name", sorted(FAULTY))
def test_a_faulty_table_is_told_by_its_type_of_error(name):
    folder = GOLDEN / name
    root = folder / "delta" if (folder / "delta").is_dir() else folder
    with pytest.raises(FAULTY[name]) as error:
        rows_of(root)
    assert str(root) in error.value.where
    assert error.value.remedy
