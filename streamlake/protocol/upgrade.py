"""The least protocol that a table needs (PROTOCOL.md, "Protocol Evolution", "Table Features")."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from streamlake.protocol import properties as props
from streamlake.protocol.actions import (
    MAX_READER_VERSION,
    MAX_WRITER_VERSION,
    Metadata,
    Protocol,
)
from streamlake.protocol.features import (
    features_for_readers,
    features_in_use,
    features_of,
    legacy_features,
    writer_features,
)
from streamlake.protocol.schema import schema_to_json

_NEW_TABLE = Protocol(1, 2)
_LEGACY = (Protocol(1, 2), Protocol(1, 3), Protocol(1, 4), Protocol(2, 5), Protocol(2, 6))
"""The protocols that a table without a list of features may have, the least first."""
_NEEDS = {
    "catalogManaged": ("inCommitTimestamp", "vacuumProtocolCheck"),
    "clustering": ("domainMetadata",),
    "icebergCompatV1": ("columnMapping",),
    "icebergCompatV2": ("columnMapping",),
    "rowTracking": ("domainMetadata",),
    "variantShredding": ("variantType",),
}
"""Features that others must come with."""


def protocol_for(schema: pa.Schema, properties: Mapping[str, str]) -> Protocol:
    """The least protocol that a new table needs, whether or not it is supported here.

    Args:
        schema: As ``normalize_schema`` gives it.
        properties: The table's. ``delta.feature.<name> = supported`` asks for a feature,
            ``delta.minWriterVersion`` for all that the version implies.

    Raises:
        InvalidInputError: A property of Delta's that does not exist or has a value that it can't.
    """
    props.check_properties(properties)
    features = set(features_in_use(properties, schema_to_json(schema)))
    features |= requested_features(properties)
    if features <= features_of(_NEW_TABLE):
        return _NEW_TABLE
    return _least(_with_needs(features), _NEW_TABLE)


def upgraded_protocol(
    protocol: Protocol,
    before: Metadata,
    after: Metadata,
    *,
    requested: frozenset[str] = frozenset(),
) -> Protocol | None:
    """The least protocol for a table whose metadata changes; None where it may stay as it is.

    What ``before`` has already is not looked at: a property that the protocol does not support has
    no meaning, and another change gives it none. Of a table of an old version every feature that
    the version implies is kept (it may have been in use), and the version only rises to the next
    one that implies nothing else; where there is no such version the features are listed.

    Args:
        protocol: The table's.
        before: The table's metadata.
        after: What they become.
        requested: Features that are asked for by name.
    """
    told = features_in_use(after.configuration, after.schema_string) - features_in_use(
        before.configuration, before.schema_string
    )
    supported = features_of(protocol)
    needed = _with_needs(told | requested)
    if needed <= supported:
        return None
    features = frozenset(writer_features(protocol)) | needed
    return _least(features, protocol)


def requested_features(properties: Mapping[str, str]) -> frozenset[str]:
    """What properties that are no part of the table's metadata ask of its protocol."""
    found = {
        name.removeprefix(props.FEATURE_PREFIX)
        for name in properties
        if name.startswith(props.FEATURE_PREFIX)
    }
    writer = props.requested_writer_version(properties)
    return frozenset(found | legacy_features(writer or 0))


def _with_needs(features: frozenset[str] | set[str]) -> frozenset[str]:
    more = {need for name in features for need in _NEEDS.get(name, ())}
    return frozenset(features | more)


def _least(features: frozenset[str], least: Protocol) -> Protocol:
    """The protocol from ``least`` on that supports exactly ``features``.

    It lists them where no old version implies just these; those of readers only where there are
    any.
    """
    if least.min_writer_version < MAX_WRITER_VERSION:
        for legacy in _LEGACY:
            if (
                features == legacy_features(legacy.min_writer_version)
                and legacy.min_reader_version >= least.min_reader_version
            ):
                return legacy
    reader_version = least.min_reader_version
    for_readers = tuple(
        sorted(features_for_readers(features) | frozenset(least.reader_features or ()))
    )
    lists = bool(for_readers) or reader_version == MAX_READER_VERSION
    return Protocol(
        min_reader_version=MAX_READER_VERSION if lists else reader_version,
        min_writer_version=MAX_WRITER_VERSION,
        reader_features=for_readers if lists else None,
        writer_features=tuple(sorted(features)),
    )
