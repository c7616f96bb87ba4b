"""A table of variants, nested ones among them, is read whole."""

import json

import pyarrow as pa
import pyarrow.parquet as pq

import streamlake as sl

VARIANT = pa.struct([pa.field(name, pa.binary(), nullable=False) for name in ("value", "metadata")])
SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": "v", "type": "variant", "nullable": True, "metadata": {}},
        {
            "name": "several",
            "type": {"type": "array", "elementType": "variant", "containsNull": True},
            "nullable": True,
            "metadata": {},
        },
    ],
}
FEATURES = {"readerFeatures": ["variantType"], "writerFeatures": ["variantType"]}


def write_table(root, rows: pa.Table | None) -> None:
    log = root / "_delta_log"
    log.mkdir()
    metadata = {
        "id": "v",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(SCHEMA),
        "partitionColumns": [],
        "configuration": {},
    }
    actions = [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **FEATURES}},
        {"metaData": metadata},
    ]
    if rows is not None:
        pq.write_table(rows, root / "a.parquet")
        size = (root / "a.parquet").stat().st_size
        add = {"path": "a.parquet", "partitionValues": {}, "size": size}
        actions.append({"add": {**add, "modificationTime": 1, "dataChange": True}})
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (log / f"{0:020d}.json").write_text(text)


def test_variants_are_read_as_their_two_binaries(tmp_path):
    one = {"value": b"\x0c\x01", "metadata": b"\x01\x00"}
    rows = pa.table(
        {
            "v": pa.array([one, None], VARIANT),
            "several": pa.array([[one, None], None], pa.list_(VARIANT)),
        }
    )
    write_table(tmp_path, rows)
    assert sl.Table.open(tmp_path).snapshot().to_arrow().to_pylist() == [
        {"v": one, "several": [one, None]},
        {"v": None, "several": None},
    ]


def test_a_table_of_variants_without_rows_is_read(tmp_path):
    write_table(tmp_path, None)
    assert sl.Table.open(tmp_path).snapshot().to_arrow().num_rows == 0
