"""Keep totals of a table of orders in SQLite: each order counts exactly once.

    python tail_with_position.py /data/orders totals.db

The totals and the position in the table's stream change in one transaction, so a crash at any
moment neither loses an order nor counts one twice. It ends at the latest version; leave out
``stop="latest"`` for one that goes on.
"""

import sqlite3
import sys
from contextlib import closing

import streamlake as sl

TABLES = """
CREATE TABLE IF NOT EXISTS totals (item TEXT PRIMARY KEY, orders INTEGER, revenue REAL);
CREATE TABLE IF NOT EXISTS position (id INTEGER PRIMARY KEY CHECK (id = 1), offset TEXT);
"""
ADD = """
INSERT INTO totals VALUES (:item, :price_count, :price_sum) ON CONFLICT (item) DO UPDATE
SET orders = orders + excluded.orders, revenue = revenue + excluded.revenue
"""
MOVE = "INSERT OR REPLACE INTO position VALUES (1, ?)"


def main(url: str, database: str) -> None:
    """Bring the totals up to the table's latest version."""
    with closing(sqlite3.connect(database)) as totals:
        totals.executescript(TABLES)
        stored = totals.execute("SELECT offset FROM position").fetchone()
        start = sl.Offset.from_json(stored[0]) if stored else "earliest"
        with closing(sl.Table.open(url).tail(start=start, stop="latest")) as batches:
            for batch in batches:
                store(totals, batch)


def store(totals: sqlite3.Connection, batch: sl.Batch) -> None:
    """Add one batch, and move the position past it, in one transaction."""
    sums = batch.data.group_by("item").aggregate([("price", "count"), ("price", "sum")])
    with totals:
        totals.executemany(ADD, sums.to_pylist())
        totals.execute(MOVE, [batch.offset.to_json()])


if __name__ == "__main__":
    main(*sys.argv[1:])
