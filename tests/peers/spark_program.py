"""Delta on Spark as a process: requests come as JSON lines, answers go as JSON lines.

Runs in an environment of its own, apart from streamlake's: ``python spark_program.py JARS``. A
request has an ``id`` and either ``sql`` (statements) or ``read`` (a table's path, with ``version``
and ``into``, the Arrow file to write). Its answer has the ``id``, and ``error`` where it failed.
Answers come in any order; the end of the input ends the program.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

THREADS = 2
SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Hundreds of tables, each asked once or twice: Delta and Spark need not remember them.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
    "-Ddelta.log.cacheSize=8",
    "spark.driver.memory": "2g",
    "spark.sql.ui.retainedExecutions": "1",
    "spark.ui.retainedJobs": "1",
    "spark.ui.retainedStages": "1",
    "spark.ui.retainedTasks": "1",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Many small tables, each of another schema: compiling a query costs more than running it.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.default.parallelism": "2",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
    # Retention of no time, and mapping taken off: for tables that are made to be odd.
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
}


def start(jars: str) -> SparkSession:
    """A session with Delta's extension."""
    builder = SparkSession.builder.master("local[2]").config("spark.jars", jars)
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def carry_out(spark: SparkSession, request: dict[str, Any]) -> None:
    """Do what a request asks for."""
    if "sql" in request:
        session = spark.newSession()  # what a script sets is its own
        for statement in request["sql"]:
            session.sql(statement).collect()
        return
    reader = spark.read.format("delta")
    if request["version"] is not None:
        reader = reader.option("versionAsOf", request["version"])
    rows = reader.load(request["read"]).toArrow()
    with pa.OSFile(request["into"], "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
        writer.write_table(rows)


def answer(spark: SparkSession, line: str) -> dict[str, Any]:
    """The answer to one line."""
    request = json.loads(line)
    try:
        carry_out(spark, request)
    except Exception as error:  # noqa: BLE001 -- the asker decides
        return {"id": request["id"], "error": f"{type(error).__name__}: {error}"[:4000]}
    return {"id": request["id"]}


def main() -> None:
    """Answer until the input ends."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever the JVM prints is no answer
    lock = threading.Lock()
    spark = start(sys.argv[1])

    def serve(line: str) -> None:
        found = answer(spark, line)
        with lock:
            answers.write(json.dumps(found) + "\n")

    answers.write('{"ready": true}\n')
    with ThreadPoolExecutor(THREADS) as executor:
        for line in sys.stdin:
            executor.submit(serve, line)
    spark.stop()


if __name__ == "__main__":
    main()
