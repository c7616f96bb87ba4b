"""Logs that other engines wrote; STREAMLAKE_GOLDEN names the folder that holds them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from streamlake.errors import CorruptTableError
from streamlake.protocol import (
    AddFile,
    Metadata,
    decode_actions,
    decode_partition_value,
    encode_actions,
    schema_from_json,
    schema_to_json,
)

GOLDEN = os.environ.get("STREAMLAKE_GOLDEN", "")
LOGS = sorted(Path(GOLDEN).rglob("_delta_log/*.json")) if GOLDEN else []
pytestmark = pytest.mark.skipif(not LOGS, reason="STREAMLAKE_GOLDEN names no folder of tables")


@pytest.mark.parametrize("log", LOGS, ids=lambda log: str(log.relative_to(GOLDEN)))
def test_every_action_is_read_and_written_back(log):
    actions = decode_actions(log.read_bytes())
    assert actions
    assert decode_actions(encode_actions(actions)) == actions


@pytest.mark.parametrize("log", LOGS, ids=lambda log: str(log.relative_to(GOLDEN)))
def test_every_schema_and_partition_value_is_read(log):
    actions = decode_actions(log.read_bytes())
    for metadata in (action for action in actions if isinstance(action, Metadata)):
        if not metadata.schema_string:
            with pytest.raises(CorruptTableError, match="schema"):
                schema_from_json(metadata.schema_string)
            continue
        schema = schema_from_json(metadata.schema_string)
        assert schema_from_json(schema_to_json(schema)).equals(schema, check_metadata=True)
        for add in (action for action in actions if isinstance(action, AddFile)):
            for name, value in add.partition_values.items():
                if name in schema.names:
                    decode_partition_value(value, schema.field(name).type)
