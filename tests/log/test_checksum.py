"""Version checksum files: what they contradict is never served."""

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamlake as sl
from log.checkpoints import parquet
from streamlake.log import Log
from streamlake.log.checkpoint.checksum import VersionChecksum, read_checksum
from streamlake.protocol import Protocol, checkpoint_path, checksum_path
from streamlake.testing import CountingStore, ManualClock, TableBuilder

THREE = TableBuilder(clock=ManualClock()).append(times=3)


def checksum_of(store, **changes) -> VersionChecksum:
    """The right checksum of the newest version, but for what is given."""
    snapshot = Log(store).snapshot()
    right = {
        "table_size_bytes": snapshot.files().size_bytes,
        "num_files": len(snapshot.files()),
        "num_metadata": 1,
        "num_protocol": 1,
        "metadata": snapshot.metadata,
        "protocol": snapshot.protocol,
    }
    return VersionChecksum(**(right | changes))


def put(store, checksum: VersionChecksum, version: int = 3):
    store.put(checksum_path(version), msgspec.json.encode(checksum))


def numbers(store, version: int | None = None) -> list[int | None]:
    return sl.Table(Log(store)).snapshot(version).to_arrow()["n"].to_pylist()


def other_metadata(**changes):
    return lambda store: {
        "metadata": msgspec.structs.replace(Log(store).snapshot().metadata, **changes)
    }


def test_a_checksum_that_fits_costs_one_request():
    store = THREE.write()
    put(store, checksum_of(store))
    counting = CountingStore(store)
    assert numbers(counting) == [0, 1, 2]
    assert [path for _, path in counting.requests].count(checksum_path(3)) == 1


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (lambda _: {"num_files": 4}, "3 files, where the checksum says 4"),
        (lambda _: {"num_files": 2}, "3 files, where the checksum says 2"),
        (lambda _: {"table_size_bytes": 1}, "bytes, where the checksum says 1"),
        (lambda _: {"num_metadata": 2}, "2 metaData"),
        (lambda _: {"protocol": Protocol(1, 4)}, "another protocol"),
        (other_metadata(id="x"), "another metaData"),
        (other_metadata(configuration={"a": "b"}), "another metaData"),
        (other_metadata(schema_string='{"type":"struct","fields":[]}'), "another metaData"),
        (other_metadata(schema_string="{"), "another metaData"),
    ],
)
def test_a_state_that_its_checksum_contradicts_is_refused_with_each_difference(changes, said):
    store = THREE.write()
    put(store, checksum_of(store, **changes(store)))
    with pytest.raises(sl.CorruptTableError, match=said) as caught:
        numbers(store)
    assert "version 3" in caught.value.where
    assert "delete it" in caught.value.remedy


def test_other_versions_are_read_whatever_it_says():
    store = THREE.append().write()
    put(store, checksum_of(store, num_files=9))
    assert numbers(store) == [0, 1, 2, 3]
    assert numbers(store, 2) == [0, 1]
    with pytest.raises(sl.CorruptTableError):
        numbers(store, 3)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b"\xff", b"[" * 100_000])
def test_a_garbled_checksum_counts_as_none(data):
    store = THREE.put(checksum_path(3), data).write()
    assert read_checksum(store, 3) is None
    assert numbers(store) == [0, 1, 2]


def test_features_in_another_order_and_a_schema_spelt_otherwise_are_the_same():
    store = TableBuilder().properties({"delta.feature.vacuumProtocolCheck": "supported"}).write()
    found = Log(store).snapshot()
    protocol = msgspec.structs.replace(
        found.protocol, writer_features=tuple(reversed(found.protocol.writer_features))
    )
    schema = msgspec.json.format(found.metadata.schema_string.encode()).decode()
    metadata = msgspec.structs.replace(found.metadata, schema_string=schema, created_time=None)
    put(store, checksum_of(store, protocol=protocol, metadata=metadata), 0)
    assert numbers(store) == []


def test_an_old_checksum_without_protocol_and_metadata_is_compared_by_its_numbers():
    store = THREE.write()
    put(store, checksum_of(store, protocol=None, metadata=None))
    assert numbers(store) == [0, 1, 2]
    put(store, checksum_of(store, protocol=None, metadata=None, num_files=0))
    with pytest.raises(sl.CorruptTableError, match="where the checksum says 0"):
        numbers(store)


def test_a_sound_checkpoint_that_lost_a_file_is_found_out_and_passed_over():
    store = THREE.checkpoint().write()
    put(store, checksum_of(store))
    path = checkpoint_path(3)
    rows = pq.read_table(pa.BufferReader(store.get(path)))
    store.put(path, parquet(rows.slice(0, len(rows) - 1)))
    assert numbers(store) == [0, 1, 2]
    sl.Table(Log(store)).append(pa.table({"n": [3]}))
    assert numbers(store) == [0, 1, 2, 3]
    for version in range(4):
        store.delete(f"_delta_log/{version:020d}.json")
    with pytest.raises(sl.CorruptTableError, match="2 files, where the checksum says 3"):
        numbers(store)
