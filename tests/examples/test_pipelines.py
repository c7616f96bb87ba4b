"""The example programs, run as a user runs them, and run again."""

import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import streamlake as sl
from kafka_kit import produce

PROGRAMS = Path(__file__).parents[2] / "examples/pipelines"
TEA = '{"id": 1, "item": "tea", "price": 4.5}'
GOLD = '{"id": 2, "item": "gold", "price": 1999.0, "note": "insured"}'
RICE = '{"id": 3, "item": "rice", "price": 2.5}'


def run(program, *arguments):
    command = [sys.executable, str(PROGRAMS / program), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def items(url):
    return sorted(sl.Table.open(url).snapshot().to_arrow()["item"].to_pylist())


@pytest.fixture
def orders(tmp_path):
    """A table of orders."""
    schema = pa.schema([("id", pa.int64()), ("item", pa.string()), ("price", pa.float64())])
    return sl.Table.create(tmp_path / "orders", schema=schema)


def order(item, price):
    return pa.table({"id": [1], "item": [item], "price": [price]})


def test_kafka_to_table_decodes_each_message_once(kafka, topic, tmp_path):
    produce(kafka.bootstrap_servers, topic, [TEA, GOLD])
    first = run("kafka_to_table.py", kafka.bootstrap_servers, topic, tmp_path / "orders")
    produce(kafka.bootstrap_servers, topic, [RICE])
    second = run("kafka_to_table.py", kafka.bootstrap_servers, topic, tmp_path / "orders")
    assert (first, second) == ("2 orders in 1 commits\n", "1 orders in 1 commits\n")
    assert items(tmp_path / "orders") == ["gold", "rice", "tea"]


def test_spark_foreach_batch_goes_on_without_its_checkpoint(kafka, topic, tmp_path):
    arguments = (kafka.bootstrap_servers, topic, tmp_path / "orders", tmp_path / "checkpoint")
    produce(kafka.bootstrap_servers, topic, [TEA, GOLD])
    run("spark_foreach_batch.py", *arguments)
    shutil.rmtree(tmp_path / "checkpoint")
    produce(kafka.bootstrap_servers, topic, [RICE])
    run("spark_foreach_batch.py", *arguments)
    assert items(tmp_path / "orders") == ["gold", "rice", "tea"]


def test_tail_with_position_counts_each_order_once(orders, tmp_path):
    database = tmp_path / "totals.db"
    orders.append(order("tea", 4.0))
    orders.append(order("tea", 5.0))
    run("tail_with_position.py", orders.url, database)
    orders.append(order("rice", 2.0))
    run("tail_with_position.py", orders.url, database)
    run("tail_with_position.py", orders.url, database)
    totals = sqlite3.connect(database).execute("SELECT * FROM totals ORDER BY item").fetchall()
    assert totals == [("rice", 1, 2.0), ("tea", 2, 9.0)]


def test_table_to_table_carries_what_is_new_once(orders, tmp_path):
    orders.append(order("gold", 1999.0))
    orders.append(order("tea", 4.0))
    run("table_to_table.py", orders.url, tmp_path / "large")
    orders.append(order("silver", 100.0))
    run("table_to_table.py", orders.url, tmp_path / "large")
    assert run("table_to_table.py", orders.url, tmp_path / "large") == "0 large orders\n"
    assert items(tmp_path / "large") == ["gold", "silver"]
