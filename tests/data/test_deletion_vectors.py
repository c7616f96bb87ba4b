"""Rows that a deletion vector takes out of a file."""

import struct

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from data.deletion import NAME, framed, inline, native, portable, stored, z85
from streamlake.data import ReadLimits, iter_file, plain_columns, read_file
from streamlake.data.deletion_vectors import decode_bitmap, decode_z85, vector_path
from streamlake.errors import (
    CorruptTableError,
    InvalidInputError,
    LimitExceededError,
    TableError,
    UnsafePathError,
)
from streamlake.protocol import AddFile, DeletionVector
from streamlake.storage.memory import MemoryStore

TABLE = plain_columns(pa.schema([("id", pa.int64()), ("p", pa.int32())]), ("p",))
PORTABLE_EXAMPLE = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
"""The same rows, as Delta on Spark writes them today."""
EXAMPLE = "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
"""PROTOCOL.md, "JSON Example 3 — Inline"."""


@pytest.fixture
def store():
    return MemoryStore()


def add_of(store, rows, vector=None, **options):
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": range(rows)}), sink, **options)
    data = sink.getvalue()
    store.put("f.parquet", memoryview(data))
    stats = f'{{"numRecords":{rows}}}'
    add = AddFile("f.parquet", {"p": "7"}, len(data), 0, data_change=True, stats=stats)
    return msgspec.structs.replace(add, deletion_vector=vector)


def ids(store, add, **options):
    return read_file(store, add, TABLE, **options).column("id").to_pylist()


@pytest.mark.parametrize(("text", "size"), [(EXAMPLE, 40), (PORTABLE_EXAMPLE, 44)])
def test_the_inline_vector_of_the_protocol_deletes_its_rows(store, text, size):
    add = add_of(store, 40, DeletionVector("i", text, size, 6))
    left = [row for row in range(40) if row not in {3, 4, 7, 11, 18, 29}]
    assert ids(store, add) == left
    assert set(read_file(store, add, TABLE).column("p").to_pylist()) == {7}


@pytest.mark.parametrize("kind", ["u", "p"])
@pytest.mark.parametrize("folder", ["", "ab"])
def test_vectors_that_share_a_file_are_told_apart_by_their_offset(store, kind, folder):
    first, second = stored(store, [0, 1], [2], folder=folder, kind=kind)
    assert ids(store, add_of(store, 4, first)) == [2, 3]
    assert ids(store, add_of(store, 4, second)) == [0, 1, 3]


def test_a_relative_path_is_made_from_prefix_and_name():
    vector = DeletionVector("u", "ab^-aqEH.-t@S}K{vb[*k^", 40, 6, offset=4)
    assert vector_path(vector, root_url="s3://t") == f"ab/deletion_vector_{NAME}.bin"


@given(st.integers(1, 300), st.data(), st.integers(1, 50), st.integers(1, 50))
def test_what_is_left_is_read_from_any_row_on(rows, data, group_rows, batch_rows):
    store = MemoryStore()
    deleted = data.draw(st.sets(st.integers(0, rows - 1)))
    left = [row for row in range(rows) if row not in deleted]
    start = data.draw(st.integers(0, len(left)))
    add = add_of(store, rows, inline(deleted), row_group_size=group_rows)
    limits = ReadLimits(batch_rows=batch_rows)
    parts = list(iter_file(store, add, TABLE, start_row=start, limits=limits))
    assert all(0 < part.num_rows <= batch_rows for part in parts)
    assert [row for part in parts for row in part.column("id").to_pylist()] == left[start:]
    assert ids(store, add, limits=limits) == left
    assert read_file(store, add, TABLE, columns=[], limits=limits).num_rows == len(left)
    assert read_file(store, add, TABLE, columns=["p"]).num_rows == len(left)


def test_a_start_past_the_rows_that_are_left_is_refused(store):
    add = add_of(store, 3, inline([0, 1]))
    with pytest.raises(InvalidInputError, match="no row 2"):
        list(iter_file(store, add, TABLE, start_row=2))


@given(st.sets(st.integers(0, 2**20)), st.sets(st.integers(0, 2**32 - 1)))
def test_both_formats_of_bitmaps_are_read(low, high):
    both = low | {(1 << 32) + number for number in high}
    assert decode_bitmap(native(low, high)) == BitMap64(both)
    assert decode_bitmap(portable(both)) == BitMap64(both)


def test_a_native_vector_deletes_its_rows(store):
    assert ids(store, add_of(store, 4, inline([1, 2], native([1, 2])))) == [0, 3]


@given(st.binary(max_size=60).filter(lambda data: len(data) % 4 == 0))
def test_z85_is_decoded(data):
    assert decode_z85(z85(data)) == data


@pytest.mark.parametrize("text", ["abcd", "abc~d", "#####", "abcdé"])
def test_what_is_no_z85_is_told(text):
    with pytest.raises(ValueError, match="Z85"):
        decode_z85(text)


@pytest.mark.parametrize(
    ("vector", "found"),
    [
        (DeletionVector("i", EXAMPLE, 40, 5), "6 rows; the log says 5"),
        (DeletionVector("i", EXAMPLE, 36, 6), "40 bytes inline, not 36"),
        (DeletionVector("i", EXAMPLE, 44, 6), "40 bytes inline, not 44"),
        (DeletionVector("i", EXAMPLE, -1, 6), "-1 bytes"),
        (DeletionVector("i", EXAMPLE, 40, 6, offset=1), "inline vector with the offset"),
        (DeletionVector("i", EXAMPLE[:-1], 39, 6), "Z85"),
        (DeletionVector("i", z85(b"\x00" * 8), 8, 0), "begins with 00000000"),
        (DeletionVector("i", "", 0, 0), "too short"),
        (DeletionVector("u", "short", 40, 6), "type 'u' at 'short'"),
        (DeletionVector("u", "../" + z85(NAME.bytes), 40, 6), "folder '../'"),
        (DeletionVector("u", ".." + z85(NAME.bytes), 40, 6), "folder '..'"),
        (DeletionVector("x", EXAMPLE, 40, 6), "type 'x'"),
        (inline([40]), "40 rows; its deletion vector names row 40"),
        (inline([2**40]), "40 rows; its deletion vector names row"),
        (inline([1], native([1])[:-1]), "a bitmap of"),
        (inline([], struct.pack("<Ii", 1681511376, -1)), "-1 bitmaps"),
        (inline([], struct.pack("<Ii", 1681511376, 2**31 - 1)), "2147483647 bitmaps"),
    ],
)
def test_a_vector_that_contradicts_itself_or_the_log_is_corruption(store, vector, found):
    with pytest.raises(CorruptTableError) as error:
        ids(store, add_of(store, 40, vector))
    assert found in error.value.found
    assert "f.parquet" in error.value.where


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"\x01" + framed(portable([1]))[:-1] + b"x", "checksum"),
        (b"\x02" + framed(portable([1])), "version b'\\x02'"),
        (b"\x01" + framed(portable([1]))[:-1], "its file ends"),
        (b"\x01" + framed(portable([1]) + b"longer"), "bytes in its file, not"),
        (b"", "version b''"),
        (None, "its file is gone"),
    ],
)
def test_a_damaged_file_of_vectors_is_corruption(store, content, found):
    (vector,) = stored(store, [1])
    path = f"deletion_vector_{NAME}.bin"
    if content is None:
        store.delete(path)
    else:
        store.put(path, content)
    with pytest.raises(CorruptTableError) as error:
        ids(store, add_of(store, 4, vector))
    assert found in error.value.found


@given(st.binary(max_size=80), st.integers(0, 200), st.integers(0, 255))
def test_garbled_bitmaps_are_typed_errors_or_bitmaps(noise, at, value):
    whole = bytearray(portable([1, 5, 70_000, *range(200_000, 210_000)]))
    whole[4 + at % (len(whole) - 4)] = value
    for data in (bytes(whole), bytes(whole[:4]) + noise, native([1])[:4] + noise, noise):
        add = add_of(store := MemoryStore(), 5, inline([1], data))
        try:
            assert len(ids(store, add)) == 4
        except TableError:
            continue


def test_a_vector_past_the_limit_is_refused(store):
    limits = ReadLimits(deletion_vector_bytes=39)
    with pytest.raises(LimitExceededError, match="deletion_vector_bytes is 39"):
        ids(store, add_of(store, 40, DeletionVector("i", EXAMPLE, 40, 6)), limits=limits)


@pytest.mark.parametrize(
    "path",
    [
        "file:///etc/deletion_vector.bin",
        "s3://bucket/deletion_vector.bin",
        "{root}/../deletion_vector.bin",
        "{root}/%2e%2e/deletion_vector.bin",
        "{root}-evil/deletion_vector.bin",
    ],
)
def test_an_absolute_path_that_leaves_the_table_is_refused(store, path):
    at = path.replace("{root}", store.url.rstrip("/"))
    with pytest.raises(UnsafePathError):
        ids(store, add_of(store, 40, DeletionVector("p", at, 40, 6, offset=1)))
