"""confluent-kafka, or the error that says how to get it."""

from __future__ import annotations

try:
    import confluent_kafka as ck
except ImportError as error:
    raise ImportError(
        "The Kafka source needs confluent-kafka: pip install 'streamlake[kafka]' on the driver and "
        "on every executor."
    ) from error

__all__ = ["ck"]
