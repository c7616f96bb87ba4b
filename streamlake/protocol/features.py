"""Which tables may be read and written (PROTOCOL.md, "Table Features").

A feature that a table merely lists does no harm while it is not active; one that is active and not
supported is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from streamlake.errors import UnsupportedFeatureError
from streamlake.protocol.actions import Metadata, Protocol
from streamlake.protocol.properties import check_properties

READER_VERSION_OF_FEATURES = 3
WRITER_VERSION_OF_FEATURES = 7

READABLE = frozenset({"timestampNtz", "vacuumProtocolCheck", "columnMapping", "deletionVectors"})
"""Reader features that may be listed. Column mapping in use and files with deletion vectors are refused
where they are met."""
_LEGACY_WRITER_FEATURES: tuple[tuple[int, str], ...] = (
    (2, "appendOnly"),
    (2, "invariants"),
    (3, "checkConstraints"),
    (4, "changeDataFeed"),
    (4, "generatedColumns"),
    (5, "columnMapping"),
    (6, "identityColumns"),
)
WRITABLE = frozenset({"appendOnly", "timestampNtz", "vacuumProtocolCheck", "domainMetadata"})
"""Writer features that are honoured, or ask nothing of an append or a rewrite."""
_ACTIVE_BY_PROPERTY = {
    "columnMapping": ("delta.columnMapping.mode", "none"),
    "inCommitTimestamp": ("delta.enableInCommitTimestamps", "false"),
    "rowTracking": ("delta.enableRowTracking", "false"),
    "icebergCompatV1": ("delta.enableIcebergCompatV1", "false"),
    "icebergCompatV2": ("delta.enableIcebergCompatV2", "false"),
}
_ACTIVE_BY_COLUMN = {
    "invariants": "delta.invariants",
    "generatedColumns": "delta.generationExpression",
    "identityColumns": "delta.identity.start",
}
_HARMLESS_TO_APPENDS = frozenset({"changeDataFeed", "deletionVectors", "allowColumnDefaults"})


def check_readable(protocol: Protocol, *, where: str, metadata: Metadata | None = None) -> None:
    """Refuse a table that can't be read rightly.

    Raises:
        UnsupportedFeatureError: Naming what it needs.
    """
    needed: list[str] = []
    if protocol.min_reader_version > READER_VERSION_OF_FEATURES:
        needed.append(f"reader version {protocol.min_reader_version}")
    if protocol.min_reader_version == READER_VERSION_OF_FEATURES:
        needed += sorted(set(protocol.reader_features or ()) - READABLE)
    if metadata is not None and _is_active("columnMapping", metadata):
        needed.append("columnMapping")
    if needed:
        raise _refusal("read", needed, protocol, where)


def check_writable(protocol: Protocol, metadata: Metadata, *, where: str) -> None:
    """Refuse a table that can't be written rightly.

    Raises:
        UnsupportedFeatureError: Naming what it needs.
    """
    if protocol.min_writer_version > WRITER_VERSION_OF_FEATURES:
        needed = [f"writer version {protocol.min_writer_version}"]
    else:
        needed = [f for f in _writer_features(protocol) if not _may_write(f, metadata)]
    if needed:
        raise _refusal("written", needed, protocol, where)
    check_readable(protocol, where=where, metadata=metadata)


def protocol_for(schema: pa.Schema, properties: Mapping[str, str]) -> Protocol:
    """The least protocol that a new table needs.

    Raises:
        InvalidInputError: A property with a value that it can't have.
    """
    check_properties(properties)
    if not any(_has_ntz(field.type) for field in schema):
        return Protocol(1, 2)
    return Protocol(
        READER_VERSION_OF_FEATURES,
        WRITER_VERSION_OF_FEATURES,
        ("timestampNtz",),
        ("appendOnly", "invariants", "timestampNtz"),
    )


def _writer_features(protocol: Protocol) -> Iterable[str]:
    if protocol.min_writer_version == WRITER_VERSION_OF_FEATURES:
        return protocol.writer_features or ()
    return [f for least, f in _LEGACY_WRITER_FEATURES if protocol.min_writer_version >= least]


def _may_write(feature: str, metadata: Metadata) -> bool:
    if feature in WRITABLE or feature in _HARMLESS_TO_APPENDS:
        return True
    known = feature in _ACTIVE_BY_PROPERTY or feature in _ACTIVE_BY_COLUMN
    return (known or feature == "checkConstraints") and not _is_active(feature, metadata)


def _is_active(feature: str, metadata: Metadata) -> bool:
    if feature == "checkConstraints":
        return any(key.startswith("delta.constraints.") for key in metadata.configuration)
    if feature in _ACTIVE_BY_COLUMN:
        return f'"{_ACTIVE_BY_COLUMN[feature]}"' in metadata.schema_string
    name, inactive = _ACTIVE_BY_PROPERTY[feature]
    return metadata.configuration.get(name, inactive).lower() != inactive


def _refusal(
    verb: str, needed: Iterable[str], protocol: Protocol, where: str
) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"The table can't be {verb}: it needs {', '.join(needed)}.",
        where=where,
        found=f"reader version {protocol.min_reader_version}, "
        f"writer version {protocol.min_writer_version}",
        remedy="Use an engine that supports it, or drop the feature from the table there "
        "(ALTER TABLE ... DROP FEATURE).",
    )


def _has_ntz(kind: pa.DataType) -> bool:
    if pa.types.is_timestamp(kind):
        return kind.tz is None
    return any(_has_ntz(kind.field(i).type) for i in range(kind.num_fields))
