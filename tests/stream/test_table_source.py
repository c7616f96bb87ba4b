"""A table as a source: whole files, positions that a sink stores, table to table exactly once."""

import threading
from datetime import UTC, datetime

import pytest

import streamlake as sl
from stream.builders import (
    SCHEMA,
    clock_of,
    commit,
    drop_commits,
    fresh,
    new_table,
    numbers,
    rows,
    stage,
    stored,
    table_of,
    take,
)
from stream.ends import ListSink
from streamlake.stream.table_source import EMPTY_VERSIONS_PER_BATCH
from streamlake.testing import ManualClock


def copy(source: sl.Table, target: sl.Table, **options) -> sl.PipelineResult:
    """Bring the target up to what the source holds now."""
    begin = sl.TableSource(source, stop="latest", **options)
    sink = sl.TableSink(target, app_id="copy")
    return sl.Pipeline(begin, sink, clock=ManualClock()).run()


def test_a_table_is_copied_into_another():
    source, target = table_of([1, 2], [3]), new_table()
    result = copy(source, target)
    assert (stored(target), result.batches, result.rows) == ([1, 2, 3], 2, 3)


def test_a_second_run_copies_what_is_new_and_nothing_twice():
    source, target = table_of([1], [2]), new_table()
    copy(source, target)
    source.optimize()
    source.append(rows(3))
    copy(source, target)
    copy(source, target)
    assert stored(target) == [1, 2, 3]


def test_the_position_is_a_marker_under_the_id_of_the_source():
    source, target = table_of([1]), new_table()
    copy(source, target)
    after = sl.Offset.after_version(1, source.id)
    assert {m.app_id: m.version for m in target.markers().values()} == {
        f"copy/{source.id}": after.to_marker()
    }


def test_batches_end_with_their_files():
    source, target = new_table(), ListSink()
    commit(source, stage(source, 1, 2, 3), stage(source, 4), stage(source, 5))
    begin = sl.TableSource(source, stop="latest", options=sl.TailOptions(max_rows=1))
    sl.Pipeline(begin, target).run()
    assert [batch.data["n"].to_pylist() for batch in target.written] == [[1, 2, 3], [4], [5]]


def test_it_begins_where_it_is_told_when_nothing_is_stored():
    source, target = table_of([1], [2], [3]), new_table()
    copy(source, target, start=2)
    copy(source, target, start="earliest")
    assert stored(target) == [2, 3]


class CrashingSink(sl.TableSink):
    """Crashes where rows are to be stored."""

    def write(self, batch):
        if batch.data.num_rows:
            raise KeyboardInterrupt
        return super().write(batch)


def crash_at_rows(source: sl.Table, target: sl.Table, **options) -> None:
    """Follow the source from there; while idle it gets row 8, and storing that crashes."""
    begun = source.version

    def feed(event: sl.PipelineEvent) -> None:
        if event.kind.name == "IDLE" and source.version == begun:
            source.append(rows(8))

    pipeline = sl.Pipeline(
        sl.TableSource(source, start=options.pop("start")),
        CrashingSink(target, app_id="copy"),
        on_event=feed,
        clock=clock_of(source),
        **options,
    )
    with pytest.raises(KeyboardInterrupt):
        pipeline.run()


@pytest.mark.parametrize("linger_ms", [0, 500])
def test_the_latest_stays_what_it_was_over_a_crash_before_the_first_row(linger_ms):
    source, target = table_of([1], [2]), new_table()
    crash_at_rows(source, target, start="latest", batching=sl.Batching(linger_ms=linger_ms))
    source.append(rows(9))
    copy(source, target, start="latest")
    copy(source, target, start="latest")
    assert stored(target) == [8, 9]


def test_a_timestamp_stays_what_it_was_though_log_clean_up_goes_past_it():
    source, target = table_of([1], [2]), new_table()
    now = datetime.fromtimestamp(clock_of(source).now_ms() / 1000, tz=UTC)
    clock_of(source).advance(1)
    crash_at_rows(source, target, start=now)
    source.append(rows(9))
    source.checkpoint()
    drop_commits(source, 0, 1, 2, 3)
    with pytest.raises(sl.LogTruncatedError):
        copy(source, target, start=now)


def test_a_timestamp_before_the_first_version_is_stored_as_the_first_position():
    source, target = table_of([1], [2]), new_table()
    result = copy(source, target, start="1970-01-01T00:00:00Z")
    assert (stored(target), result.batches) == ([1, 2], 3)


def test_bounded_runs_from_the_latest_copy_what_came_between_them():
    source, target = table_of([1]), new_table()
    for number in (2, 3):
        copy(source, target, start="latest")
        source.append(rows(number))
    copy(source, target, start="latest")
    assert stored(target) == [2, 3]


def test_a_start_that_stays_where_it_is_is_not_stored():
    source = table_of([1])
    for start in ("earliest", "snapshot", 2, sl.Offset.after_version(1, source.id)):
        target = new_table()
        stopped = sl.TableSource(source, start=start, stop="latest")
        sl.Pipeline(stopped, sl.TableSink(target, app_id="copy")).run(stop=lambda: True)
        assert len(target.markers()) == target.log.head.version == len(stored(target))


@pytest.mark.parametrize(
    ("name", "value"), [("source", 5), ("options", {"max_rows": 1}), ("source", None)]
)
def test_an_argument_of_another_type_is_refused_by_name(name, value):
    with pytest.raises(sl.InvalidInputError, match=f"^{name} must"):
        sl.TableSource(**{"source": "memory://unused", name: value})


@pytest.mark.parametrize("place", [{"start": None}, {"start": -1}, {"stop": "now"}, {"stop": -1}])
def test_a_start_and_a_stop_that_can_not_be_are_refused_before_it_is_opened(place):
    with pytest.raises(sl.InvalidInputError, match="There is no st"):
        sl.TableSource("memory://unused", **place)


def test_a_snapshot_is_copied_and_then_what_follows():
    source, target = table_of([1], [2]), new_table()
    source.optimize()
    copy(source, target, start="snapshot")
    source.append(rows(3))
    copy(source, target, start="snapshot")
    assert stored(target) == [1, 2, 3]


def test_a_snapshot_that_was_copied_in_part_is_resumed():
    source, target = table_of([1], [2], [3]), new_table()
    options = sl.TailOptions(max_rows=1)
    begin = sl.TableSource(source, start="snapshot", stop="latest", options=options)
    pipeline = sl.Pipeline(begin, sl.TableSink(target, app_id="copy"))
    pipeline.stop()
    pipeline.run()
    assert stored(target) == [1]
    source.append(rows(4))
    copy(source, target, start="snapshot")
    assert stored(target) == [1, 2, 3, 4]


def test_positions_of_another_table_are_refused():
    source, target = table_of([1]), new_table()
    copy(source, target)
    with pytest.raises(sl.TableReplacedError, match="another table"):
        copy(table_of([9]), target)
    assert stored(target) == [1]


def test_a_stored_position_that_was_cleaned_up_is_an_error():
    source, target = table_of([1]), new_table()
    copy(source, target)
    for number in (2, 3, 4):
        source.append(rows(number))
    source.checkpoint()
    drop_commits(source, 0, 1, 2, 3)
    with pytest.raises(sl.LogTruncatedError):
        copy(source, target)


def test_a_following_source_tells_when_nothing_comes():
    source = table_of([1])
    begin = sl.TableSource(source)
    begin.open(dict)
    steps = begin.batches()
    assert [step is None for step in take(steps, 4)] == [False, True, True, True]
    source.append(rows(2))
    assert next(steps) is not None
    begin.close()


def test_rewinding_reads_again_from_the_stored_position():
    source = table_of([1], [2], [3])
    begin = sl.TableSource(source, stop="latest")
    done = {source.id: sl.Offset.after_version(1, source.id).to_marker()}
    begin.open(lambda: done)
    batches = begin.batches()
    assert [b.version for b in take(batches, 2) if b] == [2, 3]
    begin.rewind()
    assert [b.version for b in batches if b] == [2, 3]


def test_the_latest_is_found_out_once_though_the_source_rewinds():
    source = table_of([1], [2])
    begin = sl.TableSource(source, stop="latest")
    begin.open(dict)
    source.append(rows(3))
    begin.rewind()
    assert [b.version for b in begin.batches() if b] == [1, 2]


@pytest.mark.parametrize(("start", "expected"), [("latest", [3, 4]), ("snapshot", [1, 2, 3, 4])])
def test_the_start_is_found_out_once_though_the_source_rewinds(start, expected):
    source = table_of([1], [2])
    begin = sl.TableSource(source, start=start)
    begin.open(dict)
    source.append(rows(3))
    begin.rewind()
    source.append(rows(4))
    begin.rewind()
    steps = begin.batches()
    found: list[int] = []
    while len(found) < len(expected):
        found += numbers([next(steps)])
    assert found == expected


def test_a_start_that_does_not_exist_yet_is_waited_for_though_the_source_rewinds():
    source = table_of([1])
    begin = sl.TableSource(source, start=3, stop=3)
    begin.open(dict)
    begin.rewind()
    source.append(rows(2))
    source.append(rows(3))
    assert numbers(begin.batches()) == [3]


def test_many_versions_without_rows_move_the_stored_position():
    source, target = table_of([1]), new_table()
    copy(source, target)
    for number in range(EMPTY_VERSIONS_PER_BATCH):
        source.commit_staged((), txn=sl.SetTransaction("other", number))
    pipeline = sl.Pipeline(sl.TableSource(source), sl.TableSink(target, app_id="copy"))
    turns = iter(range(3))
    result = pipeline.run(stop=lambda: next(turns, None) is None)
    after = sl.Offset.after_version(source.version, source.id)
    assert (result.batches, result.rows) == (1, 0)
    assert target.snapshot().txn_version(f"copy/{source.id}") == after.to_marker()


def test_a_source_at_the_head_writes_nothing_while_idle():
    source, target = table_of(*([n] for n in range(EMPTY_VERSIONS_PER_BATCH + 5))), new_table()
    copy(source, target)
    pipeline = sl.Pipeline(sl.TableSource(source), sl.TableSink(target, app_id="copy"))
    turns = iter(range(20))
    assert pipeline.run(stop=lambda: next(turns, None) is None).batches == 0


def test_a_source_that_is_not_open_says_so():
    begin = sl.TableSource("memory://unused")
    with pytest.raises(sl.InvalidInputError, match="not open"):
        next(begin.batches())
    with pytest.raises(sl.InvalidInputError, match="not open"):
        begin.rewind()
    begin.close()


def test_a_missing_source_is_an_error(tmp_path):
    with pytest.raises(sl.TableNotFoundError):
        sl.TableSource(tmp_path / "t").open(dict)


def test_another_owner_that_got_in_between_costs_no_row_and_repeats_none():
    source, target = table_of([1], [2], [3], [4]), new_table()
    theirs = fresh(target)

    def interfere(event: sl.PipelineEvent) -> None:
        if event.version == 1:
            theirs.log.refresh()
            after = sl.Offset.after_version(2, source.id).to_marker()
            theirs.append(rows(2), txn=sl.SetTransaction(f"copy/{source.id}", after))

    begin = sl.TableSource(source, stop="latest")
    sink = sl.TableSink(target, app_id="copy")
    result = sl.Pipeline(begin, sink, clock=ManualClock(), on_event=interfere).run()
    assert (stored(target), result.rewinds) == ([1, 2, 3, 4], 1)


def test_stopping_from_another_thread_ends_a_following_pipeline(tmp_path):
    source = sl.Table.create(tmp_path / "a", schema=SCHEMA)
    target = sl.Table.create(tmp_path / "b", schema=SCHEMA)
    source.append(rows(1))
    copied = threading.Event()
    pipeline = sl.Pipeline(
        sl.TableSource(source),
        sl.TableSink(target, app_id="copy"),
        on_event=lambda event: copied.set() if event.version else None,
    )
    thread = threading.Thread(target=pipeline.run)
    thread.start()
    assert copied.wait(20)
    pipeline.stop()
    thread.join(20)
    assert not thread.is_alive()
    assert stored(target) == [1]
