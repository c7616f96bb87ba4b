"""A member of a consumer group, run as a process of its own: topic to table until it is ended."""

from __future__ import annotations

import json
import sys

import streamlake as sl
from streamlake_kafka import KafkaSource, kafka_schema

if __name__ == "__main__":
    config, topic, url = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3]
    source = KafkaSource(config, topics=[topic], group=True)
    sink = sl.TableSink(url, app_id="ingest", schema=kafka_schema())
    sl.Pipeline(source, sink, batching=sl.Batching(linger_ms=30)).run()
