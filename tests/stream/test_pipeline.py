"""Pipeline: order of calls, batching, transforms, stopping, refused and failing commits."""

from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import streamlake as sl
from stream.builders import rows
from stream.ends import PART, ListSink, NumbersSource
from streamlake.stream import EventKind
from streamlake.stream.pipeline import MAX_REWINDS
from streamlake.testing import ManualClock


def pipeline(source: sl.Source, sink: sl.Sink, **options) -> sl.Pipeline:
    return sl.Pipeline(source, sink, **{"clock": ManualClock(), **options})


def fenced() -> sl.FencedError:
    return sl.FencedError("moved")


def test_every_batch_is_stored_and_then_acknowledged():
    source, sink = NumbersSource([2, 3, 1]), ListSink()
    result = pipeline(source, sink).run()
    assert sink.numbers() == list(range(6))
    assert source.acknowledged == [1, 4, 5]
    assert (result.batches, result.rows, result.is_stopped) == (3, 6, False)


def test_each_end_is_opened_once_and_closed_once():
    source, sink = NumbersSource([1]), ListSink()
    pipeline(source, sink).run()
    assert source.calls == ["open", "batches", "close"]
    assert sink.calls == ["open", "close"]


def test_a_second_run_goes_on_where_the_first_ended():
    sink = ListSink()
    pipeline(NumbersSource([2]), sink).run()
    pipeline(NumbersSource([2, 3]), sink).run()
    assert sink.numbers() == list(range(5))


def test_both_ends_are_closed_after_an_error():
    source, sink = NumbersSource([1, 1]), ListSink([sl.StorageError("disk")])
    with pytest.raises(sl.StorageError):
        pipeline(source, sink).run()
    assert (source.calls[-1], sink.calls[-1]) == ("close", "close")
    assert source.acknowledged == []


class BrokenSource(NumbersSource):
    """Can't be opened, nor closed."""

    def open(self, committed):  # noqa: ARG002 -- the contract's
        self.calls.append("open")
        raise sl.SourceUnavailableError("away")

    def close(self):
        self.calls.append("close")
        raise sl.SourceUnavailableError("still away")


def test_the_sink_is_closed_although_the_source_can_not_be():
    source, sink = BrokenSource([1]), ListSink()
    with pytest.raises(sl.SourceUnavailableError):
        pipeline(source, sink).run()
    assert source.calls == ["open", "close"]
    assert sink.calls == ["open", "close"]


def test_a_transform_makes_the_rows_that_are_stored():
    def even(data: pa.Table) -> pa.Table:
        return data.filter(pc.equal(pc.bit_wise_and(data["n"], 1), 0))

    source, sink = NumbersSource([2, 1, 3]), ListSink()
    result = pipeline(source, sink, transform=even).run()
    assert sink.numbers() == [0, 2, 4]
    assert (result.batches, result.rows) == (3, 3)


def test_rows_that_a_transform_drops_move_the_position_all_the_same():
    sink = ListSink()
    pipeline(NumbersSource([2, 2]), sink, transform=lambda data: data.slice(0, 0)).run()
    assert sink.numbers() == []
    assert sink.committed() == {PART: 3}


def test_small_batches_are_merged_up_to_the_bound():
    source, sink = NumbersSource([2] * 6), ListSink()
    batching = sl.Batching(max_rows=5, linger_ms=60_000)
    pipeline(source, sink, batching=batching).run()
    assert [batch.data.num_rows for batch in sink.written] == [6, 6]
    assert source.acknowledged == [5, 11]


def test_batches_are_merged_up_to_the_bound_in_bytes():
    sink = ListSink()
    batching = sl.Batching(max_bytes=17, linger_ms=60_000)
    pipeline(NumbersSource([1] * 6), sink, batching=batching).run()
    assert [batch.data.num_rows for batch in sink.written] == [3, 3]


def test_without_linger_every_batch_is_stored_as_it_comes():
    sink = ListSink()
    pipeline(NumbersSource([1] * 3), sink, batching=sl.Batching()).run()
    assert [batch.data.num_rows for batch in sink.written] == [1, 1, 1]


def test_what_lingers_is_stored_when_it_is_due_though_nothing_comes():
    clock = ManualClock()
    stored = []

    class SlowSource(NumbersSource):
        def batches(self):
            for step in super().batches():
                stored.append(list(self.acknowledged))
                clock.advance(1)
                yield step

    source = SlowSource([1, None, None, None, None, 1])
    batching = sl.Batching(linger_ms=2500)
    pipeline(source, ListSink(), batching=batching, clock=clock).run()
    assert stored == [[], [], [], [], [0], [0]]


def test_batches_of_other_columns_are_not_merged():
    class Widening(NumbersSource):
        def batches(self):
            for step in super().batches():
                first = step is not None and step.positions[PART] == 0
                yield (
                    step
                    if first
                    else sl.Batch(
                        data=step.data.append_column("m", step.data["n"]), positions=step.positions
                    )
                )

    sink = ListSink()
    batching = sl.Batching(linger_ms=60_000)
    pipeline(Widening([1, 1, 1]), sink, batching=batching).run()
    assert [batch.data.shape for batch in sink.written] == [(1, 1), (2, 2)]


@pytest.mark.parametrize(
    "bad",
    [{"max_rows": 0}, {"max_bytes": 0}, {"linger_ms": -1}, {"max_rows": "5"}, {"linger_ms": True}],
)
def test_a_batching_that_can_not_be_is_refused(bad):
    with pytest.raises(sl.InvalidInputError):
        sl.Batching(**bad)


def test_merged_positions_are_the_highest_of_each_part():
    class TwoParts(NumbersSource):
        def batches(self):
            yield sl.Batch(data=rows(1), positions={"a": 5, "b": 1})
            yield sl.Batch(data=rows(2), positions={"b": 2})

        def acknowledge(self, batch):
            assert batch.positions == {"a": 5, "b": 2}

    sink = ListSink()
    pipeline(TwoParts([]), sink, batching=sl.Batching(linger_ms=1000)).run()
    assert len(sink.written) == 1


def test_stop_ends_after_the_current_batch():
    source, sink = NumbersSource([1] * 10), ListSink()
    running: list[sl.Pipeline] = []
    running.append(pipeline(source, sink, on_event=lambda _: running[0].stop()))
    result = running[0].run()
    assert sink.numbers() == [0]
    assert result.is_stopped


def test_a_condition_ends_it_and_what_was_read_is_stored():
    source, sink = NumbersSource([1] * 10), ListSink()
    reads = iter([False, False, True])
    batching = sl.Batching(linger_ms=60_000)
    result = pipeline(source, sink, batching=batching).run(stop=lambda: next(reads))
    assert sink.numbers() == [0, 1, 2]
    assert (result.is_stopped, result.batches) == (True, 1)


@pytest.mark.parametrize(
    "error", [fenced(), sl.CommitUnknownError("?"), sl.MetadataChangedError("new columns")]
)
def test_a_commit_that_did_not_happen_is_answered_by_reading_the_positions_anew(error):
    source, sink = NumbersSource([2, 2, 2]), ListSink([None, error])
    result = pipeline(source, sink).run()
    assert sink.numbers() == list(range(6))
    assert (source.calls.count("rewind"), result.rewinds) == (1, 1)


def test_after_a_refused_commit_what_had_been_merged_is_read_again():
    source, sink = NumbersSource([1] * 9), ListSink([None, fenced()])
    batching = sl.Batching(max_rows=3, linger_ms=60_000)
    pipeline(source, sink, batching=batching).run()
    assert sink.numbers() == list(range(9))


def test_a_commit_that_is_refused_at_the_end_of_the_source_is_read_again():
    source, sink = NumbersSource([1] * 4), ListSink([fenced(), fenced()])
    pipeline(source, sink, batching=sl.Batching(linger_ms=60_000)).run()
    assert sink.numbers() == [0, 1, 2, 3]
    assert source.calls.count("batches") == 3


class TellingSource(NumbersSource):
    """Tells where it ended in a last batch without rows; each batch takes a second to come."""

    def __init__(self, sizes, clock: ManualClock) -> None:
        super().__init__(sizes)
        self._clock = clock

    def batches(self):
        for step in super().batches():
            yield step
            self._clock.advance(1)
        yield sl.Batch(data=rows(), positions={PART: self._next})


@pytest.mark.parametrize("linger_ms", [0, 500, 1000, 60_000])
@pytest.mark.parametrize("refused", [1, 2, 3])
@pytest.mark.parametrize("sizes", [[1], [2, None], [1, 1], [1, None, 1, None]])
def test_a_refusal_at_any_moment_of_the_last_batches_loses_nothing(sizes, refused, linger_ms):
    clock, sink = ManualClock(), ListSink([*([None] * (refused - 1)), fenced(), fenced()])
    batching = sl.Batching(linger_ms=linger_ms)
    pipeline(TellingSource(sizes, clock), sink, batching=batching, clock=clock).run()
    count = sum(size or 0 for size in sizes)
    assert sink.numbers() == list(range(count))
    assert sink.committed() == {PART: count}


def test_a_refusal_while_the_sink_is_tended_after_the_last_batch_loses_nothing():
    class FencedOnce(ListSink):
        def tend(self):
            self.calls.append("tend")
            if self.calls.count("tend") == 2:
                raise fenced()

    sink = FencedOnce()
    pipeline(NumbersSource([1, 1]), sink, batching=sl.Batching(linger_ms=60_000)).run()
    assert sink.numbers() == [0, 1]


def test_after_a_stop_a_refused_commit_is_left_to_the_next_run():
    sink = ListSink([fenced()])
    batching = sl.Batching(linger_ms=60_000)
    result = pipeline(NumbersSource([1, 1]), sink, batching=batching).run(stop=lambda: True)
    assert (result.is_stopped, result.batches, sink.numbers()) == (True, 0, [])
    pipeline(NumbersSource([1, 1]), sink).run()
    assert sink.numbers() == [0, 1]


class Reassigned(NumbersSource):
    """Asks for the stored positions with a batch in hand, as when parts are dealt anew."""

    def batches(self):
        for turn, step in enumerate(super().batches()):
            if turn in {1, 3}:
                self.rewind()
                yield None
            else:
                yield step


@pytest.mark.parametrize("max_rows", [1, 2, 3, 100])
def test_a_source_that_asks_for_the_positions_by_itself_repeats_and_loses_nothing(max_rows):
    source, sink = Reassigned([2, 2, 2, 2, 1]), ListSink()
    batching = sl.Batching(max_rows=max_rows, linger_ms=60_000)
    pipeline(source, sink, batching=batching).run()
    assert sink.numbers() == list(range(9))


def test_a_position_without_rows_is_stored_at_once_where_nothing_waits():
    class Begins(NumbersSource):
        def batches(self):
            yield sl.Batch(data=rows(), positions={PART: -1})
            yield from super().batches()

    sink, batching = ListSink(), sl.Batching(linger_ms=60_000)
    pipeline(Begins([1, 1]), sink, batching=batching).run()
    assert [batch.data.num_rows for batch in sink.written] == [0, 2]


def test_rows_that_a_transform_drops_linger_like_others():
    sink, batching = ListSink(), sl.Batching(linger_ms=60_000)
    pipeline(
        NumbersSource([1, 1]), sink, batching=batching, transform=lambda data: data.slice(0, 0)
    ).run()
    assert len(sink.written) == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("source", ListSink()),
        ("sink", NumbersSource([])),
        ("batching", 100),
        ("transform", "upper"),
        ("on_event", 1),
    ],
)
def test_an_argument_of_another_type_is_refused_by_name(name, value):
    given = {"source": NumbersSource([]), "sink": ListSink(), name: value}
    with pytest.raises(sl.InvalidInputError, match=f"^{name} must"):
        sl.Pipeline(**given)


def test_commits_that_are_refused_for_ever_end_the_run():
    source, sink = NumbersSource([1, 1]), ListSink([None, *([fenced()] * 100)])
    with pytest.raises(sl.FencedError):
        pipeline(source, sink).run()
    assert source.calls.count("rewind") == MAX_REWINDS
    assert sink.numbers() == [0]


def test_progress_renews_the_patience():
    errors = [fenced()] * MAX_REWINDS + [None] + [fenced()] * MAX_REWINDS
    source, sink = NumbersSource([1, 1]), ListSink(errors)
    result = pipeline(source, sink).run()
    assert sink.numbers() == [0, 1]
    assert result.rewinds == 2 * MAX_REWINDS


def test_pauses_between_refused_commits_grow_and_have_jitter():
    clock = ManualClock()
    with suppress(sl.FencedError):
        pipeline(NumbersSource([1]), ListSink([fenced()] * 100), clock=clock).run()
    assert len(clock.sleeps) == MAX_REWINDS
    assert all(pause < 0.05 * 2**turn for turn, pause in enumerate(clock.sleeps))


def test_events_tell_what_happened():
    told = []
    source, sink = NumbersSource([1, None, 1]), ListSink([None, fenced()])
    pipeline(source, sink, on_event=lambda event: told.append(event.kind)).run()
    stored, idle, rewound = EventKind.STORED, EventKind.IDLE, EventKind.REWOUND
    assert told == [stored, idle, rewound, stored]


def test_a_sink_with_duties_is_tended_between_batches_and_while_idle():
    class TendedList(ListSink):
        def tend(self):
            self.calls.append("tend")

    sink = TendedList()
    pipeline(NumbersSource([1, None, 1]), sink).run()
    assert sink.calls.count("tend") == 3
