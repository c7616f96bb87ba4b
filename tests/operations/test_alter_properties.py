"""Table properties and metadata domains, set and unset."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import streamlake as sl
from operations.overtaken import overtaken
from streamlake.protocol import Protocol

SCHEMA = pa.schema([("id", pa.int64())])


@pytest.fixture
def table(tmp_path: Path) -> sl.Table:
    return sl.Table.create(tmp_path / "t", schema=SCHEMA, properties={"mine": "x"})


def test_properties_are_set_and_unset_in_one_commit_each(table):
    assert table.set_properties({"delta.appendOnly": "true", "mine": "y"}).version == 1
    assert table.properties == {"delta.appendOnly": "true", "mine": "y"}
    assert table.unset_properties(["mine"]).version == 2
    assert sl.Table.open(table.url).properties == {"delta.appendOnly": "true"}
    assert [record.operation for record in table.history()][:2] == [
        "UNSET TBLPROPERTIES",
        "SET TBLPROPERTIES",
    ]


def test_truth_is_spelt_as_others_read_it_and_one_name_is_no_list_of_letters(table):
    table.set_properties({"delta.appendOnly": True, "n": 5})
    assert table.properties == {"delta.appendOnly": "true", "mine": "x", "n": "5"}
    table.unset_properties("mine")
    assert "mine" not in table.properties


def test_what_changes_nothing_commits_nothing(table):
    result = table.set_properties({"mine": "x"})
    assert (result.version, result.already_committed) == (0, True)
    assert table.unset_properties(["other"], missing_ok=True).already_committed


@pytest.mark.parametrize(
    ("properties", "told"),
    [
        ({"delta.apendOnly": "true"}, r"Did you mean delta\.appendOnly"),
        ({"Delta.AppendOnly": "true"}, r"Did you mean delta\.appendOnly"),
        ({"delta.appendOnly": "yes"}, "true or false"),
        ({"delta.columnMapping.maxColumnId": "7"}, "kept by writers"),
        ({"delta.inCommitTimestampEnablementVersion": "7"}, "kept by writers"),
        ({"delta.constraints.positive": "id > 0"}, "add_constraint"),
        ({"DELTA.Constraints.positive": "id > 0"}, "add_constraint"),
        ({"mine": "\ud800"}, "Unicode"),
        ({"delta.columnMapping.mode": "id"}, "from none to id"),
        ({"delta.columnMapping.mode": "names"}, "none, name or id"),
        ({"delta.checkpointPolicy": "v3"}, "classic or v2"),
        ({"delta.parquet.compression.codec": "brotli"}, "zstd"),
        ({"delta.parquet.format.version": "3.0.0"}, "2.12.0"),
    ],
)
def test_properties_that_can_not_be_are_refused(table, properties, told):
    with pytest.raises(sl.InvalidInputError, match=told):
        table.set_properties(properties)
    assert sl.Table.open(table.url).version == 0


def test_a_property_that_is_not_set_can_not_be_unset(table):
    with pytest.raises(sl.InvalidInputError, match="other is not set"):
        table.unset_properties(["other"])


def test_a_feature_that_is_not_supported_is_refused_by_name(table):
    with pytest.raises(sl.UnsupportedFeatureError, match="teleportation"):
        table.set_properties({"delta.feature.teleportation": "supported"})
    with pytest.raises(sl.UnsupportedFeatureError, match="icebergCompatV1"):
        table.set_properties({"delta.enableIcebergCompatV1": "true"})


def test_a_property_raises_the_protocol_no_further_than_it_needs(table):
    table.set_properties({"delta.enableChangeDataFeed": "true"})
    assert table.log.head.protocol == Protocol(
        1, 7, None, ("appendOnly", "changeDataFeed", "invariants")
    )
    table.set_properties({"delta.enableDeletionVectors": "true"})
    assert table.log.head.protocol == Protocol(
        3,
        7,
        ("deletionVectors",),
        ("appendOnly", "changeDataFeed", "deletionVectors", "invariants"),
    )
    before = table.log.head.protocol
    table.unset_properties(["delta.enableDeletionVectors"])
    assert table.log.head.protocol == before


def test_an_append_only_table_keeps_its_rows_and_may_be_optimized(table):
    table.append(pa.table({"id": [1]}))
    table.append(pa.table({"id": [2]}))
    table.set_properties({"delta.appendOnly": "true"})
    assert table.optimize().files_removed == 2
    assert sorted(table.snapshot().to_arrow()["id"].to_pylist()) == [1, 2]


def test_domains_are_set_changed_and_removed(table):
    table.set_domain_metadata("com.example", "one")
    assert table.log.head.protocol.writer_features == ("appendOnly", "domainMetadata", "invariants")
    table.set_domain_metadata("com.example", "two")
    table.checkpoint()
    reopened = sl.Table.open(table.url)
    assert reopened.domain_metadata() == {"com.example": "two"}
    reopened.remove_domain_metadata("com.example")
    assert table.domain_metadata() == {}
    assert table.remove_domain_metadata("com.example").already_committed


@pytest.mark.parametrize("domain", ["delta.clustering", "Delta.mine", ""])
def test_the_formats_own_domains_are_refused(table, domain):
    with pytest.raises(sl.InvalidInputError, match="no domain that a user may set"):
        table.set_domain_metadata(domain, "x")
    with pytest.raises(sl.InvalidInputError, match="no domain that a user may set"):
        table.remove_domain_metadata(domain)


def test_one_domain_set_by_two_at_once_is_a_conflict_and_two_domains_are_none(table):
    table.set_domain_metadata("a", "1")
    other = overtaken(table, lambda: table.set_domain_metadata("a", "2"))
    with pytest.raises(sl.ConcurrentTransactionError, match="'a'"):
        other.set_domain_metadata("a", "3")
    overtaken(table, lambda: table.set_domain_metadata("b", "4")).set_domain_metadata("a", "5")
    assert table.domain_metadata() == {"a": "5", "b": "4"}


def test_one_domain_that_two_set_first_at_once_is_a_conflict_too(table):
    other = overtaken(table, lambda: table.set_domain_metadata("a", "1"))
    with pytest.raises(sl.ConcurrentTransactionError, match="'a'"):
        other.set_domain_metadata("a", "2")


def test_two_that_set_a_first_domain_at_once_both_do(table):
    overtaken(table, lambda: table.set_domain_metadata("b", "1")).set_domain_metadata("a", "2")
    assert table.domain_metadata() == {"a": "2", "b": "1"}
    assert table.version == 2
