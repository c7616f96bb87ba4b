"""CHECK constraints added, enforced and dropped."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import streamlake as sl
from operations.overtaken import overtaken
from streamlake.protocol import Protocol

SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string())])


@pytest.fixture(params=["none", "name"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> sl.Table:
    properties = {"delta.columnMapping.mode": request.param}
    made = sl.Table.create(tmp_path / "t", schema=SCHEMA, properties=properties)
    made.append(pa.table({"id": [1, 2], "s": ["a", "b"]}))
    return made


def test_rows_that_come_must_satisfy_it_until_it_is_dropped(table):
    table.add_constraint("positive", "id > 0")
    with pytest.raises(sl.ConstraintViolationError, match="positive"):
        table.append(pa.table({"id": [0], "s": ["c"]}))
    with pytest.raises(sl.ConstraintViolationError, match="positive"):
        sl.Table.open(table.url).append(pa.table({"id": pa.array([None], pa.int64())}))
    table.append(pa.table({"id": [3], "s": ["c"]}))
    table.drop_constraint("POSITIVE")
    table.append(pa.table({"id": [0], "s": ["c"]}))
    assert table.snapshot().to_arrow()["id"].to_pylist() == [1, 2, 3, 0]


def test_rows_that_are_there_must_satisfy_it(table):
    with pytest.raises(sl.ConstraintViolationError, match="small") as caught:
        table.add_constraint("small", "id < 2 AND s = 'a'")
    assert "2" in caught.value.found
    assert sl.Table.open(table.url).version == 1


def test_the_protocol_rises_to_the_version_that_knows_constraints(tmp_path: Path):
    table = sl.Table.create(tmp_path / "t", schema=SCHEMA)
    table.add_constraint("positive", "id > 0")
    assert table.log.head.protocol == Protocol(1, 3)
    assert table.properties == {"delta.constraints.positive": "id > 0"}


def test_its_name_is_kept_in_small_letters_as_other_engines_look_for_it(table):
    table.add_constraint("Small", "id < 9")
    assert table.properties.items() >= {"delta.constraints.small": "id < 9"}.items()
    table.drop_constraint("SMALL")
    assert "delta.constraints.small" not in table.properties


@pytest.mark.parametrize(
    ("name", "sql", "told"),
    [
        ("taken", "id < 9", "has a constraint"),
        ("TAKEN", "id < 9", "has a constraint"),
        ("", "id < 9", "needs a name"),
        ("n", "gone > 0", "gone"),
        ("n", "id +", "SQL"),
        ("n", "id + 1", "condition"),
    ],
)
def test_constraints_that_can_not_be_are_refused(table, name, sql, told):
    table.add_constraint("taken", "id > 0")
    with pytest.raises(sl.InvalidInputError, match=told):
        table.add_constraint(name, sql)
    assert table.version == 2


def test_what_is_not_there_can_not_be_dropped(table):
    with pytest.raises(sl.InvalidInputError, match="no constraint 'n'"):
        table.drop_constraint("n")
    assert table.drop_constraint("n", missing_ok=True).already_committed


def test_a_column_with_a_constraint_keeps_its_name(tmp_path: Path):
    properties = {"delta.columnMapping.mode": "name"}
    table = sl.Table.create(tmp_path / "t", schema=SCHEMA, properties=properties)
    table.add_constraint("positive", "`ID` > 0 AND s <> 'ids'")
    with pytest.raises(sl.InvalidInputError, match="constraint positive"):
        table.rename_column("id", "n")
    with pytest.raises(sl.InvalidInputError, match="constraint positive"):
        table.drop_columns(["s"])
    table.add_columns([pa.field("d", pa.int64())])
    table.rename_column("d", "e")


def test_rows_that_come_while_it_is_added_are_a_conflict(table):
    other = overtaken(table, lambda: table.append(pa.table({"id": [-1], "s": ["x"]})))
    with pytest.raises(sl.ConcurrentAppendError):
        other.add_constraint("positive", "id > 0")
    assert sl.Table.open(table.url).log.head.metadata.configuration.keys() <= {
        "delta.columnMapping.mode",
        "delta.columnMapping.maxColumnId",
    }


def test_an_append_staged_before_it_was_added_is_told(table):
    other = sl.Table.open(table.url)
    staged = other.stager()
    files = staged.stage(pa.table({"id": [-1], "s": ["x"]}))
    table.add_constraint("positive", "id > 0")
    with pytest.raises(sl.MetadataChangedError, match="positive"):
        other.commit_staged(files, staged_by=staged)
