"""Which files make up a version: checkpoints of every kind, hints that are wrong in every way."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamlake as sl
from log.checkpoints import UUID, multi_part, parquet, v2
from streamlake.log import Log, LogSegment, find_segment
from streamlake.protocol import json_checksum
from streamlake.storage import MemoryStore
from streamlake.testing import CountingStore, TableBuilder

HINT = "_delta_log/_last_checkpoint"
LATE = TableBuilder().append(times=4).checkpoint().append(times=2)
"""Versions 0 to 6 with a checkpoint at 4; n is 0 to 5."""


def numbers(store) -> list[int | None]:
    return sl.Table(Log(store)).snapshot().to_arrow()["n"].to_pylist()


def checkpoint_name(version: int, rest: str = "") -> str:
    return f"_delta_log/{version:020d}.checkpoint{rest}.parquet"


@pytest.mark.parametrize("parts", [1, 2, 7])
def test_a_multi_part_checkpoint_is_read_whole(parts):
    store = LATE.write()
    multi_part(store, 4, parts)
    for version in range(5):
        store.delete(f"_delta_log/{version:020d}.json")
    assert sorted(numbers(store)) == list(range(6))


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_a_multi_part_checkpoint_with_a_missing_part_is_passed_over(missing):
    store = LATE.write()
    store.delete(multi_part(store, 4, 3)[missing])
    assert find_segment(store).checkpoints == ()
    assert numbers(store) == list(range(6))


def test_parts_of_two_sets_do_not_complete_one_another():
    store = LATE.write()
    data = store.get(checkpoint_name(4))
    store.delete(multi_part(store, 4, 2)[1])
    store.put(checkpoint_name(4, ".0000000002.0000000003"), data)
    assert find_segment(store).checkpoints == ()


def test_a_multi_part_checkpoint_whose_parts_overlap_is_passed_over():
    store = LATE.write()
    data = store.get(checkpoint_name(4))
    for path in multi_part(store, 4, 2):
        store.put(path, data)
    assert numbers(store) == list(range(6))


def test_a_checkpoint_that_says_two_things_of_one_marker_is_passed_over():
    store = LATE.append(txn=sl.SetTransaction("a", 1)).checkpoint().write()
    rows = pq.read_table(pa.BufferReader(store.get(checkpoint_name(7))))
    store.put(checkpoint_name(7), parquet(pa.concat_tables([rows, rows.filter(marked(rows))])))
    assert numbers(store) == list(range(7))
    for version in range(8):
        store.delete(f"_delta_log/{version:020d}.json")
    store.delete(checkpoint_name(4))
    with pytest.raises(sl.CorruptTableError, match="two actions of txn a"):
        numbers(store)


def marked(rows: pa.Table):
    return rows["txn"].is_valid()


def test_of_one_version_that_comes_first_which_nobody_replaces():
    store = LATE.write()
    classic = store.get(checkpoint_name(4))
    parts = multi_part(store, 4, 2)
    store.put(checkpoint_name(4), classic)
    uuid = v2(store, 4)
    store.put(checkpoint_name(4), classic)
    found = find_segment(store)
    assert found.checkpoints == ((uuid,), (checkpoint_name(4),), tuple(parts))
    assert found.checkpoint_versions == (4, 4, 4)


@pytest.mark.parametrize("damaged", [["json"], ["json", "4.checkpoint.parquet"]])
def test_of_one_version_the_next_serves_where_one_is_torn(damaged):
    store = LATE.write()
    classic = store.get(checkpoint_name(4))
    multi_part(store, 4, 2)
    store.put(checkpoint_name(4), classic)
    v2(store, 4)
    store.put(checkpoint_name(4), classic)
    for version in range(5):
        store.delete(f"_delta_log/{version:020d}.json")
    for meta in list(store.list_from("_delta_log/")):
        if "checkpoint" in meta.path and any(meta.path.endswith(end) for end in damaged):
            store.put(meta.path, store.get(meta.path)[:40])
    assert sorted(numbers(store)) == list(range(6))


def test_a_checkpoint_newer_than_the_hint_is_used():
    store = TableBuilder().append(times=2).checkpoint().append(times=2).checkpoint().write()
    store.put(HINT, b'{"version":2,"size":3}')
    assert find_segment(store).checkpoint_versions == (4, 2)
    assert numbers(store) == [0, 1, 2, 3]


def test_a_hint_above_the_version_asked_for_is_not_followed():
    store = TableBuilder().append(times=2).checkpoint().append(times=2).checkpoint().write()
    found = find_segment(store, 3)
    assert (found.version, found.checkpoint_versions) == (3, (2,))


@pytest.mark.parametrize(
    "hint",
    [
        b"", b"{", b"[]", b'{"size":1}', b'{"version":"4"}', b'{"version":-1}', b"\xff\xfe",
        b'{"version":99999999999999999999999}', b'{"version":3}', b'{"version":5}',
        b'{"version":4,"checksum":"00000000000000000000000000000000"}',
        b'{"version":4,"version":5,"checksum":"x"}', b"[" * 200_000,
        b'{"version":4,"v2Checkpoint":{"path":"gone.json","sidecarFiles":[{"path":"../../x"}]}}',
    ],
)  # fmt: skip
def test_whatever_the_hint_says_the_table_is_the_same(hint):
    store = LATE.put(HINT, hint).write()
    assert numbers(store) == list(range(6))
    assert find_segment(store).checkpoint_versions == (4,)


def test_a_hint_whose_checksum_fits_saves_the_listing_below():
    store = TableBuilder().append(times=6).checkpoint().append().write()
    hint = json.loads(store.get(HINT))
    assert hint["checksum"] == json_checksum(store.get(HINT))
    assert find_segment(store).commits == (6, 7)
    store.put(HINT, json.dumps({**hint, "version": 7}).encode())
    assert find_segment(store).commits == tuple(range(8))


def test_a_hint_of_many_megabytes_is_not_decoded():
    store = LATE.put(HINT, b'{"version":4,"x":"' + b"x" * 17_000_000 + b'"}').write()
    assert find_segment(store).commits == tuple(range(7))


@pytest.mark.parametrize(
    "name",
    [
        f"{4:020d}.checkpoint.0000000001.0000000001.tmp.parquet",
        f"{5:020d}.checkpoint.{UUID}.json.tmp",
        f"{5:020d}.checkpoint.not-a-uuid.parquet",
        f"{5:020d}.checkpoint.json",
        f"{5:020d}.checkpoint.0000000003.0000000002.parquet",
        f".{5:020d}.checkpoint.parquet.crc",
        f"_sidecars/{5:020d}.checkpoint.parquet",
        "99999999999999999999.checkpoint.parquet",
    ],
)
def test_names_that_are_no_checkpoint_are_passed_over(name):
    store = LATE.put(f"_delta_log/{name}", b"junk").write()
    assert find_segment(store).checkpoint_versions == (4,)
    assert numbers(store) == list(range(6))


def test_opening_from_a_hint_takes_as_many_requests_as_files():
    store = CountingStore(LATE.write())
    Log(store).refresh()
    assert len(store.requests) == 6  # hint, listing, size and bytes of the checkpoint, two commits


RANGES = st.lists(
    st.tuples(st.integers(0, 12), st.integers(1, 6)).map(lambda r: (r[0], r[0] + r[1])), max_size=6
)


@given(RANGES, st.integers(-1, 12))
def test_reads_cover_each_commit_once_with_the_fewest_files(ranges, base):
    compactions = tuple(sorted({r for r in ranges if r[1] <= 12}))
    segment = LogSegment(
        version=12,
        checkpoints=(),
        checkpoint_versions=(),
        commits=tuple(range(13)),
        commit_times_ms=(0,) * 13,
        compactions=compactions,
    )
    reads = segment.reads_after(base)
    covered = [version for first, last in reads for version in range(first, last + 1)]
    assert covered == list(range(base + 1, 13))
    assert all(first == last or (first, last) in compactions for first, last in reads)
    assert len(reads) == fewest(base + 1, compactions)


def fewest(first: int, compactions) -> int:
    if first > 12:
        return 0
    ends = [first, *(last for start, last in compactions if start == first)]
    return 1 + min(fewest(last + 1, compactions) for last in ends)


def test_a_table_of_checkpoints_alone_is_read():
    store = TableBuilder().append(times=3).checkpoint().write()
    for version in range(4):
        store.delete(f"_delta_log/{version:020d}.json")
    assert numbers(store) == [0, 1, 2]


def test_an_empty_log_folder_is_no_table():
    store = MemoryStore()
    store.put("_delta_log/_commits/x.json", b"")
    with pytest.raises(sl.TableNotFoundError):
        find_segment(store)


def test_files_that_are_no_commits_do_not_hide_a_gap():
    store = LATE.put(f"_delta_log/{4:020d}.{6:020d}.compacted.json", b"{}").write()
    store.delete(f"_delta_log/{5:020d}.json")
    store.delete(checkpoint_name(4))
    with pytest.raises(sl.LogGapError, match="Commit 5"):
        find_segment(store)


def test_a_table_is_not_made_over_a_v2_checkpoint():
    store = LATE.write()
    v2(store, 4)
    for meta in list(store.list_from("_delta_log/")):
        if meta.path.endswith("0.json") or not meta.path.startswith(f"_delta_log/{4:020d}.ch"):
            store.delete(meta.path)
    with pytest.raises(sl.TableExistsError):
        TableBuilder(store).schema(pa.schema([pa.field("n", pa.int64())])).write()
