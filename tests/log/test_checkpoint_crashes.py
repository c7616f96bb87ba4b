"""A checkpoint breaks off at any request: readers find the table, the next writer goes on."""

import pytest

import streamlake as sl
from streamlake.log import Log
from streamlake.log.segment import find_segment
from streamlake.testing import Fault, FaultyStore, ManualClock, TableBuilder

V2 = {"delta.checkpointPolicy": "v2"}
FIVE = TableBuilder(clock=ManualClock()).append(times=3).checkpoint().append(times=2)


def numbers(store) -> list[int | None]:
    return sl.Table(Log(store)).snapshot().to_arrow()["n"].to_pylist()


@pytest.mark.parametrize("kind", ["lost_before", "lost_after"])
@pytest.mark.parametrize(
    ("properties", "paths"),
    [
        ({}, ["checkpoint.parquet", "_last_checkpoint", ".crc"]),
        (V2, ["_sidecars", "5.checkpoint.parquet", "5.checkpoint.", "_last_checkpoint", ".crc"]),
    ],
)
def test_a_checkpoint_cut_off_at_any_put_leaves_the_table_whole(properties, paths, kind):
    for path in paths:
        store = FIVE.properties(properties).write()
        method = "put_if_absent" if path == ".crc" else "put"
        cut = FaultyStore(store, [Fault(kind=kind, method=method, path=path)])
        try:
            sl.Table(Log(cut)).checkpoint()
        except sl.StorageError:
            assert path != ".crc"
        assert numbers(store) == [0, 1, 2, 3, 4]
        assert sl.Table(Log(store)).checkpoint() == 5
        assert find_segment(store).checkpoint_versions[0] == 5
        for version in range(6):
            store.delete(f"_delta_log/{version:020d}.json")
        assert numbers(store) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("properties", [{}, V2])
def test_a_checkpoint_that_landed_without_its_hint_is_found_by_a_listing(properties):
    store = FIVE.properties(properties).write()
    cut = FaultyStore(store, [Fault(kind="lost_before", method="put", path="_last_checkpoint")])
    with pytest.raises(sl.StorageError):
        sl.Table(Log(cut)).checkpoint()
    assert find_segment(store).checkpoint_versions[0] == 5


@pytest.mark.parametrize("properties", [{}, V2])
def test_two_writers_of_one_checkpoint_do_not_disturb_one_another(properties):
    store = FIVE.properties(properties).write()
    one, two = sl.Table(Log(store)), sl.Table(Log(store))
    opened = one.snapshot()
    assert (one.checkpoint(), two.checkpoint()) == (5, 5)
    reader = sl.Table(Log(store)).snapshot()
    assert one.checkpoint() == 5
    for version in range(6):
        store.delete(f"_delta_log/{version:020d}.json")
    assert reader.to_arrow()["n"].to_pylist() == [0, 1, 2, 3, 4]
    assert opened.to_arrow()["n"].to_pylist() == [0, 1, 2, 3, 4]
    assert numbers(store) == [0, 1, 2, 3, 4]


def test_a_checkpoint_of_a_table_that_can_not_be_verified_is_not_written():
    store = FIVE.corrupt(f"_delta_log/{4:020d}.json").write()
    with pytest.raises(sl.CorruptTableError, match=r"4\.json"):
        sl.Table(Log(store)).checkpoint()
    assert find_segment(store).checkpoint_versions == (3,)
