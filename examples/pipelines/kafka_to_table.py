"""Orders from Kafka, as JSON, into a table with typed columns: one process, exactly once.

    python kafka_to_table.py localhost:9092 orders /data/orders

Kill it at any moment and start it again: the table knows which offsets it has. It ends where the
topic ends now; leave out ``stop="latest"`` for one that goes on.
"""

import sys

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json

import streamlake as sl
from streamlake_kafka import KafkaSource

ORDERS = pa.schema(
    [pa.field("id", pa.int64()), pa.field("item", pa.string()), pa.field("price", pa.float64())]
)


def decode(messages: pa.Table) -> pa.Table:
    """The orders in a batch of messages, parsed at once; deleted keys (null values) are dropped."""
    values = messages["value"].drop_null().combine_chunks()
    if not len(values):
        return ORDERS.empty_table()
    lines = pc.binary_join(pa.ListArray.from_arrays([0, len(values)], values), b"\n")
    options = json.ParseOptions(explicit_schema=ORDERS, unexpected_field_behavior="ignore")
    return json.read_json(pa.BufferReader(lines[0].as_buffer()), parse_options=options)


def main(servers: str, topic: str, url: str) -> None:
    """Carry what the topic holds now into the table, which is made if there is none."""
    source = KafkaSource({"bootstrap.servers": servers}, topics=[topic], stop="latest")
    sink = sl.TableSink(url, app_id="orders-ingest", schema=ORDERS)
    result = sl.Pipeline(source, sink, transform=decode).run()
    print(f"{result.rows} orders in {result.batches} commits")


if __name__ == "__main__":
    main(*sys.argv[1:])
