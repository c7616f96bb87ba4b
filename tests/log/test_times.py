"""When versions were committed, by the store's times and by in-commit timestamps."""

import itertools
import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streamlake as sl
from streamlake.log import Definition, Timeline, commit_times, moment_ms, rising, utc_text
from streamlake.protocol import Metadata, Protocol, commit_path
from streamlake.storage import MemoryStore
from streamlake.testing import CountingStore, ManualClock

NAMES = itertools.count()
FEATURE = Protocol(1, 7, writer_features=("inCommitTimestamp",))
PLAIN = Protocol(1, 2)
TABLE = Metadata(id="t", schema_string="{}", partition_columns=())


def definition(newest: int, *, since: tuple[int, int] | None = None, told: bool = True):
    properties = {"delta.enableInCommitTimestamps": "true"} if told else {}
    if since:
        properties["delta.inCommitTimestampEnablementVersion"] = str(since[0])
        properties["delta.inCommitTimestampEnablementTimestamp"] = str(since[1])
    metadata = Metadata(id="t", schema_string="{}", partition_columns=(), configuration=properties)
    return Definition(version=newest, protocol=FEATURE if told else PLAIN, metadata=metadata)


def log_of(
    stored_ms: dict[int, int], told_ms: dict[int, int] | None = None, padding: str = ""
) -> CountingStore:
    """Commit files with the store's times given, and in-commit timestamps where told."""
    clock = ManualClock(now_ms=0)
    store = MemoryStore(clock=clock, name=f"times-{next(NAMES)}")
    for version, time_ms in stored_ms.items():
        clock.advance((time_ms - clock.now_ms()) / 1000)
        info: dict[str, object] = {"operation": "WRITE", "padding": padding}
        if told_ms and version in told_ms:
            info["inCommitTimestamp"] = told_ms[version]
        store.put(commit_path(version), json.dumps({"commitInfo": info}).encode() + b"\n")
    return CountingStore(store)


def test_the_stores_times_rise_by_a_millisecond_at_least():
    assert rising([(2, 90), (0, 100), (1, 100), (3, 500)]) == {0: 100, 1: 101, 2: 102, 3: 500}


@pytest.mark.parametrize(
    ("time_ms", "version"), [(1000, 0), (1999, 0), (2000, 1), (2001, 2), (2999, 2), (3000, 3)]
)
def test_a_time_means_the_newest_version_at_or_before_it(time_ms, version):
    store = log_of({0: 1000, 1: 2000, 2: 2000, 3: 3000})
    assert Timeline(store, definition(3, told=False)).newest_until(time_ms) == version


@pytest.mark.parametrize(
    ("time_ms", "version"), [(0, 0), (1000, 0), (1001, 1), (2001, 2), (3000, 3), (3001, 4)]
)
def test_a_time_begins_with_the_first_version_from_then_on(time_ms, version):
    store = log_of({0: 1000, 1: 2000, 2: 2000, 3: 3000})
    assert Timeline(store, definition(3, told=False)).first_from(time_ms) == version


def test_a_time_before_the_oldest_commit_names_the_range():
    line = Timeline(log_of({4: 4000, 5: 5000}), definition(5, told=False))
    with pytest.raises(sl.VersionNotFoundError, match="before the oldest") as caught:
        line.newest_until(3999)
    assert "4 of 1970-01-01T00:00:04.000Z to 5 of 1970-01-01T00:00:05.000Z" in caught.value.found


def test_a_time_after_the_newest_commit_is_refused_unless_asked_for():
    line = Timeline(log_of({0: 1000, 1: 2000}), definition(1, told=False))
    with pytest.raises(sl.VersionNotFoundError, match="after the newest"):
        line.newest_until(2001)
    assert line.newest_until(2001, or_newest=True) == 1


def test_commits_after_the_newest_that_is_known_do_not_count():
    line = Timeline(log_of({0: 1000, 1: 2000, 2: 3000}), definition(1, told=False))
    assert line.newest_until(2000) == 1
    with pytest.raises(sl.VersionNotFoundError, match="after the newest"):
        line.newest_until(3000)


def test_in_commit_timestamps_count_and_not_the_stores_times():
    told = {version: version * 100 for version in range(10)}
    line = Timeline(log_of(dict.fromkeys(range(10), 7), told), definition(9))
    assert [line.newest_until(ms) for ms in (0, 99, 100, 555, 900)] == [0, 0, 1, 5, 9]
    assert [line.first_from(ms) for ms in (0, 1, 100, 555, 901)] == [0, 1, 1, 6, 10]


def test_in_commit_timestamps_are_found_in_few_short_reads():
    told = {version: version * 100 for version in range(4096)}
    store = log_of(dict.fromkeys(range(4096), 7), told)
    assert Timeline(store, definition(4095)).newest_until(123_456) == 1234
    assert store.count("list_from") == 1
    assert store.count("get_range") <= 13
    assert store.count("get") == 0


def test_a_first_line_that_is_very_long_is_read_whole():
    line = Timeline(log_of({0: 1, 1: 2}, {0: 100, 1: 200}, padding="x" * 50_000), definition(1))
    assert line.newest_until(150) == 0


@pytest.mark.parametrize(
    ("time_ms", "until", "first"),
    [(10, 0, 0), (25, 1, 2), (39, 2, 3), (40, 3, 3), (41, 3, 4), (50, 4, 4)],
)
def test_before_they_were_enabled_the_stores_times_count(time_ms, until, first):
    store = log_of({0: 10, 1: 20, 2: 30, 3: 2_000, 4: 2_001}, {3: 40, 4: 50})
    line = Timeline(store, definition(4, since=(3, 40)))
    assert (line.newest_until(time_ms), line.first_from(time_ms)) == (until, first)


def test_the_version_before_the_enablement_holds_until_then_though_its_store_time_is_later():
    store = log_of({0: 10, 1: 90, 2: 2_000}, {2: 50})
    line = Timeline(store, definition(2, since=(2, 50)))
    assert line.newest_until(49) == 0
    assert line.newest_until(50) == 2
    assert line.first_from(20) == 1


def test_a_commit_without_the_time_that_the_table_promises_is_an_error():
    line = Timeline(log_of({0: 1, 1: 2, 2: 3}, {0: 100, 2: 300}), definition(2))
    with pytest.raises(sl.CorruptTableError, match="Commit 1 has no in-commit timestamp"):
        line.newest_until(200)


def test_a_feature_that_is_listed_and_not_enabled_changes_nothing():
    plain = Definition(version=1, protocol=FEATURE, metadata=TABLE)
    assert Timeline(log_of({0: 10, 1: 20}, {0: 1, 1: 2}), plain).newest_until(20) == 1


def test_what_log_clean_up_may_have_removed_is_not_passed_over():
    stored = {4: 4000, 5: 5000}
    for line in (
        Timeline(log_of(stored), definition(5, told=False)),
        Timeline(log_of(stored, stored), definition(5)),
    ):
        assert line.first_from(3999) == 3
        assert line.first_from(4000) == 4


def test_a_commit_that_strayed_below_a_cleaned_up_range_does_not_confuse_the_search():
    stored = {3: 3000, 90: 90_000, 91: 91_000}
    line = Timeline(log_of(stored, stored), definition(91))
    assert line.newest_until(90_500) == 90
    assert line.first_from(90_500) == 91
    assert line.first_from(80_000) == 89


@given(st.lists(st.integers(0, 5), min_size=1, max_size=20), st.integers(-5, 60))
def test_both_directions_agree_on_every_history(pauses_ms, asked_ms):
    clock = ManualClock(now_ms=0)
    store = MemoryStore(clock=clock, name=f"times-{next(NAMES)}")
    for version, pause_ms in enumerate(pauses_ms):
        clock.advance(pause_ms / 1000)
        store.put(commit_path(version), b"{}\n")
    risen = rising(commit_times(store))
    line = Timeline(store, definition(len(pauses_ms) - 1, told=False))
    until = max((v for v, ms in risen.items() if ms <= asked_ms), default=None)
    assert line.first_from(asked_ms) == sum(1 for ms in risen.values() if ms < asked_ms)
    if until is None:
        with pytest.raises(sl.VersionNotFoundError):
            line.newest_until(asked_ms)
    else:
        assert line.newest_until(asked_ms, or_newest=True) == until


@given(
    before_ms=st.lists(st.integers(0, 30), max_size=8),
    steps_ms=st.lists(st.integers(1, 10), min_size=1, max_size=12),
    gone=st.integers(0, 6),
    asked_ms=st.integers(-5, 120),
)
def test_halving_finds_what_a_look_at_every_version_finds(before_ms, steps_ms, gone, asked_ms):
    since = len(before_ms)
    told = {since + i: 40 + sum(steps_ms[:i]) for i in range(len(steps_ms))}
    store = log_of(dict(enumerate(sorted(before_ms))) | dict.fromkeys(told, 50), told)
    oldest = min(gone, since + len(steps_ms) - 1)
    for version in range(oldest):
        store.delete(commit_path(version))
    stored = rising(commit_times(store))
    newest = max(told)
    times = {v: told.get(v, stored.get(v, 0)) for v in range(oldest, newest + 1)}
    is_told = asked_ms >= told[since]
    among = [v for v in times if (v >= since) == is_told]
    until = max((v for v in among if times[v] <= asked_ms), default=None)
    first = min(
        (v for v in among if times[v] >= asked_ms), default=newest + 1 if is_told else since
    )
    unknown = not among if first == since and not is_told else first == oldest
    if unknown and first and times.get(first) != asked_ms:
        first -= 1  # which is gone, and may be the one
    line = Timeline(store, definition(newest, since=(since, told[since])))
    assert line.first_from(asked_ms) == first
    if until is None:
        with pytest.raises(sl.VersionNotFoundError):
            line.newest_until(asked_ms)
    else:
        assert line.newest_until(asked_ms, or_newest=True) == until


NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "moment",
    [
        NOON,
        NOON.astimezone(timezone(timedelta(hours=5))),
        "2026-01-31T12:00:00Z",
        " 2026-01-31 17:00:00+05:00 ",
        1_769_860_800_000,
    ],
)
def test_a_moment_is_a_datetime_its_text_or_milliseconds(moment):
    assert moment_ms(moment) == 1_769_860_800_000


def test_the_part_of_a_millisecond_is_cut_off_or_rounded_up():
    moment = NOON + timedelta(microseconds=1)
    assert moment_ms(moment) == 1_769_860_800_000
    assert moment_ms(moment, round_up=True) == 1_769_860_800_001


@pytest.mark.parametrize(
    "moment", ["", "noon", "2026-01-31T12:00:00", "2026-01-31", True, 1.5, None, 2**63, NOON.date()]
)
def test_what_is_no_moment_is_refused(moment):
    with pytest.raises(sl.InvalidInputError, match="timestamp"):
        moment_ms(moment)


def test_a_time_that_no_calendar_has_is_told_all_the_same():
    assert utc_text(0) == "1970-01-01T00:00:00.000Z"
    assert utc_text(2**63 - 1) == "9223372036854775807 ms after 1970-01-01T00:00:00Z"
