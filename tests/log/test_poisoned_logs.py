"""Commits that a sound writer would not make: told by a typed error, never read or written over."""

import msgspec
import pyarrow as pa
import pytest

import streamlake as sl
from streamlake.log import Log
from streamlake.protocol import Action, CommitInfo, Metadata, Protocol, commit_path, encode_actions
from streamlake.testing import Fault, FaultyStore, TableBuilder

ROW = pa.table({"n": pa.array([1], pa.int64())})
MAPPED = {"delta.columnMapping.mode": "name"}


def commit(table: sl.Table, *actions: Action) -> None:
    """The next version, as another writer makes it."""
    version = table.log.refresh().version + 1
    data = encode_actions([CommitInfo({"operation": "POISON"}), *actions])
    table.log.store.put(commit_path(version), data)


def swapped(table: sl.Table) -> Metadata:
    """The same metadata under another id."""
    metadata = table.log.head.metadata
    return Metadata(
        id="another",
        schema_string=metadata.schema_string,
        partition_columns=metadata.partition_columns,
        configuration=metadata.configuration,
    )


@pytest.mark.parametrize(
    "downgraded", [Protocol(1, 2), Protocol(1, 7, writer_features=("appendOnly",))]
)
def test_a_protocol_that_forgets_the_mapping_of_columns_is_refused(downgraded):
    table = TableBuilder().properties(MAPPED).append(2).build()
    reader = sl.Table(Log(table.log.store))
    assert reader.snapshot().to_arrow()["n"].to_pylist() == [0, 1]
    commit(table, downgraded)
    for attempt in (table.log.refresh, reader.snapshot, Log(table.log.store).refresh):
        with pytest.raises(sl.CorruptTableError, match="protocol does not say so"):
            attempt()
    with pytest.raises(sl.CorruptTableError, match="protocol does not say so"):
        list(sl.Table(Log(table.log.store)).tail(start=0, stop=2))


def test_what_was_there_before_the_downgrade_is_still_read():
    table = TableBuilder().properties(MAPPED).append(2).build()
    commit(table, Protocol(1, 2))
    assert sl.Table(Log(table.log.store)).snapshot(1).to_arrow().num_rows == 2


@pytest.mark.parametrize(
    ("protocol", "error"),
    [
        (Protocol(0, 0), sl.CorruptTableError),
        (Protocol(3, 7, None, ("appendOnly",)), sl.CorruptTableError),
        (Protocol(3, 2, ("columnMapping",)), sl.CorruptTableError),
        (Protocol(4, 7, (), ()), sl.UnsupportedFeatureError),
        (Protocol(3, 7, ("x",), ("x",)), sl.UnsupportedFeatureError),
    ],
)
def test_a_protocol_that_nobody_can_honour_stops_readers_and_writers(protocol, error):
    table = TableBuilder().append().build()
    writer = sl.Table(Log(table.log.store))
    writer.append(ROW)
    commit(table, protocol)
    with pytest.raises(error):
        Log(table.log.store).refresh()
    with pytest.raises((error, sl.ProtocolChangedError)):
        writer.append(ROW)
    with pytest.raises(error):
        table.snapshot()


def test_an_unknown_writer_feature_stops_writers_and_clean_ups_but_no_reader():
    table = TableBuilder().append(3).build()
    commit(table, Protocol(1, 7, writer_features=("fromTheFuture",)))
    fresh = sl.Table(Log(table.log.store))
    assert fresh.snapshot().to_arrow().num_rows == 3
    for write in (lambda: fresh.append(ROW), fresh.clean_log):
        with pytest.raises(sl.UnsupportedFeatureError, match="fromTheFuture"):
            write()


def test_rows_staged_for_one_table_do_not_land_in_the_one_that_took_its_place():
    table = TableBuilder().append().build()
    writer = sl.Table(Log(table.log.store))
    stager = writer.stager()
    files = stager.stage(ROW)
    commit(table, swapped(table))
    with pytest.raises(sl.MetadataChangedError, match=r"(?s)made anew.*another"):
        writer.commit_staged(files, staged_by=stager)
    writer.log.refresh()
    with pytest.raises(sl.MetadataChangedError, match="made anew"):
        writer.commit_staged(files, staged_by=stager)
    assert writer.append(ROW).version == 3
    assert writer.id == "another"


def test_a_tail_stops_where_another_table_took_the_place():
    table = TableBuilder().append().build()
    commit(table, swapped(table))
    with pytest.raises(sl.TableReplacedError):
        list(sl.Table(Log(table.log.store)).tail(start=0, stop=2))


def test_a_store_that_fails_in_the_middle_of_a_read_fails_the_read():
    store = TableBuilder().append(times=6).build().log.store
    for nth in range(1, 8):
        faulty = FaultyStore(store, [Fault(kind="lost_before", method="get", nth=nth)])
        with pytest.raises(sl.StorageError):
            sl.Table(Log(faulty)).snapshot().to_arrow()


def test_a_partition_column_that_the_table_lacks_is_told_by_whoever_appends():
    table = TableBuilder().append().build()
    commit(table, msgspec.structs.replace(table.log.head.metadata, partition_columns=("gone",)))
    with pytest.raises(sl.CorruptTableError, match="partitioned by a column"):
        sl.Table(Log(table.log.store)).append(ROW)


NUMBERS_OF_VECTORS = [{"offset": 2**31}, {"offset": 2**70}, {"sizeInBytes": 2**31}]


@pytest.mark.parametrize("numbers", NUMBERS_OF_VECTORS)
def test_a_deletion_vector_with_numbers_that_none_has_is_told(numbers):
    vector = {"storageType": "u", "pathOrInlineDv": "v" * 20, "sizeInBytes": 4, "cardinality": 1}
    add = {
        "path": "x", "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True,
        "deletionVector": {**vector, **numbers},
    }  # fmt: skip
    store = TableBuilder().append().commit({"add": add}).write()
    with pytest.raises(sl.CorruptTableError, match="deletionVector"):
        sl.Table(Log(store)).snapshot()


def test_of_two_definitions_in_one_commit_all_handles_take_the_last():
    table = TableBuilder().append().build()
    metadata = table.log.head.metadata
    first, last = (msgspec.structs.replace(metadata, configuration={"n": n}) for n in "12")
    unknown = Protocol(1, 7, None, ("telepathy",))
    commit(table, first, last, Protocol(1, 2), unknown)
    seen, fresh = table.log.refresh(), Log(table.log.store).refresh()
    assert seen.metadata == fresh.metadata == last
    assert seen.protocol == fresh.protocol == unknown
    with pytest.raises(sl.UnsupportedFeatureError, match="telepathy"):
        table.append(ROW)
