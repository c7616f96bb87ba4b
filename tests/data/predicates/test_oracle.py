"""Random conditions give what DuckDB gives, where both mean the same by them."""

import duckdb
import pyarrow as pa
import pytest
import sqlglot
from hypothesis import given

from data.predicates.conditions import SCHEMA, conditions, rows
from streamlake.data.predicates import condition, evaluate


@pytest.fixture(scope="module")
def duck():
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


@given(data=rows(), where=conditions())
def test_a_condition_is_true_false_and_null_where_it_is_in_duckdb(duck, data, where):
    table = pa.Table.from_pylist(data, schema=SCHEMA)
    (sql,) = sqlglot.transpile(where, read="spark", write="duckdb")
    duck.register("given_rows", table)
    answer = duck.table("given_rows").project(sql).fetchall()
    expected = [row[0] for row in answer]
    assert evaluate(condition(where, SCHEMA), table).to_pylist() == expected
