"""Which tables may be read and written (PROTOCOL.md, "Table Features").

A table supports the features that its protocol lists or whose version implies them. A feature is in
use only where the metadata says so as well; one that is supported but not in use asks for nothing.
What is in use and not supported here is refused by name, and so is every unknown name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from streamlake.errors import CorruptTableError, UnsupportedFeatureError
from streamlake.protocol import properties as props
from streamlake.protocol.actions import (
    MAX_READER_VERSION,
    MAX_WRITER_VERSION,
    Metadata,
    Protocol,
)
from streamlake.protocol.schema.facts import SchemaFacts, schema_facts
from streamlake.protocol.schema.widening import TYPE_CHANGES, keeps_values

_Use = Callable[[Mapping[str, str], SchemaFacts], bool]
"""Whether metadata puts a feature to use: its configuration and what its schema holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Feature:
    in_use: _Use
    for_readers: bool = False
    """Whether readers, too, must know it."""
    can_read: bool = True
    """Whether tables that use it can be read here."""
    can_write: bool = True
    """Whether tables that use it can be written here: appended to, and rewritten without change."""


def _always(_: Mapping[str, str], __: SchemaFacts) -> bool:
    return True


def _flag(name: str) -> _Use:
    return lambda configuration, _: props.flag(configuration, name)


def _column_key(key: str) -> _Use:
    return lambda _, facts: any(found.startswith(key) for found in facts.metadata_keys)


def _type_name(name: str) -> _Use:
    return lambda _, facts: name in facts.type_names


def _has_constraints(configuration: Mapping[str, str], _: SchemaFacts) -> bool:
    return any(map(props.is_constraint, configuration))


def _maps_columns(configuration: Mapping[str, str], _: SchemaFacts) -> bool:
    return configuration.get(props.COLUMN_MAPPING_MODE, "none").lower() != "none"


def _tracks_rows(configuration: Mapping[str, str], _: SchemaFacts) -> bool:
    return not props.flag(configuration, props.ROW_TRACKING_SUSPENDED)


def _set(name: str) -> _Use:
    return lambda configuration, _: name in configuration


def _read_only(in_use: _Use) -> _Feature:
    """A feature that readers must know and is read here; tables that use it are not written."""
    return _Feature(in_use=in_use, for_readers=True, can_write=False)


def _refused(in_use: _Use, *, for_readers: bool = False) -> _Feature:
    """A feature that may be listed but not used; readers need not care unless it is for them."""
    return _Feature(
        in_use=in_use, for_readers=for_readers, can_read=not for_readers, can_write=False
    )


_FEATURES: dict[str, _Feature] = {
    "allowColumnDefaults": _Feature(in_use=_column_key("CURRENT_DEFAULT")),
    "appendOnly": _Feature(in_use=_flag(props.APPEND_ONLY)),
    "catalogManaged": _refused(_always, for_readers=True),
    "catalogOwned-preview": _refused(_always, for_readers=True),
    "changeDataFeed": _Feature(in_use=_flag(props.ENABLE_CHANGE_DATA_FEED)),
    "checkConstraints": _Feature(in_use=_has_constraints),
    "clustering": _Feature(in_use=_always),
    "columnMapping": _Feature(in_use=_maps_columns, for_readers=True),
    # An earlier form of managed commits; writers alone had to know it, so that readers of the
    # folder saw an old table.
    "coordinatedCommits-preview": _Feature(
        in_use=_set(props.COMMIT_COORDINATOR),
        can_read=False,
        can_write=False,
    ),
    "deletionVectors": _Feature(in_use=_flag(props.ENABLE_DELETION_VECTORS), for_readers=True),
    "domainMetadata": _Feature(in_use=_always),
    "generatedColumns": _Feature(in_use=_column_key("delta.generationExpression")),
    "icebergCompatV1": _refused(_flag(props.ENABLE_ICEBERG_COMPAT_V1)),
    "icebergCompatV2": _refused(_flag(props.ENABLE_ICEBERG_COMPAT_V2)),
    "identityColumns": _refused(_column_key("delta.identity.")),
    "inCommitTimestamp": _Feature(in_use=_flag(props.ENABLE_IN_COMMIT_TIMESTAMPS)),
    "invariants": _Feature(in_use=_column_key("delta.invariants")),
    "rowTracking": _Feature(in_use=_tracks_rows),
    "timestampNtz": _Feature(in_use=_type_name("timestamp_ntz"), for_readers=True),
    "typeWidening": _Feature(in_use=_column_key(TYPE_CHANGES), for_readers=True),
    "typeWidening-preview": _Feature(in_use=_column_key(TYPE_CHANGES), for_readers=True),
    "v2Checkpoint": _Feature(in_use=_always, for_readers=True),
    "vacuumProtocolCheck": _Feature(in_use=_always, for_readers=True),
    # Files that hold shredded variants are refused where they are read.
    "variantShredding": _read_only(_type_name("variant")),
    "variantShredding-preview": _read_only(_type_name("variant")),
    "variantType": _read_only(_type_name("variant")),
    "variantType-preview": _read_only(_type_name("variant")),
}
_CATALOG = frozenset({"catalogManaged", "catalogOwned-preview", "coordinatedCommits-preview"})
"""Features under which the log's folder does not tell all commits."""
_LEGACY_READER = {"columnMapping": 2}
_LEGACY_WRITER = {
    "appendOnly": 2,
    "invariants": 2,
    "checkConstraints": 3,
    "changeDataFeed": 4,
    "generatedColumns": 4,
    "columnMapping": 5,
    "identityColumns": 6,
}
"""The version below 7 that brought each feature (PROTOCOL.md, "Writer Version Requirements")."""
_ENABLED_BY = {
    "deletionVectors": props.ENABLE_DELETION_VECTORS,
    "rowTracking": props.ENABLE_ROW_TRACKING,
    "typeWidening": props.ENABLE_TYPE_WIDENING,
    "variantShredding": props.ENABLE_VARIANT_SHREDDING,
}
"""Features that a property asks for, and that are otherwise in use by what the table holds."""
_PREVIEW = "-preview"
_PHYSICAL_NAME = "delta.columnMapping.physicalName"


def supports_reader_feature(protocol: Protocol, name: str) -> bool:
    """Whether readers must honour a feature: listed, or implied by the reader version."""
    return name in _supported(protocol, readers=True)


def supports_writer_feature(protocol: Protocol, name: str) -> bool:
    """Whether writers must honour a feature: listed, or implied by the writer version."""
    return name in _supported(protocol, readers=False)


def check_readable(
    protocol: Protocol,
    *,
    where: str,
    metadata: Metadata | None = None,
    version: int | None = None,
) -> None:
    """Refuse a table that can't be read rightly.

    Args:
        protocol: The table's.
        where: The table, for the error.
        metadata: The table's; without it a feature whose use the metadata tells counts as unused,
            so that only a call with it clears the table.
        version: At which the table is read, for the error; None where that is not known.

    Raises:
        UnsupportedFeatureError: Naming what it needs and what can be done.
        CorruptTableError: The protocol contradicts itself, or the metadata.
    """
    _check_sane(protocol, where)
    needed = _too_new(protocol.min_reader_version, MAX_READER_VERSION, "reader")
    for_readers = _supported(protocol, readers=True)
    needed += [name for name in for_readers if name not in _FEATURES]
    needed += [
        name
        for name in sorted({*for_readers, *_supported(protocol, readers=False)})
        if name in _FEATURES
        and not _FEATURES[name].can_read
        and _is_used(_FEATURES[name], metadata)
    ]
    if metadata is not None:
        needed += _unreadable(metadata)
    if needed:
        raise _refusal("read", needed, protocol, _at(version, where))
    if metadata is not None:
        _check_mapping_is_told(protocol, metadata, _at(version, where))


def _check_mapping_is_told(protocol: Protocol, metadata: Metadata, where: str) -> None:
    """Refuse columns that have physical names under a protocol that says they have none.

    A protocol that was put back to an older one leaves such a table; read by it, every mapped
    column would be null.
    """
    facts = schema_facts(metadata.schema_string)
    if (
        _maps_columns(metadata.configuration, facts)
        and _PHYSICAL_NAME in facts.metadata_keys
        and not supports_reader_feature(protocol, "columnMapping")
    ):
        raise CorruptTableError(
            "The table maps its columns, and its protocol does not say so.",
            where=where,
            found=f"{props.COLUMN_MAPPING_MODE} and physical names, under reader version "
            f"{protocol.min_reader_version} without columnMapping",
            remedy="The protocol was put back by a faulty writer; have columnMapping added to it.",
        )


def _unreadable(metadata: Metadata) -> list[str]:
    """What metadata alone shows that can't be read."""
    found: list[str] = []
    if metadata.format.provider.lower() != "parquet":
        found.append(f"data files in the format {metadata.format.provider!r}")
    changes = schema_facts(metadata.schema_string).type_changes
    found += sorted(
        f"the type change {before} to {after}"
        for before, after in changes
        if not keeps_values(before, after)
    )
    return found


def _at(version: int | None, where: str) -> str:
    return where if version is None else f"{where}, version {version}"


def check_writable(protocol: Protocol, metadata: Metadata, *, where: str) -> None:
    """Refuse a table that can't be read, or can't be appended to and rewritten rightly.

    Raises:
        UnsupportedFeatureError: Naming what it needs and what can be done.
        CorruptTableError: The protocol contradicts itself.
    """
    check_readable(protocol, where=where, metadata=metadata)
    needed = _too_new(protocol.min_writer_version, MAX_WRITER_VERSION, "writer")
    needed += [
        name
        for name in _supported(protocol, readers=False)
        if name not in _FEATURES
        or (not _FEATURES[name].can_write and _is_used(_FEATURES[name], metadata))
    ]
    if schema_facts(metadata.schema_string).has_unwritable_void:
        needed.append("columns of the type void inside of others, or none of any other type")
    if needed:
        raise _refusal("written", needed, protocol, where)


def features_in_use(configuration: Mapping[str, str], schema_json: str) -> frozenset[str]:
    """Features that metadata alone puts to use, whether or not the protocol supports them.

    Those that nothing in the metadata shows (clustering, domain metadata, ...) are not among them.
    """
    facts = schema_facts(schema_json)
    found = {
        name
        for name, feature in _FEATURES.items()
        if name not in _ENABLED_BY and not name.endswith(_PREVIEW)
        if feature.in_use is not _always and feature.in_use(configuration, facts)
    }
    found |= {name for name, flag in _ENABLED_BY.items() if props.flag(configuration, flag)}
    if facts.has_not_null:  # which Delta on Spark counts among the invariants, and insists on
        found.add("invariants")
    if props.checkpoint_policy(configuration) == "v2":
        found.add("v2Checkpoint")
    return frozenset(found)


def features_of(protocol: Protocol) -> frozenset[str]:
    """Features that the table supports, listed or implied by its versions.

    The preview of a feature counts as the feature, too. One for readers that only the writer
    version implies does not count.
    """
    readers = _supported(protocol, readers=True)
    names = {
        name
        for name in _supported(protocol, readers=False)
        if name in readers or not features_for_readers((name,))
    }
    return frozenset(names | {name.removesuffix(_PREVIEW) for name in names})


def writer_features(protocol: Protocol) -> tuple[str, ...]:
    """What ``writerFeatures`` lists, or the writer version implies."""
    return tuple(_supported(protocol, readers=False))


def features_for_readers(names: Iterable[str]) -> frozenset[str]:
    """Those of ``names`` that readers, too, must know."""
    return frozenset(name for name in names if name in _FEATURES and _FEATURES[name].for_readers)


def legacy_features(writer_version: int) -> frozenset[str]:
    """Features that a writer version below 7 implies."""
    return frozenset(name for name, least in _LEGACY_WRITER.items() if least <= writer_version)


def in_commit_timestamps(protocol: Protocol, metadata: Metadata) -> bool:
    """Whether each commit tells its own time (PROTOCOL.md, "In-Commit Timestamps")."""
    return supports_writer_feature(protocol, "inCommitTimestamp") and props.flag(
        metadata.configuration, props.ENABLE_IN_COMMIT_TIMESTAMPS
    )


def assigns_row_ids(protocol: Protocol, metadata: Metadata) -> bool:
    """Whether rows that join the table get ids (PROTOCOL.md, "Row Tracking")."""
    return supports_writer_feature(protocol, "rowTracking") and not props.flag(
        metadata.configuration, props.ROW_TRACKING_SUSPENDED
    )


def keeps_row_ids(protocol: Protocol, metadata: Metadata) -> bool:
    """Whether rows also keep their ids when they move to another file."""
    return supports_writer_feature(protocol, "rowTracking") and props.flag(
        metadata.configuration, props.ENABLE_ROW_TRACKING
    )


def _supported(protocol: Protocol, *, readers: bool) -> list[str]:
    """Names of the features that a table supports, as far as readers or writers must know them."""
    if readers:
        listed, version, legacy = (
            protocol.reader_features,
            protocol.min_reader_version,
            _LEGACY_READER,
        )
        newest = MAX_READER_VERSION
    else:
        listed, version, legacy = (
            protocol.writer_features,
            protocol.min_writer_version,
            _LEGACY_WRITER,
        )
        newest = MAX_WRITER_VERSION
    implied = [name for name, least in legacy.items() if least <= version < newest]
    return sorted({*(listed or ()), *implied})


def _is_used(feature: _Feature, metadata: Metadata | None) -> bool:
    if metadata is None:
        return feature.in_use is _always
    return feature.in_use(metadata.configuration, schema_facts(metadata.schema_string))


def _too_new(version: int, newest: int, kind: str) -> list[str]:
    return [f"{kind} version {version}"] if version > newest else []


def _check_sane(protocol: Protocol, where: str) -> None:
    reader, writer = protocol.min_reader_version, protocol.min_writer_version
    if reader == MAX_READER_VERSION and protocol.reader_features is None:
        wrong = "reader version 3 without readerFeatures"
    elif writer == MAX_WRITER_VERSION and protocol.writer_features is None:
        wrong = "writer version 7 without writerFeatures"
    elif reader == MAX_READER_VERSION and writer < MAX_WRITER_VERSION:
        wrong = f"reader version 3 with writer version {writer}"
    elif reader < 1 or writer < 1:
        wrong = f"reader version {reader}, writer version {writer}"
    else:
        return
    raise CorruptTableError(
        "The table's protocol contradicts itself.",
        where=where,
        found=wrong,
        remedy="A faulty writer made the protocol action; have it repaired before going on.",
    )


def _refusal(
    verb: str, needed: Iterable[str], protocol: Protocol, where: str
) -> UnsupportedFeatureError:
    reader, writer = protocol.min_reader_version, protocol.min_writer_version
    remedy = (
        "Use an engine that supports it, or drop the feature from the table there "
        "(ALTER TABLE ... DROP FEATURE ...). For a newer version upgrade streamlake."
    )
    if not _CATALOG.isdisjoint(needed):
        remedy = (
            "Its newest commits are known to its catalog alone: use an engine that goes through "
            "the catalog, or drop the feature there (ALTER TABLE ... DROP FEATURE ...)."
        )
    return UnsupportedFeatureError(
        f"The table can't be {verb}: it needs {', '.join(needed)}.",
        where=where,
        found=f"reader version {reader}, writer version {writer}",
        remedy=remedy,
    )
