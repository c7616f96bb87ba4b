"""Which tables may be read and written."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from streamlake.errors import CorruptTableError, InvalidInputError, UnsupportedFeatureError
from streamlake.protocol import (
    Format,
    Metadata,
    Protocol,
    check_readable,
    check_writable,
    protocol_for,
)
from streamlake.protocol.schema.widening import is_widening, keeps_values

WHERE = "file:///t"
PLAIN = Metadata("id", schema_string='{"type":"struct","fields":[]}')
NO_FEATURES: tuple[str, ...] = ()


def column(kind: object = "long", **metadata: object) -> str:
    field = {"name": "c", "type": kind, "nullable": True, "metadata": metadata}
    return json.dumps({"type": "struct", "fields": [field]})


def schema_of(kind: object = "long", **metadata: object) -> Metadata:
    return Metadata("id", schema_string=column(kind, **metadata))


def set_to(**configuration: str) -> Metadata:
    named = {f"delta.{name}": value for name, value in configuration.items()}
    return Metadata("id", schema_string=column(), configuration=named)


def listing(*features: str) -> Protocol:
    """Features as readers and writers see them; those of writers alone are in both lists here."""
    return Protocol(3, 7, features, features)


def writers_listing(*features: str) -> Protocol:
    return Protocol(1, 7, None, features)


@pytest.mark.parametrize("reader", [1, 2])
@pytest.mark.parametrize("writer", [1, 2, 3, 4, 5, 6])
def test_every_legacy_version_is_served_while_its_features_are_unused(reader, writer):
    check_writable(Protocol(reader, writer), PLAIN, where=WHERE)


@pytest.mark.parametrize(
    "feature",
    [
        "timestampNtz",
        "vacuumProtocolCheck",
        "deletionVectors",
        "columnMapping",
        "typeWidening",
        "variantType",
    ],
)
def test_features_for_readers_may_be_listed_unused(feature):
    check_writable(listing(feature), PLAIN, where=WHERE)


@pytest.mark.parametrize(
    "feature",
    [
        "allowColumnDefaults",
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "clustering",
        "domainMetadata",
        "generatedColumns",
        "icebergCompatV1",
        "icebergCompatV2",
        "identityColumns",
        "inCommitTimestamp",
        "invariants",
    ],
)
def test_features_for_writers_may_be_listed_unused(feature):
    check_writable(writers_listing(feature), PLAIN, where=WHERE)


@pytest.mark.parametrize(
    ("protocol", "metadata"),
    [
        (Protocol(1, 2), set_to(appendOnly="true")),
        (Protocol(1, 4), set_to(enableChangeDataFeed="true")),
        (writers_listing("appendOnly"), set_to(appendOnly="true")),
        (listing("timestampNtz"), schema_of("timestamp_ntz")),
        (listing("deletionVectors"), set_to(enableDeletionVectors="true")),
        (listing("v2Checkpoint"), set_to(checkpointPolicy="v2")),
        (listing("typeWidening"), set_to(enableTypeWidening="true")),
        (writers_listing("allowColumnDefaults"), schema_of(CURRENT_DEFAULT="7")),
        (listing("columnMapping"), set_to(**{"columnMapping.mode": "name"})),
        (listing("columnMapping"), set_to(**{"columnMapping.mode": "id"})),
        (Protocol(2, 5), set_to(**{"columnMapping.mode": "name"})),
        (listing("typeWidening-preview"), schema_of(**{"delta.typeChanges": []})),
        (writers_listing("inCommitTimestamp"), set_to(enableInCommitTimestamps="true")),
        (Protocol(1, 2), schema_of(**{"delta.invariants": "{}"})),
        (Protocol(1, 3), set_to(**{"constraints.positive": "c > 0"})),
        (Protocol(1, 4), schema_of(**{"delta.generationExpression": "d + 1"})),
        (writers_listing("checkConstraints"), set_to(**{"constraints.positive": "c > 0"})),
        (writers_listing("rowTracking"), PLAIN),
        (writers_listing("rowTracking"), set_to(rowTrackingSuspended="true")),
    ],
)
def test_what_is_in_use_and_honoured_is_served(protocol, metadata):
    check_writable(protocol, metadata, where=WHERE)


@pytest.mark.parametrize(
    ("feature", "metadata"),
    [
        ("teleportation", PLAIN),
    ],
)
def test_a_feature_in_use_that_can_not_be_read_is_refused_by_name(feature, metadata):
    with pytest.raises(UnsupportedFeatureError, match=f"can't be read.* {feature}") as caught:
        check_readable(listing("timestampNtz", feature), where=WHERE, metadata=metadata)
    assert "timestampNtz" not in caught.value.what
    assert caught.value.where == WHERE
    assert "reader version 3, writer version 7" in caught.value.found
    assert "DROP FEATURE" in caught.value.remedy


@pytest.mark.parametrize(
    ("feature", "metadata"),
    [
        ("icebergCompatV1", set_to(enableIcebergCompatV1="true")),
        ("icebergCompatV2", set_to(enableIcebergCompatV2="TRUE")),
        ("identityColumns", schema_of(**{"delta.identity.start": 1})),
        ("teleportation", PLAIN),
    ],
)
def test_a_feature_in_use_that_can_not_be_written_is_refused_by_name(feature, metadata):
    protocol = writers_listing("appendOnly", feature)
    check_readable(protocol, where=WHERE, metadata=metadata)
    with pytest.raises(UnsupportedFeatureError, match=f"can't be written.* {feature}"):
        check_writable(protocol, metadata, where=WHERE)


@pytest.mark.parametrize(
    ("writer", "feature", "metadata"),
    [
        (6, "identityColumns", schema_of(**{"delta.identity.start": 1})),
    ],
)
def test_a_legacy_version_supports_its_features_and_not_later_ones(writer, feature, metadata):
    check_writable(Protocol(1, writer - 1), metadata, where=WHERE)
    for later in range(writer, 7):
        with pytest.raises(UnsupportedFeatureError, match=feature):
            check_writable(Protocol(1, later), metadata, where=WHERE)


@pytest.mark.parametrize(
    ("feature", "metadata"),
    [
        ("variantType", schema_of("variant")),
        ("variantType-preview", schema_of({"type": "variant"})),
        ("variantShredding", schema_of({"type": "array", "elementType": "variant"})),
        ("variantShredding", schema_of({"type": "array", "elementType": {"type": "variant"}})),
    ],
)
def test_a_feature_in_use_may_be_read_and_not_written(feature, metadata):
    check_readable(listing(feature), where=WHERE, metadata=metadata)
    with pytest.raises(UnsupportedFeatureError, match=f"can't be written.* {feature}"):
        check_writable(listing(feature), metadata, where=WHERE)


@pytest.mark.parametrize("feature", ["catalogManaged", "catalogOwned-preview"])
def test_a_table_that_its_catalog_manages_is_refused(feature):
    with pytest.raises(UnsupportedFeatureError, match=f"can't be read.* {feature}") as caught:
        check_readable(listing(feature), where=WHERE, metadata=PLAIN, version=7)
    assert caught.value.where == f"{WHERE}, version 7"
    assert "its catalog alone" in caught.value.remedy


def test_a_table_with_a_commit_coordinator_is_refused():
    protocol = writers_listing("coordinatedCommits-preview")
    check_readable(protocol, where=WHERE, metadata=PLAIN)
    managed = set_to(**{"coordinatedCommits.commitCoordinator-preview": "dynamodb"})
    with pytest.raises(UnsupportedFeatureError, match="coordinatedCommits-preview"):
        check_readable(protocol, where=WHERE, metadata=managed)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ([{"fromType": "long", "toType": "string"}], "long to string"),
        ([{"fromType": "long", "toType": "double", "fieldPath": "element"}], "long to double"),
        ([{"fromType": "integer", "toType": "short"}], "integer to short"),
        ([{"fromType": {"type": "struct", "fields": []}, "toType": "long"}], "struct"),
        ([{"toType": "long"}], "null to"),
        ("garbage", "garbage"),
        ([7], "7 to"),
    ],
)
def test_a_type_change_that_is_no_widening_is_refused_and_told(changes, told):
    inner = {"name": "d", "type": "string", "metadata": {"delta.typeChanges": changes}}
    metadata = schema_of({"type": "array", "elementType": {"type": "struct", "fields": [inner]}})
    with pytest.raises(UnsupportedFeatureError, match=f"the type change .*{told}"):
        check_readable(listing("typeWidening"), where=WHERE, metadata=metadata)


@pytest.mark.parametrize(
    ("before", "after", "allowed"),
    [
        ("byte", "short", True),
        ("byte", "long", True),
        ("long", "integer", False),
        ("integer", "integer", False),
        ("float", "double", True),
        ("double", "float", False),
        ("integer", "double", True),
        ("long", "double", False),
        ("date", "timestamp_ntz", True),
        ("date", "timestamp", False),
        ("decimal(5,2)", "decimal(7,4)", True),
        ("decimal(5, 2)", "decimal(6,2)", True),
        ("decimal(5,2)", "decimal(5,3)", False),
        ("decimal(5,2)", "decimal(7,1)", False),
        ("decimal(5,2)", "decimal(5,2)", False),
        ("short", "decimal(10,0)", True),
        ("short", "decimal(9,0)", False),
        ("integer", "decimal(12,2)", True),
        ("integer", "decimal(12,3)", False),
        ("long", "decimal(20,0)", True),
        ("long", "decimal(19,0)", False),
        ("string", "decimal(20,0)", False),
    ],
)
def test_the_widenings_are_those_of_the_protocol(before, after, allowed):
    assert is_widening(before, after) is allowed


@pytest.mark.parametrize(
    ("before", "after", "readable"),
    [
        ("byte", "decimal(4,1)", True),
        ("byte", "decimal(3,1)", False),
        ("short", "decimal(6,1)", True),
        ("long", "decimal(19,0)", True),
        ("integer", "decimal(11,2)", False),
        ("long", "double", False),
    ],
)
def test_a_change_of_type_that_keeps_every_value_is_read(before, after, readable):
    assert keeps_values(before, after) is readable


def test_a_feature_of_a_nested_field_counts():
    inner = {
        "type": "struct",
        "fields": [{"name": "d", "type": "long", "metadata": {"delta.identity.start": 1}}],
    }
    metadata = schema_of({"type": "map", "keyType": "string", "valueType": inner})
    with pytest.raises(UnsupportedFeatureError, match="identityColumns"):
        check_writable(Protocol(1, 6), metadata, where=WHERE)


@pytest.mark.parametrize(
    ("protocol", "told"),
    [(Protocol(99, 7, (), ()), "reader version 99"), (Protocol(4, 8, (), ()), "reader version 4")],
)
def test_a_newer_reader_version_is_refused(protocol, told):
    with pytest.raises(UnsupportedFeatureError, match=told):
        check_readable(protocol, where=WHERE)


def test_a_newer_writer_version_may_be_read_but_not_written():
    protocol = Protocol(1, 8)
    check_readable(protocol, where=WHERE, metadata=PLAIN)
    with pytest.raises(UnsupportedFeatureError, match="writer version 8"):
        check_writable(protocol, PLAIN, where=WHERE)


@pytest.mark.parametrize(
    "protocol",
    [
        Protocol(3, 7, None, NO_FEATURES),
        Protocol(1, 7),
        Protocol(3, 2, NO_FEATURES),
        Protocol(0, 2),
        Protocol(1, -1),
    ],
)
def test_a_protocol_that_contradicts_itself_is_a_corrupt_table(protocol):
    with pytest.raises(CorruptTableError, match="contradicts itself"):
        check_readable(protocol, where=WHERE)


def test_data_files_of_another_format_are_refused():
    metadata = Metadata("id", format=Format("orc"))
    with pytest.raises(UnsupportedFeatureError, match="'orc'"):
        check_readable(Protocol(1, 2), where=WHERE, metadata=metadata)


@pytest.mark.parametrize(
    "kind",
    [
        "void",
        {"type": "array", "elementType": "void"},
        {"type": "struct", "fields": [{"name": "d", "type": "void"}]},
    ],
)
def test_void_that_no_file_can_leave_out_is_not_written_but_read(kind):
    check_readable(Protocol(1, 2), where=WHERE, metadata=schema_of(kind))
    with pytest.raises(UnsupportedFeatureError, match="void"):
        check_writable(Protocol(1, 2), schema_of(kind), where=WHERE)


@pytest.mark.parametrize("garbled", ["", "{", "[1]", '{"fields":7}', '{"fields":[1]}', "[" * 9999])
def test_a_garbled_schema_is_left_to_whoever_decodes_it(garbled):
    check_writable(Protocol(1, 2), Metadata("id", schema_string=garbled), where=WHERE)


# -------------------------------------------------------------------------------------------------
# New tables

LONG = pa.schema([("c", pa.int64())])


def test_a_plain_table_needs_the_least_protocol():
    assert protocol_for(LONG, {}) == Protocol(1, 2)
    assert protocol_for(LONG, {"delta.appendOnly": "true", "mine": "x"}) == Protocol(1, 2)


@pytest.mark.parametrize(
    "kind",
    [pa.timestamp("us"), pa.list_(pa.timestamp("us")), pa.struct([("t", pa.timestamp("us"))])],
)
def test_timestamps_without_a_zone_need_their_feature(kind):
    assert protocol_for(pa.schema([("c", kind)]), {"delta.appendOnly": "true"}) == Protocol(
        3, 7, ("timestampNtz",), ("appendOnly", "timestampNtz")
    )


@pytest.mark.parametrize(
    ("name", "value", "protocol"),
    [
        ("enableChangeDataFeed", "true", Protocol(1, 7, None, ("changeDataFeed",))),
        ("enableDeletionVectors", "true", listing("deletionVectors")),
        ("enableDeletionVectors", "false", Protocol(1, 2)),
        ("columnMapping.mode", "name", listing("columnMapping")),
        ("enableRowTracking", "true", writers_listing("domainMetadata", "rowTracking")),
        ("enableInCommitTimestamps", "true", writers_listing("inCommitTimestamp")),
        ("minWriterVersion", "2", Protocol(1, 2)),
        ("minWriterVersion", "3", Protocol(1, 3)),
        ("minWriterVersion", "6", Protocol(2, 6)),
        ("checkpointPolicy", "v2", listing("v2Checkpoint")),
        ("constraints.positive", "c > 0", Protocol(1, 7, None, ("checkConstraints",))),
        ("feature.vacuumProtocolCheck", "supported", listing("vacuumProtocolCheck")),
        ("feature.teleportation", "supported", Protocol(1, 7, None, ("teleportation",))),
    ],
)
def test_properties_ask_for_their_features(name, value, protocol):
    assert protocol_for(LONG, {f"delta.{name}": value}) == protocol


@pytest.mark.parametrize("nested", [False, True])
def test_not_null_is_an_invariant_where_features_are_listed(nested):
    strict = pa.field("n", pa.int64(), nullable=False)
    column = pa.field("s", pa.struct([strict])) if nested else strict
    assert protocol_for(pa.schema([column]), {}) == Protocol(1, 2)
    listed = protocol_for(pa.schema([column, pa.field("t", pa.timestamp("us"))]), {})
    assert listed.writer_features == ("invariants", "timestampNtz")


def test_not_null_inside_of_a_list_is_no_invariant():
    strict = pa.list_(pa.field("element", pa.int64(), nullable=False))
    schema = pa.schema([pa.field("l", strict), pa.field("t", pa.timestamp("us"))])
    assert protocol_for(schema, {}).writer_features == ("timestampNtz",)


def test_a_property_that_delta_does_not_have_is_refused():
    with pytest.raises(InvalidInputError, match=r"no table property delta\.apendOnly"):
        protocol_for(LONG, {"delta.apendOnly": "true"})
