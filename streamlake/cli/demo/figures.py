"""What the demo counts while it runs."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streamlake import Table
from streamlake.cli.demo.delivery import Delivery, DeliveryReader

RECENT_MS = 5_000
"""How far back the live view's latencies look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Half and nearly all were faster, in milliseconds; None where there were none."""

    p50_ms: float | None
    p99_ms: float | None

    @classmethod
    def of(cls, milliseconds: pa.Int64Array) -> Latency:
        """Of the values given."""
        p50, p99 = pc.quantile(milliseconds, q=[0.5, 0.99]).to_pylist()  # type: ignore[arg-type]
        return cls(p50_ms=p50, p99_ms=p99)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """A time in which the bridge was away, in milliseconds since the Unix epoch."""

    from_ms: int
    to_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The demo at one moment."""

    elapsed_s: float
    produced: int
    """Events that Kafka has confirmed."""
    committed: int
    """Rows of the table."""
    delivered: int
    """Rows that the tailer was handed."""
    commits: int
    files: int
    end_to_end: Latency
    """From an event's creation to its delivery, of late."""
    bus: Latency
    """From a row's commit to its delivery, of late."""


class Counter:
    """Counts rows in the table and deliveries, each look costing what is new."""

    def __init__(self, table: Table, deliveries: Path) -> None:
        self._table = table
        self._reader = DeliveryReader(deliveries)
        self._recent: deque[Delivery] = deque()
        self.deliveries: list[Delivery] = []
        """All that were made, in order."""
        self._delivered = 0

    def look(self, *, elapsed_s: float, produced: int) -> Figures:
        """The figures now."""
        for delivery in self._reader.new():
            self.deliveries.append(delivery)
            self._recent.append(delivery)
            self._delivered += len(delivery.sequences)
        newest_ms = self._recent[-1].delivered_ms if self._recent else 0
        while self._recent and self._recent[0].delivered_ms < newest_ms - RECENT_MS:
            self._recent.popleft()
        snapshot = self._table.snapshot()
        files = snapshot.files()
        return Figures(
            elapsed_s=elapsed_s,
            produced=produced,
            committed=sum(add.num_records or 0 for add in files),
            delivered=self._delivered,
            commits=snapshot.version,  # version 0 is the creation
            files=len(files),
            end_to_end=end_to_end(self._recent),
            bus=bus(self._recent),
        )


def end_to_end(deliveries: Sequence[Delivery], *, without: Sequence[Outage] = ()) -> Latency:
    """From creation to delivery, each event counted, but those that had to wait for ``without``."""
    times: Any = pa.array([d.delivered_ms for d in deliveries for _ in d.latencies_ms], pa.int64())
    waits: Any = pa.array([value for d in deliveries for value in d.latencies_ms], pa.int64())
    created = pc.subtract(times, waits)
    for outage in without:
        delivered_before = pc.less(times, pa.scalar(outage.from_ms))
        kept = pc.or_(delivered_before, pc.greater(created, pa.scalar(outage.to_ms)))
        waits, created, times = waits.filter(kept), created.filter(kept), times.filter(kept)
    return Latency.of(waits)


def bus(deliveries: Sequence[Delivery]) -> Latency:
    """From commit to delivery, each batch counted."""
    return Latency.of(pa.array([d.bus_latency_ms for d in deliveries], pa.int64()))
