"""What checkpoints are written as, by what the table's properties ask for."""

import json
from collections import Counter
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamlake as sl
from streamlake.log import Limits, Log
from streamlake.log.checkpoint.checksum import read_checksum
from streamlake.log.checkpoint.writer import write_checkpoint
from streamlake.log.segment import find_segment
from streamlake.log.snapshot import load_state
from streamlake.protocol import checkpoint_path
from streamlake.testing import CountingStore, ManualClock, TableBuilder

V2 = {"delta.checkpointPolicy": "v2"}
TYPED = {
    "delta.checkpoint.writeStatsAsStruct": "true",
    "delta.checkpoint.writeStatsAsJson": "false",
}
SCHEMA = pa.schema(
    [
        pa.field("day", pa.date32()),
        pa.field("n", pa.int64()),
        pa.field("in", pa.struct([pa.field("s", pa.string())])),
        pa.field("list", pa.list_(pa.int64())),
    ]
)
ROWS = [{"day": date(2026, 1, 1), "n": 1, "in": {"s": "a"}, "list": [1]}, {"day": None, "n": None}]


def builder(**properties: str) -> TableBuilder:
    return TableBuilder(clock=ManualClock()).properties(properties)


def parquet(store, path: str) -> pa.Table:
    return pq.read_table(pa.BufferReader(store.get(path)))


def listed(store, part: str) -> list[str]:
    return [meta.path for meta in store.list_from("_delta_log/") if part in meta.path]


def cleaned(store):
    """Only checkpoints lead to the table."""
    for path in listed(store, ".json"):
        store.delete(path)
    return sl.Table(Log(store, clock=ManualClock()))


def files(store, version: int) -> Any:
    return parquet(store, checkpoint_path(version))["add"].drop_null().to_pylist()


@pytest.mark.parametrize("properties", [{}, V2, TYPED, V2 | TYPED])
@pytest.mark.parametrize("partitions", [(), ("day",)])
def test_a_table_is_the_same_after_its_checkpoint_whatever_its_form(properties, partitions):
    base = builder(**properties).schema(SCHEMA).partitioned_by(*partitions)
    table = base.append(ROWS, txn=sl.SetTransaction("a", 3)).append(ROWS).remove(0).build()
    before = table.snapshot()
    table.checkpoint()
    after = cleaned(table.log.store).snapshot()
    assert after.txn_version("a") == 3
    assert after.to_arrow().equals(before.to_arrow())
    for mine, others in zip(after.files(), before.files(), strict=True):
        assert json.loads(mine.stats or "") == json.loads(others.stats or "")
        assert mine.partition_values == others.partition_values


def test_v2_is_a_manifest_and_sidecars():
    store = builder(**V2).append(times=3).remove(0).checkpoint().write()
    (uuid, classic), (sidecar,) = find_segment(store).checkpoints, listed(store, "_sidecars")
    assert store.get(uuid[0]) == store.get(classic[0])
    manifest = parquet(store, uuid[0])
    rows = {name: manifest[name].drop_null().to_pylist() for name in manifest.column_names}
    (told,) = rows["checkpointMetadata"]
    assert told["version"] == 4
    assert dict(told["tags"])["sidecarNumActions"] == "3"
    assert dict(told["tags"])["numOfAddFiles"] == "2"
    (named,) = rows["sidecar"]
    assert sidecar.endswith(f"_sidecars/{named['path']}")
    assert named["sizeInBytes"] == len(store.get(sidecar))
    assert (rows["add"], rows["remove"]) == ([], [])
    inside = parquet(store, sidecar)
    assert [inside[name].drop_null().length() for name in ("add", "remove")] == [2, 1]
    hint = json.loads(store.get("_delta_log/_last_checkpoint"))
    assert (hint["version"], hint["size"], hint["numOfAddFiles"]) == (4, 7, 2)


def test_v2_of_a_table_without_files_has_no_sidecar():
    store = builder(**V2).checkpoint().write()
    assert listed(store, "_sidecars") == []
    assert cleaned(store).snapshot().to_arrow().num_rows == 0


def test_a_policy_without_its_feature_is_not_followed():
    metadata = json.loads(builder().write().get(f"_delta_log/{0:020d}.json").splitlines()[-1])
    metadata["metaData"]["configuration"] = V2
    store = builder().commit(metadata).checkpoint().write()
    assert find_segment(store).checkpoints == ((checkpoint_path(1),),)


def test_large_tables_have_sidecars_and_row_groups_of_bounded_size():
    store = builder(**V2).append(times=11).write()
    state, _ = load_state(store, limits=Limits())
    write_checkpoint(store, state, clock=ManualClock(), block_rows=2, blocks_per_sidecar=2)
    sidecars = [pq.ParquetFile(pa.BufferReader(store.get(p))) for p in listed(store, "_sidecars")]
    assert sorted(sidecar.metadata.num_rows for sidecar in sidecars) == [3, 4, 4]
    assert {sidecar.metadata.num_row_groups for sidecar in sidecars} == {2}
    assert len(cleaned(store).snapshot().files()) == 11


def test_checkpoint_after_checkpoint_row_groups_stay_full():
    table = builder().build()
    for n in range(12):
        table.append(pa.table({"n": [n]}))
        table.checkpoint()
    last = pq.ParquetFile(pa.BufferReader(table.log.store.get(checkpoint_path(12))))
    assert last.metadata.num_row_groups == 3  # protocol, metadata, files


def test_typed_columns_have_the_types_of_the_table_and_stand_in_for_json():
    store = builder(**TYPED).schema(SCHEMA).partitioned_by("day").append(ROWS).checkpoint().write()
    found = {row["partitionValues_parsed"]["day"]: row for row in files(store, 1)}
    row = found[date(2026, 1, 1)]
    assert "stats" not in row
    assert row["stats_parsed"] == {
        "numRecords": 1,
        "minValues": {"n": 1, "in": {"s": "a"}},
        "maxValues": {"n": 1, "in": {"s": "a"}},
        "nullCount": {"n": 0, "in": {"s": 0}, "list": 0},
    }
    assert found[None]["stats_parsed"]["nullCount"] == {"n": 1, "in": {"s": 1}, "list": 1}


def test_typed_columns_go_by_physical_names():
    mapped = {"delta.columnMapping.mode": "name", "delta.checkpoint.writeStatsAsStruct": "true"}
    table = builder(**mapped).schema(SCHEMA).partitioned_by("day").append(ROWS).checkpoint().build()
    row = files(table.log.store, 1)[0]
    stats = json.loads(str(row["stats"]))
    assert set(row["stats_parsed"]["nullCount"]) == set(stats["nullCount"])
    assert set(row["partitionValues_parsed"]) == dict(row["partitionValues"]).keys()
    assert "day" not in row["partitionValues_parsed"]


@pytest.mark.parametrize(
    ("properties", "columns"),
    [
        ({"delta.dataSkippingNumIndexedCols": "1"}, {"day"}),
        ({"delta.dataSkippingNumIndexedCols": "0"}, set()),
        ({"delta.dataSkippingNumIndexedCols": "-1"}, {"day", "n", "in", "list"}),
        ({"delta.dataSkippingStatsColumns": "n,`in`.s"}, {"n", "in"}),
    ],
)
def test_typed_statistics_are_of_the_columns_that_the_table_keeps_them_of(properties, columns):
    store = builder(**TYPED, **properties).schema(SCHEMA).append(ROWS).checkpoint().write()
    found = files(store, 1)[0]["stats_parsed"]
    assert set(found.get("nullCount", {})) == columns


def test_without_json_and_types_there_are_no_statistics():
    properties = {"delta.checkpoint.writeStatsAsJson": "false"}
    table = builder(**properties).append(3).checkpoint().build()
    assert [add.stats for add in table.snapshot().files()] == [None]
    assert table.snapshot().to_arrow().num_rows == 3


def test_a_property_that_can_not_be_read_does_not_stop_checkpoints():
    metadata = json.loads(builder().write().get(f"_delta_log/{0:020d}.json").splitlines()[-1])
    metadata["metaData"]["configuration"] = {
        "delta.checkpointPolicy": "v9",
        "delta.checkpoint.writeStatsAsJson": "perhaps",
        "delta.deletedFileRetentionDuration": "a while",
        "delta.setTransactionRetentionDuration": "never",
    }
    table = builder().append(txn=sl.SetTransaction("a", 1)).commit(metadata).build()
    assert table.checkpoint() == 2
    assert table.snapshot().txn_version("a") == 1


def marked(*idle_days: int, retention: str = "interval 10 days"):
    """A table whose markers have been idle for so many days, the last one least."""
    base = builder(**{"delta.setTransactionRetentionDuration": retention})
    for before, after in zip(idle_days, [*idle_days[1:], 0], strict=True):
        base = base.append(txn=sl.SetTransaction(f"idle-{before}", 1))
        base = base.wait((before - after) * 86_400)
    return base


def markers(store) -> set[str]:
    return set(cleaned(store).snapshot().markers)


def test_markers_expire_where_the_table_says_so():
    assert markers(marked(11, 9, 0).checkpoint().write()) == {"idle-9", "idle-0"}
    assert markers(builder().append(txn=sl.SetTransaction("a", 1)).wait(9**9).checkpoint().write())


def test_a_clock_that_jumps_ahead_forgets_no_marker():
    assert markers(marked(3, 0).wait(86_400 * 3650).checkpoint().write()) == {"idle-3", "idle-0"}


def test_a_marker_that_does_not_tell_its_time_never_expires():
    timeless = {"txn": {"appId": "spark", "version": 1}}
    store = marked(11).commit(timeless).append(txn=sl.SetTransaction("new", 1)).checkpoint().write()
    assert markers(store) == {"spark", "new"}


def test_a_version_that_has_a_checkpoint_gets_no_other_one():
    store = CountingStore(builder(**V2).append(times=2).checkpoint().write())
    assert sl.Table(Log(store)).checkpoint() == 2
    assert not [path for method, path in store.requests if method == "put" and "_log" in path]


def test_a_checkpoint_that_can_not_be_read_is_written_anew():
    store = builder().append(times=2).checkpoint().corrupt("*.checkpoint.parquet").write()
    assert sl.Table(Log(store)).checkpoint() == 2
    assert cleaned(store).snapshot().to_arrow()["n"].to_pylist() == [0, 1]


def test_a_checksum_comes_with_each_checkpoint_and_is_never_replaced():
    store = CountingStore(builder().append(times=2).write())
    sl.Table(Log(store)).checkpoint()
    found = read_checksum(store, 2)
    assert (found.num_files, found.num_metadata, found.num_protocol) == (2, 1, 1)
    assert found.table_size_bytes == Log(store).snapshot().files().size_bytes
    state, _ = load_state(store, limits=Limits())
    write_checkpoint(store, state, clock=ManualClock())
    puts = Counter(path for method, path in store.requests if method == "put_if_absent")
    assert puts[f"_delta_log/{2:020d}.crc"] == 2
    assert read_checksum(store, 2) == found


def test_the_checksum_of_a_table_with_in_commit_timestamps_tells_them():
    store = builder(**{"delta.enableInCommitTimestamps": "true"}).append().checkpoint().write()
    commit = json.loads(store.get(f"_delta_log/{1:020d}.json").splitlines()[0])
    told = read_checksum(store, 1).in_commit_timestamp_opt
    assert told == commit["commitInfo"]["inCommitTimestamp"]


def test_a_commit_stays_two_requests_between_checkpoints():
    store = CountingStore(builder().write())
    table = sl.Table(Log(store))
    table.append(pa.table({"n": [1]}))
    before = len(store.requests)
    table.append(pa.table({"n": [2]}))
    assert len(store.requests) == before + 2


def test_clean_up_keeps_the_sidecars_that_a_checkpoint_needs():
    day = {"delta.logRetentionDuration": "interval 1 day", "delta.checkpointInterval": "1000"}
    base = builder(**V2, **day).append(times=2).checkpoint().append().wait(5 * 86_400)
    table = base.append().checkpoint().wait(5 * 86_400).append().checkpoint().build()
    assert find_segment(table.log.store, hinted=False).checkpoint_versions == (5, 5, 4, 4)
    assert len(listed(table.log.store, "_sidecars")) == 2
    assert table.snapshot(version=4).to_arrow()["n"].to_pylist() == [0, 1, 2, 3]
    assert cleaned(table.log.store).snapshot().to_arrow()["n"].to_pylist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("properties", "codec"),
    [({}, "SNAPPY"), ({"delta.parquet.compression.codec": "zstd"}, "ZSTD"),
     ({"delta.parquet.format.version": "2.12.0"}, "SNAPPY")],
)  # fmt: skip
def test_checkpoints_are_compressed_as_the_table_asks(properties, codec):
    store = builder(**properties).append().checkpoint().write()
    found = pq.ParquetFile(pa.BufferReader(store.get(checkpoint_path(1)))).metadata
    groups = [found.row_group(number) for number in range(found.num_row_groups)]
    assert {group.column(0).compression for group in groups} == {codec}
    assert cleaned(store).snapshot().to_arrow()["n"].to_pylist() == [0]


def flipped(data: bytes) -> bytes:
    """One bit of a path turned over, in its page and not in the footer's statistics."""
    at = data.index(b".parquet") - 5
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def test_a_flipped_bit_in_a_checkpoint_is_found_out_and_passed_over():
    plain = {"delta.parquet.compression.codec": "uncompressed"}
    table = builder(**plain).append().checkpoint()
    store = table.corrupt("*.checkpoint.parquet", flipped).write()
    assert sl.Table(Log(store)).snapshot().to_arrow()["n"].to_pylist() == [0]
    with pytest.raises(sl.CorruptTableError, match="CRC"):
        cleaned(store).snapshot()
