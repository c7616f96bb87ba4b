"""Programs that tests run as processes of their own, to kill them or to watch them end.

``python tests/spark_programs.py bridge|batches '{"..."}'``; each commit is told on stdout as one
line. With ``die`` they kill themselves right after the first, before Spark has noted the batch as
done.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

from pyspark_streamlake import BridgeEvent, BridgeOptions, ForeachBatchSink, run_bridge
from pyspark_streamlake.session import local_session
from spark_session import QUICK_JVM

CONF = {"spark.master": "local[2]", "spark.driver.extraJavaOptions": QUICK_JVM}


def tell(what: str, *, die: bool) -> None:
    """Say a line, and perhaps go as kill -9 does."""
    print(what, flush=True)  # noqa: T201 (the test reads it)
    if die:
        os.kill(os.getpid(), signal.SIGKILL)


def bridge(*, die: bool, **options: Any) -> None:
    """Carry topics into a table."""

    def on_event(event: BridgeEvent) -> None:
        tell(event.kind, die=die and event.kind == "committed")

    run_bridge(BridgeOptions(spark_conf=CONF, **options), on_event=on_event)


def batches(*, die: bool, arrivals: str, url: str, checkpoint: str) -> None:
    """Write a folder of JSON files, a file a batch."""
    with local_session(CONF) as spark:
        sink = ForeachBatchSink(url, app_id="agg")

        def write(rows: Any, batch_id: int) -> None:
            sink(rows, batch_id)
            tell("committed", die=die)

        reader = spark.readStream.schema("id bigint, name string").option("maxFilesPerTrigger", 1)
        writer = reader.json(arrivals).writeStream.foreachBatch(write)
        writer = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True)
        writer.start().awaitTermination()


if __name__ == "__main__":
    {"bridge": bridge, "batches": batches}[sys.argv[1]](**json.loads(sys.argv[2]))
