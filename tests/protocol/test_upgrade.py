"""The least protocol that a table needs when its metadata change."""

from __future__ import annotations

import json

import pytest

from streamlake.protocol import Metadata, Protocol, upgraded_protocol

PLAIN = Metadata("id")
LEGACY_4 = ("appendOnly", "changeDataFeed", "checkConstraints", "generatedColumns", "invariants")


def set_to(**configuration: str) -> Metadata:
    return Metadata("id", configuration={f"delta.{k}": v for k, v in configuration.items()})


def of_type(kind: str) -> Metadata:
    field = {"name": "c", "type": kind, "nullable": True, "metadata": {}}
    return Metadata("id", schema_string=json.dumps({"type": "struct", "fields": [field]}))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (Protocol(1, 2), PLAIN, None),
        (Protocol(1, 2), set_to(appendOnly="true"), None),
        (Protocol(1, 2), set_to(**{"constraints.positive": "c > 0"}), Protocol(1, 3)),
        (Protocol(2, 5), set_to(**{"columnMapping.mode": "name"}), None),
        (
            Protocol(1, 2),
            set_to(enableChangeDataFeed="true"),
            Protocol(1, 7, None, ("appendOnly", "changeDataFeed", "invariants")),
        ),
        (
            Protocol(1, 4),
            set_to(enableInCommitTimestamps="true"),
            Protocol(1, 7, None, tuple(sorted((*LEGACY_4, "inCommitTimestamp")))),
        ),
        (
            Protocol(2, 5),
            set_to(enableInCommitTimestamps="true"),
            Protocol(
                3,
                7,
                ("columnMapping",),
                tuple(sorted((*LEGACY_4, "columnMapping", "inCommitTimestamp"))),
            ),
        ),
        (
            Protocol(1, 5),
            set_to(**{"columnMapping.mode": "name"}),
            Protocol(2, 5),
        ),
        (
            Protocol(3, 7, ("deletionVectors",), ("deletionVectors",)),
            set_to(enableRowTracking="true"),
            Protocol(
                3, 7, ("deletionVectors",), ("deletionVectors", "domainMetadata", "rowTracking")
            ),
        ),
        (
            Protocol(3, 7, ("typeWidening-preview",), ("typeWidening-preview",)),
            set_to(enableTypeWidening="true"),
            None,
        ),
        (
            Protocol(1, 7, None, ("teleportation",)),
            of_type("timestamp_ntz"),
            Protocol(3, 7, ("timestampNtz",), ("teleportation", "timestampNtz")),
        ),
        (
            Protocol(1, 2),
            set_to(checkpointPolicy="v2"),
            Protocol(3, 7, ("v2Checkpoint",), ("appendOnly", "invariants", "v2Checkpoint")),
        ),
    ],
)
def test_it_rises_as_little_as_the_change_needs(before, after, expected):
    assert upgraded_protocol(before, PLAIN, after) == expected


def test_what_the_metadata_had_before_does_not_raise_it():
    ineffective = set_to(**{"columnMapping.mode": "name"})
    after = set_to(**{"columnMapping.mode": "name", "appendOnly": "true"})
    assert upgraded_protocol(Protocol(1, 2), ineffective, after) is None


def test_a_feature_is_added_by_name_and_none_is_taken_away():
    protocol = Protocol(3, 7, ("vacuumProtocolCheck",), ("vacuumProtocolCheck",))
    raised = upgraded_protocol(
        protocol, PLAIN, PLAIN, requested=frozenset({"clustering", "deletionVectors"})
    )
    assert raised == Protocol(
        3,
        7,
        ("deletionVectors", "vacuumProtocolCheck"),
        ("clustering", "deletionVectors", "domainMetadata", "vacuumProtocolCheck"),
    )
