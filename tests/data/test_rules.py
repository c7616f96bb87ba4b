"""Rows that break a rule of the table are refused, each rule by its name; nothing is written."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import streamlake as sl
from streamlake.protocol import with_field_metadata
from streamlake.protocol.features import writer_features
from streamlake.storage import open_store

N = pa.schema([pa.field("n", pa.int64()), pa.field("s", pa.string())])


def rows(*values: object, schema: pa.Schema = N) -> pa.Table:
    """Rows of the first column alone."""
    return pa.Table.from_pylist([{schema.names[0]: value} for value in values], schema=schema)


def generated(name: str, kind: pa.DataType, sql: str, *, nullable: bool = True) -> pa.Field[Any]:
    field = pa.field(name, kind, nullable=nullable)
    return with_field_metadata(field, {"delta.generationExpression": sql})


def with_invariant(field: pa.Field[Any], sql: str) -> pa.Field[Any]:
    text = json.dumps({"expression": {"expression": sql}})
    return with_field_metadata(field, {"delta.invariants": text})


def constrained(url: object, *, schema: pa.Schema = N, **constraints: str) -> sl.Table:
    properties = {f"delta.constraints.{name}": sql for name, sql in constraints.items()}
    return sl.Table.create(str(url), schema=schema, properties=properties)


def test_a_row_that_breaks_a_constraint_is_refused_and_shown(tmp_path):
    table = constrained(tmp_path, positive="N > 0", short="length(s) < 5 OR s IS NULL")
    table.append(rows(1, 2))
    with pytest.raises(sl.ConstraintViolationError) as caught:
        table.append(rows(3, -4, 5, -6))
    assert "CHECK constraint 'positive'" in caught.value.what
    assert "N > 0 is not true for 2 of 4 rows, the first with n = -4" in caught.value.found
    assert table.snapshot().version == 1
    files = [meta.path for meta in open_store(str(tmp_path)).list_from("") if "part-" in meta.path]
    assert len(files) == 1


def test_a_constraint_is_kept_however_other_engines_spell_its_property(tmp_path):
    odd = {"Delta.Constraints.Positive": "n > 0"}
    table = sl.Table.create(str(tmp_path), schema=N, properties=odd)
    assert "checkConstraints" in writer_features(table.log.head.protocol)
    with pytest.raises(sl.ConstraintViolationError, match="Positive"):
        table.append(rows(0))


def test_null_does_not_satisfy_a_constraint(tmp_path):
    table = constrained(tmp_path, positive="n > 0")
    with pytest.raises(sl.ConstraintViolationError, match="positive"):
        table.append(rows(1, None))


def test_every_part_of_a_stream_is_checked(tmp_path):
    table = constrained(tmp_path, positive="n > 0")
    batches = [batch for value in (1, 2, -3) for batch in rows(value).to_batches()]
    with pytest.raises(sl.ConstraintViolationError, match="positive"):
        table.append(pa.RecordBatchReader.from_batches(N, batches))
    assert table.snapshot().version == 0


def test_a_constraint_over_a_partition_column_is_kept(tmp_path):
    table = sl.Table.create(
        str(tmp_path),
        schema=N,
        partition_by=["s"],
        properties={"delta.constraints.known": "s IN ('a', 'b')"},
    )
    table.append(pa.table({"n": [1], "s": ["a"]}))
    with pytest.raises(sl.ConstraintViolationError, match="known"):
        table.append(pa.table({"n": [1], "s": ["c"]}))


def test_a_constraint_that_cannot_be_computed_for_a_row_refuses_it(tmp_path):
    table = constrained(tmp_path, inverse="10 / n < 100")
    with pytest.raises(sl.ConstraintViolationError, match="can't be computed") as caught:
        table.append(rows(1, 0))
    assert "divide by zero" in caught.value.found


def test_an_invariant_is_kept_nested_ones_too(tmp_path):
    inner = with_invariant(pa.field("x", pa.int64()), "st.x > 3")
    schema = pa.schema([pa.field("st", pa.struct([inner]))])
    table = sl.Table.create(str(tmp_path), schema=schema)
    table.append(rows({"x": 4}, schema=schema))
    for value in ({"x": 3}, {"x": None}, None):
        with pytest.raises(sl.ConstraintViolationError, match=r"invariant of column 'st\.x'"):
            table.append(rows(value, schema=schema))


def test_an_invariant_within_a_list_is_refused_by_name(tmp_path):
    inner = with_invariant(pa.field("x", pa.int64()), "x > 3")
    schema = pa.schema([pa.field("l", pa.list_(pa.struct([inner])))])
    with pytest.raises(sl.UnsupportedFeatureError, match=r"invariant of field 'l\.element\.x'"):
        sl.Table.create(str(tmp_path), schema=schema)


DATED = pa.schema(
    [
        pa.field("at", pa.timestamp("us", "UTC")),
        generated("day", pa.date32(), "CAST(at AS DATE)"),
        generated("month", pa.string(), "date_format(at, 'yyyy-MM')"),
    ]
)
AT = dt.datetime(2024, 5, 6, 7, tzinfo=dt.UTC)


def test_generated_columns_are_computed_where_they_are_absent(tmp_path):
    table = sl.Table.create(str(tmp_path), schema=DATED, partition_by=["day"])
    table.append(pa.table({"at": [AT, None]}, schema=pa.schema([DATED.field("at")])))
    assert table.snapshot().to_arrow(where="at IS NOT NULL").to_pylist() == [
        {"at": AT, "day": dt.date(2024, 5, 6), "month": "2024-05"}
    ]
    assert {add.partition_values["day"] for add in table.snapshot().files()} == {"2024-05-06", None}


def test_generated_columns_that_are_given_are_checked(tmp_path):
    table = sl.Table.create(str(tmp_path), schema=DATED)
    right = {"at": AT, "day": dt.date(2024, 5, 6), "month": "2024-05"}
    nothing = dict.fromkeys(right)
    table.append(pa.Table.from_pylist([right, nothing], schema=DATED))
    for wrong in ({**right, "day": dt.date(2024, 5, 7)}, {**right, "month": None}):
        with pytest.raises(sl.ConstraintViolationError, match="generated column"):
            table.append(pa.Table.from_pylist([wrong], schema=DATED))


def test_some_generated_columns_may_be_given_and_others_not(tmp_path):
    table = sl.Table.create(str(tmp_path), schema=DATED)
    table.append(pa.table({"month": ["2024-05"], "at": pa.array([AT], DATED.field("at").type)}))
    assert table.snapshot().to_arrow(columns=["day"]).to_pylist() == [{"day": AT.date()}]


def test_a_generated_column_that_may_not_be_null_is_checked(tmp_path):
    day = generated("day", pa.date32(), "CAST(at AS DATE)", nullable=False)
    schema = pa.schema([DATED.field("at"), day])
    table = sl.Table.create(str(tmp_path), schema=schema)
    with pytest.raises(sl.ConstraintViolationError, match="NOT NULL"):
        table.append(pa.table({"at": pa.array([None], DATED.field("at").type)}))


@pytest.mark.parametrize("sql", ["n > current_date()", "nope > 1", "n", "n >", "udf(n)"])
def test_a_rule_that_cannot_be_computed_here_is_refused_at_once(tmp_path, sql):
    with pytest.raises(sl.UnsupportedFeatureError, match="CHECK constraint 'odd'") as caught:
        constrained(tmp_path, odd=sql)
    assert sql in caught.value.found


def test_rows_are_moved_without_being_checked_again(tmp_path):
    table = constrained(tmp_path, positive="n > 0")
    for value in (1, 2, 3):
        table.append(rows(value))
    assert table.optimize().files_added == 1
    assert table.snapshot().to_arrow(columns=["n"]).to_pylist() == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_constraints_of_delta_rs_are_kept(tmp_path):
    write_deltalake(str(tmp_path), pa.table({"n": [1]}))
    DeltaTable(str(tmp_path)).alter.add_constraint({"positive": "n > 0"})
    table = sl.Table.open(str(tmp_path))
    table.append(pa.table({"n": [2]}))
    with pytest.raises(sl.ConstraintViolationError, match="positive"):
        table.append(pa.table({"n": [-2]}))


def test_a_stager_in_another_process_keeps_the_rules(tmp_path):
    stager = constrained(tmp_path, positive="n > 0").stager()
    assert len(stager.stage(rows(1))) == 1
    with pytest.raises(sl.ConstraintViolationError, match="positive"):
        stager.stage(rows(-1))
