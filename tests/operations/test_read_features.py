"""Tables that put features of other engines to use, read by a snapshot; logs written by hand."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamlake as sl
from data.deletion import inline, stored
from streamlake.log import Log
from streamlake.protocol import (
    Action,
    AddFile,
    CommitInfo,
    DeletionVector,
    DomainMetadata,
    Metadata,
    Protocol,
    commit_path,
    encode_actions,
)
from streamlake.storage import MemoryStore


def field(name: str, kind: Any = "long", **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def schema_json(*fields: dict[str, Any]) -> str:
    return json.dumps({"type": "struct", "fields": list(fields)})


def features(*both: str, writers: tuple[str, ...] = ()) -> Protocol:
    return Protocol(3, 7, both, (*both, *writers))


def commit(store: MemoryStore, version: int, *actions: Action) -> None:
    store.put_if_absent(commit_path(version), encode_actions([CommitInfo({}), *actions]))


def file_of(
    store: MemoryStore,
    rows: pa.Table,
    vector: DeletionVector | None = None,
    partition: dict[str, str | None] | None = None,
    **fields: Any,
) -> AddFile:
    name = f"f{len(list(store.list_from('')))}.parquet"
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink)
    data = sink.getvalue()
    store.put(name, memoryview(data))
    stats = json.dumps({"numRecords": rows.num_rows})
    return AddFile(
        name,
        partition or {},
        len(data),
        0,
        data_change=True,
        stats=stats,
        deletion_vector=vector,
        **fields,
    )


def opened(store: MemoryStore) -> sl.Table:
    return sl.Table(Log(store))


def rows_of(store: MemoryStore) -> list[dict[str, Any]]:
    return opened(store).snapshot().to_arrow().to_pylist()


ROWS = pa.table({"n": [1, 2, 3]})
READ = [{"n": 1}, {"n": 2}, {"n": 3}]


@pytest.mark.parametrize(
    ("writers", "metadata", "configuration"),
    [
        (("clustering", "domainMetadata"), {}, {}),
        (("allowColumnDefaults",), {"CURRENT_DEFAULT": "7"}, {}),
        (("generatedColumns",), {"delta.generationExpression": "1 + 1"}, {}),
        (("identityColumns",), {"delta.identity.start": 1, "delta.identity.step": 1}, {}),
        (("invariants",), {"delta.invariants": '{"expression":{"expression":"n > 0"}}'}, {}),
        (("checkConstraints",), {}, {"delta.constraints.positive": "n > 0"}),
        (("rowTracking", "domainMetadata"), {}, {"delta.enableRowTracking": "true"}),
        (("inCommitTimestamp",), {}, {"delta.enableInCommitTimestamps": "true"}),
        (("icebergCompatV1",), {}, {"delta.enableIcebergCompatV1": "true"}),
        (("icebergCompatV2",), {}, {"delta.enableIcebergCompatV2": "true"}),
        (("aFeatureOfTomorrow",), {}, {}),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_what_only_writers_must_know_is_read_as_data(writers, metadata, configuration):
    store = MemoryStore()
    protocol = features("deletionVectors", writers=writers)
    table = Metadata(
        "id", schema_string=schema_json(field("n", **metadata)), configuration=configuration
    )
    commit(store, 0, protocol, table, file_of(store, ROWS))
    assert rows_of(store) == READ


def test_row_ids_that_a_file_holds_are_no_column_of_the_table():
    store = MemoryStore()
    configuration = {
        "delta.enableRowTracking": "true",
        "delta.rowTracking.materializedRowIdColumnName": "_row-id-col-1",
    }
    metadata = Metadata("id", schema_string=schema_json(field("n")), configuration=configuration)
    domain = DomainMetadata("delta.rowTracking", '{"rowIdHighWaterMark":3}', removed=False)
    rows = ROWS.append_column("_row-id-col-1", pa.array([7, 8, 9]))
    add = file_of(store, rows, base_row_id=0, default_row_commit_version=0)
    protocol = features("deletionVectors", writers=("rowTracking", "domainMetadata"))
    commit(store, 0, protocol, metadata, domain, add)
    assert rows_of(store) == READ


def test_partition_values_that_a_file_holds_as_iceberg_wants_are_those_of_the_log():
    store = MemoryStore()
    mapped = [
        field(
            name,
            kind,
            **{
                "delta.columnMapping.id": number,
                "delta.columnMapping.physicalName": f"col-{number}",
                **more,
            },
        )
        for name, kind, number, more in (
            ("p", "string", 1, {}),
            (
                "l",
                {"type": "array", "elementType": "integer", "containsNull": True},
                2,
                {"delta.columnMapping.nested.ids": {"col-2.element": 3}},
            ),
        )
    ]
    metadata = Metadata(
        "id",
        schema_string=schema_json(*mapped),
        partition_columns=("p",),
        configuration={"delta.columnMapping.mode": "name", "delta.enableIcebergCompatV2": "true"},
    )
    rows = pa.table({"col-1": ["a"], "col-2": pa.array([[1, None]], pa.list_(pa.int32()))})
    add = file_of(store, rows, partition={"col-1": "a"})
    protocol = features("columnMapping", writers=("icebergCompatV2",))
    commit(store, 0, protocol, metadata, add)
    assert rows_of(store) == [{"p": "a", "l": [1, None]}]


def test_files_with_and_without_vectors_are_read_together():
    store = MemoryStore()
    metadata = Metadata("id", schema_string=schema_json(field("n")))
    first, second = stored(store, [0], [1, 2], folder="ab")
    commit(
        store,
        0,
        features("deletionVectors"),
        metadata,
        file_of(store, ROWS, first),
        file_of(store, ROWS, second),
        file_of(store, ROWS, inline([0, 1, 2])),
        file_of(store, ROWS),
    )
    assert [row["n"] for row in rows_of(store)] == [2, 3, 1, 1, 2, 3]
    assert opened(store).snapshot().to_arrow(columns=[]).num_rows == 6


def test_a_column_renamed_dropped_and_added_again_shows_its_own_values_only():
    store = MemoryStore()

    def schema(*columns: tuple[str, int]) -> Metadata:
        fields = [
            field(
                name,
                **{
                    "delta.columnMapping.id": number,
                    "delta.columnMapping.physicalName": f"col-{number}",
                },
            )
            for name, number in columns
        ]
        configuration = {"delta.columnMapping.mode": "name"}
        return Metadata("id", schema_string=schema_json(*fields), configuration=configuration)

    add = file_of(store, pa.table({"col-1": [1], "col-2": [2]}))
    commit(store, 0, features("columnMapping"), schema(("a", 1), ("b", 2)), add)
    commit(store, 1, schema(("b", 1), ("a", 2)))
    commit(store, 2, schema(("b", 1)))
    commit(store, 3, schema(("b", 1), ("a", 3)))
    table = opened(store)
    found = [table.snapshot(version).to_arrow().to_pylist() for version in range(4)]
    assert found == [[{"a": 1, "b": 2}], [{"b": 1, "a": 2}], [{"b": 1}], [{"b": 1, "a": None}]]


@pytest.mark.parametrize(
    "feature", ["aFeatureOfTomorrow", "catalogManaged", "catalogOwned-preview"]
)
def test_what_readers_must_know_and_we_do_not_is_refused_with_the_version(feature):
    store = MemoryStore()
    metadata = Metadata("id", schema_string=schema_json(field("n")))
    commit(store, 0, Protocol(1, 2), metadata, file_of(store, ROWS))
    commit(store, 1, features("deletionVectors", feature))
    with pytest.raises(sl.UnsupportedFeatureError, match=feature) as error:
        rows_of(store)
    assert error.value.where.endswith(", version 1")
    assert "deletionVectors" not in error.value.what
    assert opened(store).snapshot(0).to_arrow().to_pylist() == READ
    with pytest.raises(sl.UnsupportedFeatureError, match=feature):
        list(opened(store).tail(stop="latest"))


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("timestamp", "2024-02-29 12:34:56.789", "2024-02-29T12:34:56.789000+00:00"),
        ("timestamp", "2024-02-29T12:34:56.789000Z", "2024-02-29T12:34:56.789000+00:00"),
        ("timestamp", "2024-02-29T12:34:56+02:00", "2024-02-29T10:34:56+00:00"),
        ("timestamp", "1880-01-01 00:00:00 -07:52:58", "1880-01-01T07:52:58+00:00"),
        ("timestamp_ntz", "2024-02-29 12:34:56", "2024-02-29T12:34:56"),
        ("timestamp_ntz", "2024-02-29T12:34:56.5", "2024-02-29T12:34:56.500000"),
        ("timestamp_ntz", "2024-02-29", "2024-02-29T00:00:00"),
        ("date", "2024-02-29", "2024-02-29"),
    ],
)
def test_partition_values_of_times_are_read_in_every_form(kind, value, expected):
    store = MemoryStore()
    metadata = Metadata(
        "id",
        schema_string=schema_json(field("n"), field("p", kind)),
        partition_columns=("p",),
    )
    add = file_of(store, pa.table({"n": [1]}), partition={"p": value})
    commit(store, 0, features("timestampNtz"), metadata, add)
    (row,) = rows_of(store)
    assert row["p"].isoformat() == expected


@pytest.mark.parametrize(
    ("kind", "column", "found"),
    [
        ("long", "q", "'?q; columns n, p"),
        ({"type": "array", "elementType": "long", "containsNull": True}, "p", "list"),
        ("variant", "p", "variant"),
    ],
)
def test_a_partition_column_that_can_be_none_is_a_corrupt_table(kind, column, found):
    store = MemoryStore()
    metadata = Metadata(
        "id",
        schema_string=schema_json(field("n"), field("p", kind)),
        partition_columns=(column,),
    )
    add = file_of(store, pa.table({"n": [1]}), partition={column: "1"})
    commit(store, 0, features("variantType"), metadata, add)
    for read in (rows_of, lambda store: list(opened(store).tail(stop="latest"))):
        with pytest.raises(sl.CorruptTableError, match=found):
            read(store)


def test_void_columns_are_null_wherever_they_stand():
    store = MemoryStore()
    kind = {"type": "struct", "fields": [field("v", "void"), field("n")]}
    metadata = Metadata("id", schema_string=schema_json(field("v", "void"), field("s", kind)))
    add = file_of(store, pa.table({"s": [{"n": 1}, None]}))
    commit(store, 0, Protocol(1, 2), metadata, add)
    assert rows_of(store) == [{"v": None, "s": {"v": None, "n": 1}}, {"v": None, "s": None}]
