"""``streamlake bridge``: Kafka topics into a table, exactly once."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from streamlake import SYSTEM_CLOCK
from streamlake.cli import terminal
from streamlake.cli.bridge_progress import ProgressLine
from streamlake.cli.bridging import BridgeWork, carry
from streamlake.cli.engine import Engine, choose_engine
from streamlake.cli.kafka_config import kafka_settings
from streamlake.cli.options import AsJson, StorageOptions, Until, key_values, needing_extras


class Start(StrEnum):
    """Where a bridge begins the first time."""

    EARLIEST = "earliest"
    LATEST = "latest"


def bridge(
    *,
    bootstrap_servers: Annotated[
        str, typer.Option(metavar="HOST:PORT,...", help="Kafka's brokers.", show_default=False)
    ],
    topic: Annotated[list[str], typer.Option(help="May be repeated.", show_default=False)],
    table: Annotated[
        str,
        typer.Option(
            metavar="TABLE",
            help="A path or URL; created with the columns of a Kafka message if there is none.",
            show_default=False,
        ),
    ],
    app_id: Annotated[
        str,
        typer.Option(
            help="The bridge's name for life: the table remembers under it how far it has come.",
            show_default=False,
        ),
    ],
    engine: Annotated[
        Engine | None,
        typer.Option(
            help="Spark, or this process alone. Default: spark where Java and PySpark are.",
            show_default=False,
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Spark's checkpoint folder. Nothing depends on it; default: a temporary one.",
            show_default=False,
        ),
    ] = None,
    start: Annotated[
        Start,
        typer.Option(
            help="Where partitions begin that the table has no marker of: the first time."
        ),
    ] = Start.EARLIEST,
    until: Annotated[
        Until, typer.Option(help="End where the topics end now, or go on forever.")
    ] = Until.FOREVER,
    max_rows: Annotated[
        int, typer.Option(min=1, help="The most rows of a commit, about.")
    ] = 100_000,
    linger_ms: Annotated[
        int, typer.Option(min=0, help="How long rows may wait for others, for larger commits.")
    ] = 200,
    kafka_config: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="A setting of Kafka's client (librdkafka); ${NAME} is taken from the environment. "
            "May be repeated.",
            show_default=False,
        ),
    ] = None,
    kafka_config_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The same, a line each: the place for secrets.",
            envvar="STREAMLAKE_KAFKA_CONFIG_FILE",
            show_default=False,
        ),
    ] = None,
    spark_conf: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="A setting of Spark, as spark.master; may be repeated.",
            show_default=False,
        ),
    ] = None,
    storage_option: StorageOptions = None,
    as_json: AsJson = False,
) -> None:
    """Carry Kafka topics into a table, exactly once, through crashes and lost checkpoints.

    Example: `streamlake bridge --bootstrap-servers localhost:9092 --topic orders
    --table /data/orders --app-id orders-ingest`

    Ctrl-C and SIGTERM end it in good order; kill -9 does no harm.
    """
    choice = choose_engine(engine)
    if choice.reason:
        terminal.note(f"Without Spark, in this process alone: {choice.reason}")
    work = BridgeWork(
        kafka=kafka_settings(bootstrap_servers, kafka_config, kafka_config_file),
        topics=tuple(topic),
        table=table,
        app_id=app_id,
        storage_options=key_values(storage_option, option="--storage-option"),
        start=start.value,
        until_latest=until is Until.LATEST,
        max_rows=max_rows,
        linger_ms=linger_ms,
        checkpoint=checkpoint,
        spark_conf=key_values(spark_conf, option="--spark-conf"),
    )
    with needing_extras(), ProgressLine(clock=SYSTEM_CLOCK, as_json=as_json) as progress:
        carry(work, choice.engine, progress, clock=SYSTEM_CLOCK)
