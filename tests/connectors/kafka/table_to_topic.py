"""Follows a table into a topic, as a process of its own, until it is ended."""

from __future__ import annotations

import sys

import streamlake as sl
from streamlake_kafka import KafkaSink

if __name__ == "__main__":
    servers, topic, url = sys.argv[1:]
    sink = KafkaSink({"bootstrap.servers": servers}, topic=topic, app_id="out")
    sl.Pipeline(sl.TableSource(url, start="earliest"), sink).run()
