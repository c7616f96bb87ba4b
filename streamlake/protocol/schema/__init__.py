"""The schema of a table, as Delta's JSON and as Arrow (PROTOCOL.md, "Schema Serialization Format").

``codec`` translates in both directions without loss, ``normalize`` brings a user's Arrow schema to
the one that a table can have, ``difference`` tells how two schemas differ in sentences.
"""

from streamlake.protocol.schema.codec import (
    MAX_SCHEMA_DEPTH,
    field_metadata,
    schema_from_json,
    schema_to_json,
    with_field_metadata,
)
from streamlake.protocol.schema.difference import schema_difference
from streamlake.protocol.schema.normalize import normalize_schema

__all__ = [
    "MAX_SCHEMA_DEPTH",
    "field_metadata",
    "normalize_schema",
    "schema_difference",
    "schema_from_json",
    "schema_to_json",
    "with_field_metadata",
]
