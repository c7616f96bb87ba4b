"""A real Spark for the tests: one classic session a test process, on the loopback address."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from kafka_jars import JavaMissingError, find_java
from pyspark_streamlake.session import LOGGING

QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A JVM that lives for a minute does not pay back what its best compiler costs."""
QUERY_TIMEOUT_S = 120


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session that the tests share."""
    try:
        find_java()
    except JavaMissingError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no Spark: {error}")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", f"{LOGGING} {QUICK_JVM}")
        .config("spark.python.unix.domain.socket.enabled", "true")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.streaming.noDataMicroBatches.enabled", "false")
        .getOrCreate()
    )
    yield session
    session.stop()


def kafka_rows(spark: SparkSession, servers: str, **options: Any) -> DataFrame:
    """A stream of rows from Kafka, with the options of the source as keywords."""
    reader = spark.readStream.format("streamlake_kafka")
    return reader.option("kafka.bootstrap.servers", servers).options(**options).load()


def drain(
    rows: DataFrame, sink: Callable[[DataFrame, int], object], checkpoint: Path | str
) -> None:
    """Run a query over what is there now, to its end; raises what it failed with."""
    query = (
        rows.writeStream.foreachBatch(sink)  # type: ignore[arg-type] # what it returns is ignored
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    try:
        assert query.awaitTermination(QUERY_TIMEOUT_S), "the query did not end"
    finally:
        query.stop()
