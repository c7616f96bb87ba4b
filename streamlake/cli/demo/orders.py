"""The events of the demo: orders, each with the number that it has among its customer's."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pa_json

from streamlake.clock import Clock

CUSTOMERS = 200
ITEMS = ("kettle", "lamp", "notebook", "bicycle", "teapot", "umbrella")
_COLUMNS: dict[str, pa.DataType] = {"customer": pa.string(), "sequence": pa.int64()}
EVENT_SCHEMA = pa.schema(_COLUMNS)
"""What of an event identifies it."""


class Order(msgspec.Struct, frozen=True):
    """One event; its key in Kafka is ``customer``."""

    customer: str
    sequence: int
    """1, 2, 3, ... among the customer's orders."""
    item: str
    amount: float
    created_ms: int
    """Milliseconds since the Unix epoch."""


class OrderBook:
    """Makes orders and remembers how many each customer has placed."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._placed: dict[str, int] = {}

    @property
    def placed(self) -> Mapping[str, int]:
        """The last sequence number of each customer."""
        return self._placed

    def next_order(self) -> Order:
        """An order of a customer drawn by chance."""
        customer = f"customer-{int(self._clock.jitter() * CUSTOMERS):03d}"
        sequence = self._placed.get(customer, 0) + 1
        self._placed[customer] = sequence
        return Order(
            customer=customer,
            sequence=sequence,
            item=ITEMS[sequence % len(ITEMS)],
            amount=round(self._clock.jitter() * 100, 2),
            created_ms=self._clock.now_ms(),
        )


def identify(values: pa.ChunkedArray[Any]) -> pa.Table:
    """Customer and sequence number of each event, from its bytes; in order."""
    if len(values) == 0:
        return EVENT_SCHEMA.empty_table()
    texts: Any = values.cast(pa.string()).combine_chunks()
    whole = pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts)
    joined: Any = pc.binary_join(whole, "\n")
    lines = joined[0].as_buffer()
    parse = pa_json.ParseOptions(explicit_schema=EVENT_SCHEMA, unexpected_field_behavior="ignore")
    read = pa_json.ReadOptions(use_threads=False, block_size=lines.size + 1)
    return pa_json.read_json(io.BytesIO(lines), read_options=read, parse_options=parse)
