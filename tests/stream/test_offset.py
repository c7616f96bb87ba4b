"""Positions: Delta's JSON to the byte, markers, order, and what is refused."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamlake as sl

ID = "7b1e4a9c-0c3f-4f0e-8a57-2b6d0f3f8c11"
offsets = st.builds(
    sl.Offset,
    reservoir_id=st.just(ID),
    reservoir_version=st.integers(0, 2**38 - 1),
    index=st.integers(-1, 2**24 - 2),
    is_starting_version=st.booleans(),
    rows_done=st.integers(0, 2**40),
)
whole = offsets.map(
    lambda o: sl.Offset(
        reservoir_id=ID,
        reservoir_version=o.reservoir_version,
        index=o.index,
        is_starting_version=o.is_starting_version,
    )
)


def text(**changes):
    fields = {
        "sourceVersion": "1",
        "reservoirId": f'"{ID}"',
        "reservoirVersion": "3",
        "index": "-1",
        "isStartingVersion": "false",
    } | changes
    return "{" + ",".join(f'"{key}":{value}' for key, value in fields.items() if value) + "}"


def test_the_json_is_that_of_deltas_spark_source():
    offset = sl.Offset(reservoir_id=ID, reservoir_version=42)
    assert offset.to_json() == (
        f'{{"sourceVersion":1,"reservoirId":"{ID}","reservoirVersion":42,"index":-1,'
        '"isStartingVersion":false}'
    )


def test_rows_done_follows_where_an_offset_stands_inside_a_file():
    offset = sl.Offset(reservoir_id=ID, reservoir_version=0, index=3, rows_done=7)
    assert offset.to_json().endswith('"index":3,"isStartingVersion":false,"rowsDone":7}')


@given(offsets)
def test_json_reads_back(offset):
    assert sl.Offset.from_json(offset.to_json()) == offset
    assert sl.Offset.from_json(offset.to_json().encode()) == offset


def test_json_may_be_decoded_already_and_in_any_order():
    fields = {
        "index": 0,
        "isStartingVersion": True,
        "reservoirVersion": 5,
        "reservoirId": ID,
        "sourceVersion": 1,
    }
    assert sl.Offset.from_json(fields) == sl.Offset(
        reservoir_id=ID, reservoir_version=5, index=0, is_starting_version=True
    )


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "null",
        "[]",
        "7",
        "{",
        b"\xff",
        text(sourceVersion=""),
        text(sourceVersion="2"),
        text(sourceVersion="4"),
        text(sourceVersion="true"),
        text(sourceVersion='"1"'),
        text(reservoirId='""'),
        text(reservoirId="5"),
        text(reservoirVersion="-1"),
        text(reservoirVersion="1.5"),
        text(reservoirVersion="9223372036854775808"),
        text(reservoirVersion=""),
        text(index="-2"),
        text(index="-20"),
        text(index='"0"'),
        text(index="true"),
        text(isStartingVersion="0"),
        text(rowsDone="-1"),
        text(rowsDone="null"),
        text(somethingNew="1"),
    ],
)
def test_what_is_no_offset_is_refused(bad):
    with pytest.raises(sl.InvalidInputError):
        sl.Offset.from_json(bad)


@pytest.mark.parametrize("index", ["-20", "-19"])
def test_an_offset_at_a_schema_change_is_refused_by_name(index):
    with pytest.raises(sl.InvalidInputError, match="change of the table's schema"):
        sl.Offset.from_json(text(sourceVersion="3", index=index))


@given(whole)
def test_a_marker_reads_back(offset):
    marker = offset.to_marker()
    assert 0 <= marker < 2**63
    assert sl.Offset.from_marker(marker, ID) == offset


def test_a_marker_is_version_index_and_snapshot_flag():
    offset = sl.Offset(reservoir_id=ID, reservoir_version=5, index=2, is_starting_version=True)
    assert offset.to_marker() == ((5 << 24) | 3) << 1 | 1


@given(whole, whole)
def test_markers_keep_the_order_of_positions(left, right):
    assert (left < right) == (left.to_marker() < right.to_marker())


@pytest.mark.parametrize(
    "changes", [{"rows_done": 1}, {"index": 2**24 - 1}, {"reservoir_version": 2**38}]
)
def test_a_position_that_does_not_fit_a_marker_is_refused(changes):
    fields = {"reservoir_id": ID, "reservoir_version": 0} | changes
    with pytest.raises(sl.InvalidInputError):
        sl.Offset(**fields).to_marker()


@pytest.mark.parametrize("marker", [-1, 2**63, True, 1.0])
def test_what_is_no_marker_is_refused(marker):
    with pytest.raises(sl.InvalidInputError):
        sl.Offset.from_marker(marker, ID)


def test_positions_are_ordered_by_version_file_and_row():
    steps = [
        sl.Offset(reservoir_id=ID, reservoir_version=1),
        sl.Offset(reservoir_id=ID, reservoir_version=1, rows_done=5),
        sl.Offset(reservoir_id=ID, reservoir_version=1, index=0),
        sl.Offset(reservoir_id=ID, reservoir_version=1, index=0, rows_done=1),
        sl.Offset(reservoir_id=ID, reservoir_version=2),
    ]
    assert sorted([steps[i] for i in (4, 2, 0, 3, 1)]) == steps
    assert steps[0] <= steps[0]
    assert steps[1] >= steps[0]
    assert steps[4] > steps[0]


def test_positions_of_two_tables_have_no_order():
    mine, other = (sl.Offset(reservoir_id=i, reservoir_version=1) for i in ("a", "b"))
    with pytest.raises(sl.InvalidInputError, match="two tables"):
        assert mine < other


def test_after_a_version_is_before_the_next():
    assert sl.Offset.after_version(6, ID) == sl.Offset(reservoir_id=ID, reservoir_version=7)


def test_an_offset_is_a_value():
    offset = sl.Offset(reservoir_id=ID, reservoir_version=7, index=1)
    assert pickle.loads(pickle.dumps(offset)) == offset  # noqa: S301 -- our own bytes
    assert len({offset, sl.Offset(reservoir_id=ID, reservoir_version=7, index=1)}) == 1
