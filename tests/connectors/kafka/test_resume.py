"""Where reading begins, for every relation of position, span, group and wish."""

from __future__ import annotations

import pytest

import streamlake as sl
from streamlake.testing import ManualClock
from streamlake_kafka import KafkaSource, ReadLimits
from streamlake_kafka.parts import GAP_DELAY_S, Part, Progress, Span
from streamlake_kafka.resume import ResumeRules, begin_after, resume_after

PART = Part("orders", 3)
TEN_TO_TWENTY = Span(low=10, high=20)
LENIENT = ResumeRules(fail_on_data_loss=False)


@pytest.mark.parametrize("position", [9, 10, 19])
def test_a_stored_position_is_where_reading_resumes(position: int) -> None:
    assert resume_after(PART, position, TEN_TO_TWENTY, ResumeRules()) == position


def test_a_position_below_what_is_left_is_a_loss() -> None:
    with pytest.raises(sl.OffsetOutOfRangeError, match="removed offsets 9 to 9 of orders/3"):
        resume_after(PART, 8, TEN_TO_TWENTY, ResumeRules())
    assert resume_after(PART, 8, TEN_TO_TWENTY, LENIENT) == 9


def test_a_position_at_or_beyond_the_end_is_never_put_up_with() -> None:
    for rules in (ResumeRules(), LENIENT):
        with pytest.raises(sl.OffsetOutOfRangeError, match="position 20 of orders/3 is beyond"):
            resume_after(PART, 20, TEN_TO_TWENTY, rules)


@pytest.mark.parametrize(
    ("start", "position"),
    [
        ("earliest", 9),
        ("latest", 19),
        ({}, 9),
        ({"orders": {}}, 9),
        ({"orders": {3: -2}}, 9),
        ({"orders": {3: -1}}, 19),
        ({"orders": {3: 10}}, 9),
        ({"orders": {3: 15}}, 14),
        ({"orders": {3: 20}}, 19),
    ],
)
def test_without_a_position_the_start_decides(start: object, position: int) -> None:
    rules = ResumeRules(start=start)  # type: ignore[arg-type] # parametrized
    assert begin_after(PART, TEN_TO_TWENTY, None, rules) == position


def test_a_start_outside_of_what_is_there_is_refused() -> None:
    for offset in (9, 21):
        with pytest.raises(sl.OffsetOutOfRangeError):
            begin_after(PART, TEN_TO_TWENTY, None, ResumeRules(start={"orders": {3: offset}}))


def test_a_missing_position_that_the_group_tells_of_is_an_error() -> None:
    with pytest.raises(sl.SourceError, match="no position of orders/3") as missing:
        begin_after(PART, TEN_TO_TWENTY, 15, ResumeRules())
    assert missing.value.found == "the group's next offset is 15"
    assert "ignore_group_offsets=True" in missing.value.remedy


def test_a_group_that_has_read_nothing_does_not_count() -> None:
    assert begin_after(PART, TEN_TO_TWENTY, 0, ResumeRules()) == 9
    assert begin_after(PART, TEN_TO_TWENTY, 15, ResumeRules(ignore_group_offsets=True)) == 9


@pytest.mark.parametrize("start", ["newest", {"orders": {0: -3}}, {"orders": {0: 2**63}}])
def test_a_start_that_can_not_be_meant_is_refused(start: object) -> None:
    with pytest.raises(sl.InvalidInputError):
        ResumeRules(start=start)  # type: ignore[arg-type] # parametrized


def test_positions_are_told_once_and_never_go_back() -> None:
    progress = Progress(ManualClock())
    progress.seat(PART, 4, is_stored=True)
    progress.advance(PART, 7)
    progress.advance(PART, 5)
    assert progress.tell() == {"orders/3": 7}
    assert progress.tell() == {}


def test_what_is_noted_of_others_is_told_once_and_at_once() -> None:
    progress = Progress(ManualClock())
    progress.seat(PART, 4, is_stored=True)
    progress.note({Part("orders", 1): 6, Part("orders", 2): -1})
    assert progress.is_due()
    assert progress.tell() == {"orders/1": 6}
    assert progress.tell() == {}
    assert progress.positions() == {PART: 4}


def test_the_latest_stands_for_the_earliest_once_a_position_of_the_topic_is_stored() -> None:
    for start in ("latest", {"orders": {3: -1}}):
        settled = ResumeRules(start=start).settled()  # type: ignore[arg-type] # both are starts
        assert begin_after(PART, TEN_TO_TWENTY, None, settled) == 9
    by_offset = ResumeRules(start={"orders": {3: 15}}).settled()
    assert begin_after(PART, TEN_TO_TWENTY, None, by_offset) == 14


def test_parts_that_are_not_ours_do_not_move() -> None:
    progress = Progress(ManualClock())
    progress.advance(PART, 7)
    assert progress.tell() == {}


def test_a_gap_waits_some_seconds_for_rows_to_travel_with() -> None:
    clock = ManualClock()
    progress = Progress(clock)
    progress.seat(PART, 4, is_stored=True)
    progress.advance(PART, 7)
    assert not progress.is_due()
    clock.advance(GAP_DELAY_S)
    assert progress.is_due()
    progress.tell()
    assert not progress.is_due()


@pytest.mark.parametrize(
    ("config", "options"),
    [
        ({}, {"topics": ["orders"]}),
        ({"bootstrap.servers": "x:1"}, {"topics": []}),
        ({"bootstrap.servers": "x:1"}, {"topics": "orders"}),
        ({"bootstrap.servers": "x:1"}, {"topics": ["orders"], "group": True}),
        ({"bootstrap.servers": "x:1"}, {"topics": ["orders"], "stop": "now"}),
        ({"bootstrap.servers": "x:1"}, {"topics": ["orders"], "start": "now"}),
    ],
)
def test_what_can_never_work_is_refused_before_anything_is_connected(
    config: dict[str, str], options: dict[str, object]
) -> None:
    with pytest.raises(sl.InvalidInputError):
        KafkaSource(config, **options)  # type: ignore[arg-type] # parametrized


@pytest.mark.parametrize("bounds", [{"max_batch_rows": 0}, {"linger_s": -1}])
def test_bounds_that_let_nothing_through_are_refused(bounds: dict[str, int]) -> None:
    with pytest.raises(sl.InvalidInputError):
        ReadLimits(**bounds)


def test_large_messages_make_small_chunks() -> None:
    limits = ReadLimits(max_batch_rows=100_000, max_batch_bytes=10_000_000)
    assert limits.chunk_rows(0, 0) == 500
    assert limits.chunk_rows(500, 50_000) == 10_000
    assert limits.chunk_rows(5, 5_000_000) == 5
    assert limits.chunk_rows(9, 9_999_999) == 1
