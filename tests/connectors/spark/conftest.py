"""What the tests of the Spark connectors share."""

from __future__ import annotations

from pathlib import Path

import pytest

import streamlake as sl
from kafka_broker import free_ports
from spark_session import spark
from streamlake_kafka import kafka_schema

__all__ = ["spark"]


@pytest.fixture
def kafka_table(tmp_path: Path) -> sl.Table:
    """An empty table with the columns of a Kafka message."""
    return sl.Table.create(tmp_path / "table", schema=kafka_schema(include_headers=False))


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A folder for Spark's checkpoint that is not there yet."""
    return tmp_path / "checkpoint"


@pytest.fixture
def free_port_servers() -> str:
    """Where no broker listens."""
    (port,) = free_ports(1)
    return f"127.0.0.1:{port}"
