"""What the demo's tailer was handed, written down.

Each batch is one line of one file: the rows' identity and the Offset after them. Position and
output are one write, so that a kill at any moment loses nothing and repeats nothing: a line is
there whole or, torn at the end of the file, not at all.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from streamlake import Batch, Offset
from streamlake.cli.demo.orders import identify


class Delivery(msgspec.Struct, frozen=True):
    """What one batch delivered, and where to go on after it."""

    offset: str
    """The Offset's JSON."""
    customers: list[str]
    sequences: list[int]
    latencies_ms: list[int]
    """From the creation of each event to its delivery."""
    bus_latency_ms: int
    """From the commit of the batch to its delivery."""
    delivered_ms: int
    """When, in milliseconds since the Unix epoch."""


class DeliveryReader:
    """Reads deliveries as they are written, each once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.position = 0
        """Bytes of the file that were read: whole lines only."""
        self._decoder = msgspec.json.Decoder(Delivery)

    def new(self) -> Iterator[Delivery]:
        """The deliveries since the last call; a torn last line is left for later."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self.position)
            whole, newline, _torn = file.read().rpartition(b"\n")
        self.position += len(whole) + len(newline)
        for line in whole.splitlines():
            yield self._decoder.decode(line)


class DeliveryLog:
    """The file of deliveries, from the tailer's side."""

    def __init__(self, path: Path) -> None:
        reader = DeliveryReader(path)
        whole = list(reader.new())
        self.offset = Offset.from_json(whole[-1].offset) if whole else None
        """Where to go on; None at the beginning."""
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.ftruncate(self._file, reader.position)

    def write(self, delivery: Delivery) -> None:
        """Add one delivery, durably."""
        line = msgspec.json.encode(delivery) + b"\n"
        while line:
            line = line[os.write(self._file, line) :]
        os.fsync(self._file)


def delivered(batch: Batch, now_ms: int) -> Delivery:
    """A batch as it is written down."""
    events: Any = identify(batch.data["value"])
    created_ms = batch.data["timestamp"].cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
    latencies_ms: Any = pc.subtract(now_ms, created_ms)
    if batch.offset is None or batch.timestamp_ms is None:
        raise TypeError("a tail's batch has an offset and a time")
    return Delivery(
        offset=batch.offset.to_json(),
        customers=events["customer"].to_pylist(),
        sequences=events["sequence"].to_pylist(),
        latencies_ms=latencies_ms.to_pylist(),
        bus_latency_ms=now_ms - batch.timestamp_ms,
        delivered_ms=now_ms,
    )
