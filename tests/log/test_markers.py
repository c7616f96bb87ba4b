"""When a commit is a repeat, when it may go on, and when its owner is fenced."""

import pickle

import pytest

import streamlake as sl
from streamlake.log import MarkerClaim, already_committed, staged_markers

WHERE = "memory://t"


def marker(version: int, app_id: str = "a", last_updated: int | None = 1) -> sl.SetTransaction:
    return sl.SetTransaction(app_id, version, last_updated)


def test_a_marker_above_the_tables_is_not_committed():
    assert not already_committed([marker(2)], None, {"a": marker(1)}, where=WHERE)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_marker_at_or_below_the_tables_is_a_repeat(version):
    assert already_committed([marker(version)], None, {"a": marker(2)}, where=WHERE)


def test_several_markers_of_which_some_are_committed_are_refused():
    with pytest.raises(sl.PartlyCommittedError, match="committed"):
        already_committed([marker(1), marker(1, "b")], None, {"a": marker(1)}, where=WHERE)


def test_a_moved_marker_fences_its_owner_whatever_the_versions():
    with pytest.raises(sl.FencedError, match="another owner"):
        already_committed([marker(9)], {"a": marker(1)}, {"a": marker(2)}, where=WHERE)


def test_a_marker_moved_back_fences_its_owner_too():
    with pytest.raises(sl.FencedError):
        already_committed([marker(9)], {"a": marker(5)}, {"a": marker(2)}, where=WHERE)


def test_a_marker_set_anew_at_the_same_version_fences_its_owner():
    current = {"a": marker(5, last_updated=2)}
    with pytest.raises(sl.FencedError):
        already_committed([marker(6)], {"a": marker(5, last_updated=1)}, current, where=WHERE)


def test_a_marker_that_is_gone_fences_its_owner():
    with pytest.raises(sl.FencedError, match="no marker"):
        already_committed([marker(6)], {"a": marker(5)}, {}, where=WHERE)


def test_a_version_at_or_below_the_one_found_at_open_is_a_repeat_even_after_a_stranger():
    assert already_committed([marker(5)], {"a": marker(5)}, {"a": marker(7)}, where=WHERE)


def test_a_version_that_only_a_stranger_committed_is_no_repeat_for_its_owner():
    with pytest.raises(sl.FencedError):
        already_committed([marker(6)], {"a": marker(5)}, {"a": marker(7)}, where=WHERE)


@pytest.mark.parametrize("version", [-1, 2**63, True, 1.5, "1"])
def test_a_version_outside_of_int64_is_refused(version):
    with pytest.raises(sl.InvalidInputError):
        staged_markers(sl.SetTransaction("a", version), None, 0)


def test_two_markers_of_one_app_are_refused():
    with pytest.raises(sl.InvalidInputError, match="Two markers"):
        staged_markers([marker(1), marker(2)], None, 0)


@pytest.mark.parametrize("txn", ["a", 5, ("a", 1), [{"app_id": "a", "version": 1}], [None]])
def test_what_is_no_marker_is_refused(txn):
    with pytest.raises(sl.InvalidInputError, match="SetTransaction"):
        staged_markers(txn, None, 0)


@pytest.mark.parametrize(("txn", "expect"), [(marker(1), ["a"]), (None, {"a": None})])
def test_an_expectation_that_could_not_be_kept_is_refused(txn, expect):
    with pytest.raises(sl.InvalidInputError, match="expect"):
        staged_markers(txn, expect, 0)


def test_an_expectation_must_name_every_marker():
    with pytest.raises(sl.InvalidInputError, match="expect"):
        staged_markers([marker(1), marker(1, "b")], {"a": None}, 0)


def test_markers_are_stamped_with_the_time_of_the_commit():
    assert staged_markers(sl.SetTransaction("a", 1), None, 77)[0].last_updated == 77


def test_a_second_claim_in_one_process_is_refused_until_the_first_is_closed():
    with MarkerClaim("table", ["a"]):
        with pytest.raises(sl.InvalidInputError, match="already open"):
            MarkerClaim("table", ["a"])
        MarkerClaim("another table", ["a"]).close()
    MarkerClaim("table", ["a"]).close()


def test_errors_survive_pickling_whole():
    error = sl.CommitUnknownError("what", version=3, where="w", remedy="r")
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 -- our own bytes
    assert (str(copy), copy.version) == (str(error), 3)
