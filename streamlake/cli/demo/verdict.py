"""Was everything delivered, once, in order? Everything is read back to say so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streamlake.cli.demo.delivery import Delivery
from streamlake.cli.demo.orders import EVENT_SCHEMA


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What was found at one place, against what was produced."""

    found: int
    lost: int
    repeated: int
    unknown: int
    """Events that nobody produced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What came of a run."""

    produced: int
    in_table: int
    delivered: int
    lost: int
    """Events missing in the table, and events missing among the delivered, together."""
    repeated: int
    """Likewise: each time beyond the first."""
    unknown: int
    """Likewise: events that nobody produced."""
    out_of_order: int
    """Deliveries of an event after a later one of the same customer."""

    @property
    def holds(self) -> bool:
        """Everything was delivered once and in order."""
        wrong = self.lost + self.repeated + self.unknown + self.out_of_order
        return wrong == 0 and self.produced == self.in_table == self.delivered > 0

    def to_json(self) -> dict[str, Any]:
        """The figures by name."""
        return {**asdict(self), "holds": self.holds}


def judge(placed: Mapping[str, int], in_table: pa.Table, delivered: pa.Table) -> Verdict:
    """Compare what was produced with the table and with the deliveries.

    Args:
        placed: The last sequence number of each customer; all from 1 on were produced.
        in_table: Rows of ``EVENT_SCHEMA``, in any order.
        delivered: Rows of ``EVENT_SCHEMA``, in the order of delivery.
    """
    table = compare(placed, in_table)
    delivery = compare(placed, delivered)
    return Verdict(
        produced=sum(placed.values()),
        in_table=table.found,
        delivered=delivery.found,
        lost=table.lost + delivery.lost,
        repeated=table.repeated + delivery.repeated,
        unknown=table.unknown + delivery.unknown,
        out_of_order=count_out_of_order(delivered),
    )


def compare(placed: Mapping[str, int], events: pa.Table) -> Comparison:
    """How ``events`` differ from all that were placed."""
    last = pa.table(
        {
            "customer": pa.array(list(placed), pa.string()),
            "last": pa.array(list(placed.values()), pa.int64()),
        }
    )
    joined = events.join(last, "customer", join_type="left outer")
    highest: Any = pc.coalesce(joined["last"], pa.scalar(0, pa.int64()))
    known: Any = pc.less_equal(joined["sequence"], highest)
    counted = joined.filter(known).group_by(["customer", "sequence"]).aggregate([([], "count_all")])
    once = counted.num_rows
    every_time = pc.sum(counted["count_all"]).as_py() or 0
    return Comparison(
        found=events.num_rows,
        lost=sum(placed.values()) - once,
        repeated=every_time - once,
        unknown=events.num_rows - every_time,
    )


def count_out_of_order(delivered: pa.Table) -> int:
    """How often an event came right after one of the same customer with a higher number."""
    place = pa.array(range(delivered.num_rows), pa.int64())
    ordered = delivered.append_column("place", place).sort_by(
        [("customer", "ascending"), ("place", "ascending")]
    )
    if ordered.num_rows == 0:
        return 0
    here, before = ordered.slice(1), ordered.slice(0, ordered.num_rows - 1)
    same = pc.equal(here["customer"], before["customer"])
    back = pc.less(here["sequence"], before["sequence"])
    count: int | None = pc.sum(pc.and_(same, back).cast(pa.int64())).as_py()
    return count or 0


def events_of(deliveries: Sequence[Delivery]) -> pa.Table:
    """The events of all deliveries, in order."""
    return pa.table(
        {
            "customer": [name for delivery in deliveries for name in delivery.customers],
            "sequence": [number for delivery in deliveries for number in delivery.sequences],
        },
        schema=EVENT_SCHEMA,
    )
