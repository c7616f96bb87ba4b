"""Tables that others cluster are written with the statistics that this needs."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import streamlake as sl
from streamlake.log import Transaction
from streamlake.protocol import DomainMetadata
from streamlake.protocol.mapping import physical_name

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("s", pa.struct([("x", pa.int64())]))])


def clustered(path: Path, *columns: list[str], garbled: bool = False) -> sl.Table:
    properties = {
        "delta.columnMapping.mode": "name",
        "delta.dataSkippingNumIndexedCols": "1",
        "delta.feature.clustering": "supported",
    }
    table = sl.Table.create(path / "t", schema=SCHEMA, properties=properties)
    b, s = table.schema.field("b"), table.schema.field("s")
    names = {"b": [physical_name(b)], "s.x": [physical_name(s), physical_name(s.type.field("x"))]}
    paths = [names[".".join(column)] for column in columns]
    configuration = "{" if garbled else json.dumps({"clusteringColumns": paths})
    domain = DomainMetadata("delta.clustering", configuration, removed=False)
    table.log.commit(Transaction(operation="CLUSTER BY", domains=(domain,), read_version=0))
    return table


def test_clustering_columns_have_statistics_beyond_the_first_ones(tmp_path: Path):
    table = clustered(tmp_path, ["s", "x"])
    table.append(pa.table({"a": [1], "b": [2], "s": [{"x": 3}]}))
    counts = json.loads(str(table.snapshot().files()[0].stats))["nullCount"]
    a, s = table.schema.field("a"), table.schema.field("s")
    assert counts == {physical_name(a): 0, physical_name(s): {physical_name(s.type.field("x")): 0}}


def test_a_column_by_which_the_table_is_clustered_may_be_renamed_and_not_dropped(tmp_path: Path):
    table = clustered(tmp_path, ["b"], ["s", "x"])
    for column in ("b", "s", "s.x"):
        with pytest.raises(sl.InvalidInputError, match="clustered by it"):
            table.drop_columns([column])
    table.rename_column("b", "c")
    table.drop_columns(["a"])
    assert table.schema.names == ["c", "s"]


def test_a_domain_that_can_not_be_read_is_told_before_anything_is_written(tmp_path: Path):
    table = clustered(tmp_path, garbled=True)
    with pytest.raises(sl.CorruptTableError, match=r"delta\.clustering"):
        table.append(pa.table({"a": [1]}))
    assert table.version == 1
