"""From one table to another, filtered: exactly once.

    python table_to_table.py /data/orders /data/large_orders

The position in the first table is a marker in the second, in the same commit as the rows. Kill it
at any moment, or start it twice: nothing is lost, nothing comes twice.
"""

import sys

import pyarrow as pa
import pyarrow.compute as pc

import streamlake as sl

LARGE = 100.0


def large(orders: pa.Table) -> pa.Table:
    """The orders from ``LARGE`` on."""
    return orders.filter(pc.field("price") >= LARGE)


def main(orders: str, large_orders: str) -> None:
    """Carry what is new; the second table is made if there is none."""
    table = sl.Table.open(orders)
    source = sl.TableSource(table, stop="latest")
    sink = sl.TableSink(large_orders, app_id="large-orders", schema=table.schema)
    result = sl.Pipeline(source, sink, transform=large).run()
    print(f"{result.rows} large orders")


if __name__ == "__main__":
    main(*sys.argv[1:])
