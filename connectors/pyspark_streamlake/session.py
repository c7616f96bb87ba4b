"""A Spark session for programs of ours: local unless told otherwise, quiet, quick to answer."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from pyspark import SparkConf
from pyspark.sql import SparkSession

import streamlake as sl

LOOPBACK = "127.0.0.1"
LOGGING = f"-Dlog4j2.configurationFile=file:{Path(__file__).with_name('log4j2.properties')}"
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
CHECKPOINTING = "org.apache.spark.sql.execution.streaming.checkpointing"
SETTINGS: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.pollingDelay": "25ms",  # how often an idle query asks Kafka; 10ms is busy
    # Over TCP each task waits 40 ms for an acknowledgement that the system delays.
    "spark.python.unix.domain.socket.enabled": str(os.name == "posix").lower(),
    # Spark's default forks a process for each file of its checkpoint on a local disk.
    "spark.sql.streaming.checkpointFileManagerClass": (
        f"{CHECKPOINTING}.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
}
"""What holds unless the user sets it: markers in the table are what a bridge trusts, so Spark's
checkpoint may be quick rather than careful."""
LOCAL_SETTINGS: Mapping[str, str] = {
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
}
DEFAULT_MASTER = "local[*]"


@contextmanager
def local_session(conf: Mapping[str, str]) -> Iterator[SparkSession]:
    """A session while the block runs; what ``conf`` sets goes first.

    Its master is that of ``conf``, of the environment variable SPARK_MASTER, or ``local[*]``; a
    local one listens on the loopback address only. Python workers run this very interpreter unless
    PYSPARK_PYTHON says otherwise.

    Raises:
        InvalidInputError: This process has a session already.
    """
    if SparkSession.getActiveSession() is not None:
        raise sl.InvalidInputError(
            "This process has a Spark session already, and a program makes its own.",
            remedy="Use bridge_query(spark, ...) with the session that is there.",
        )
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = SparkConf(loadDefaults=False)
    master = conf.get("spark.master") or os.environ.get("SPARK_MASTER") or DEFAULT_MASTER
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)
        settings.setAll(list(LOCAL_SETTINGS.items()))
    settings.setAll([*SETTINGS.items(), *conf.items(), ("spark.master", master)])
    settings.set(JAVA_OPTIONS, f"{LOGGING} {conf.get(JAVA_OPTIONS, '')}".strip())
    spark = SparkSession.builder.config(conf=settings).appName("streamlake-bridge").getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def stop_signals() -> Iterator[Callable[[], bool]]:
    """While the block runs, SIGINT and SIGTERM only set what the yielded function tells.

    On another thread than the main one signals can't be caught, and it never tells.
    """
    told = threading.Event()

    def note(_number: int, _frame: FrameType | None) -> None:
        told.set()

    if threading.current_thread() is not threading.main_thread():
        yield told.is_set
        return
    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield told.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
