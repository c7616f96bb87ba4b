"""A clock that moves only when told."""

from __future__ import annotations

import uuid

from streamlake.testing import ManualClock


def test_sleeping_moves_both_clocks_and_is_noted():
    clock = ManualClock(now_ms=1_000)
    clock.sleep(1.5)
    clock.advance(0.25)
    assert (clock.now_ms(), clock.monotonic(), clock.sleeps) == (2_750, 1.75, [1.5])


def test_many_small_steps_add_up():
    clock = ManualClock(now_ms=0)
    for _ in range(1000):
        clock.advance(0.001)
    assert clock.now_ms() in (999, 1000)


def test_identifiers_and_jitter_repeat_by_seed_and_differ_between_seeds():
    first, again, other = ManualClock(seed=1), ManualClock(seed=1), ManualClock(seed=2)
    drawn = [first.new_id(), first.new_id(), first.jitter()]
    assert drawn == [again.new_id(), again.new_id(), again.jitter()]
    assert drawn[0] != drawn[1]
    assert other.new_id() not in drawn


def test_identifiers_have_the_form_of_random_uuids():
    drawn = ManualClock().new_id()
    assert str(uuid.UUID(drawn)) == drawn
    assert uuid.UUID(drawn).version == 4


def test_jitter_lies_between_zero_and_one_and_varies():
    clock = ManualClock()
    drawn = [clock.jitter() for _ in range(1000)]
    assert 0.0 <= min(drawn) < 0.05
    assert 0.95 < max(drawn) < 1.0
