import pyarrow as pa
import pytest

from streamlake.cli.demo.orders import EVENT_SCHEMA
from streamlake.cli.demo.verdict import judge

PLACED = {"ann": 2, "bob": 1}
ALL = [("ann", 1), ("bob", 1), ("ann", 2)]


def events(pairs):
    names = [name for name, _ in pairs]
    return pa.table(
        [names, pa.array([number for _, number in pairs], pa.int64())], schema=EVENT_SCHEMA
    )


def test_everything_once_and_in_order_holds():
    verdict = judge(PLACED, events(ALL), events(ALL))
    assert verdict.holds
    assert verdict.to_json() == {
        "produced": 3,
        "in_table": 3,
        "delivered": 3,
        "lost": 0,
        "repeated": 0,
        "unknown": 0,
        "out_of_order": 0,
        "holds": True,
    }


@pytest.mark.parametrize(
    ("in_table", "delivered", "wrong"),
    [
        (ALL[:2], ALL, {"lost": 1}),
        (ALL, ALL[1:], {"lost": 1}),
        (ALL[:2] + ALL[:1], ALL, {"lost": 1, "repeated": 1}),
        (ALL, ALL + ALL[1:2], {"repeated": 1}),
        (ALL, ALL[::-1], {"out_of_order": 1}),
        ([*ALL, ("ann", 3)], ALL, {"unknown": 1}),
        (ALL, [*ALL, ("zoe", 1)], {"unknown": 1}),
        ([], [], {"lost": 6}),
    ],
)
def test_each_fault_is_counted_and_none_holds(in_table, delivered, wrong):
    verdict = judge(PLACED, events(in_table), events(delivered))
    figures = verdict.to_json()
    assert {name: figures[name] for name in wrong} == wrong
    assert not verdict.holds


def test_nothing_produced_does_not_hold():
    assert not judge({}, events([]), events([])).holds
