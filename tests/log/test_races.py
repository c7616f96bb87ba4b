"""Many processes append to one table on local disk: one winner a version, nothing lost."""

import multiprocessing as mp

import pyarrow as pa
import pytest

import streamlake as sl

SCHEMA = pa.schema([pa.field("writer", pa.int64()), pa.field("number", pa.int64())])
WRITERS = 16
APPENDS = 12


def rows(writer: int, number: int) -> pa.Table:
    return pa.table([[writer], [number]], schema=SCHEMA)


def append_many(url: str, writer: int, barrier) -> None:
    table = sl.Table.open(url)
    barrier.wait(60)
    for number in range(APPENDS):
        txn = sl.SetTransaction(f"writer-{writer}", number)
        assert not table.append(rows(writer, number), txn=txn).already_committed


def append_one_marker(url: str, _writer: int, barrier, answers) -> None:
    table = sl.Table.open(url)
    barrier.wait(60)
    for number in range(APPENDS):
        result = table.append(rows(0, number), txn=sl.SetTransaction("shared", number))
        answers.put((number, result.already_committed))


def run_writers(target, url: str, *args) -> None:
    context = mp.get_context("fork")
    barrier = context.Barrier(WRITERS)
    writers = [
        context.Process(target=target, args=(url, writer, barrier, *args))
        for writer in range(WRITERS)
    ]
    for process in writers:
        process.start()
    for process in writers:
        process.join(120)
    assert [process.exitcode for process in writers] == [0] * WRITERS


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_sixteen_processes_append_and_nothing_is_lost_or_repeated(tmp_path):
    url = str(tmp_path / "t")
    sl.Table.create(url, schema=SCHEMA)
    run_writers(append_many, url)
    table = sl.Table.open(url)
    found = table.snapshot().to_arrow().sort_by([("writer", "ascending"), ("number", "ascending")])
    expected = [{"writer": w, "number": n} for w in range(WRITERS) for n in range(APPENDS)]
    assert found.to_pylist() == expected
    assert table.version == WRITERS * APPENDS
    order = [b.data["number"][0].as_py() for b in table.tail(stop="latest") if b.data.num_rows]
    assert len(order) == WRITERS * APPENDS


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_sixteen_processes_with_one_marker_write_each_version_once(tmp_path):
    url = str(tmp_path / "t")
    sl.Table.create(url, schema=SCHEMA)
    answers = mp.get_context("fork").Queue()
    run_writers(append_one_marker, url, answers)
    told = [answers.get(timeout=10) for _ in range(WRITERS * APPENDS)]
    assert sorted(number for number, repeated in told if not repeated) == list(range(APPENDS))
    stored = sl.Table.open(url).snapshot().to_arrow()["number"].to_pylist()
    assert sorted(stored) == list(range(APPENDS))


def create_one(url: str, writer: int, barrier, answers) -> None:
    barrier.wait(60)
    try:
        sl.Table.create(url, schema=SCHEMA)
    except sl.TableExistsError:
        answers.put(None)
    else:
        answers.put(writer)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_of_sixteen_processes_that_create_a_table_one_does(tmp_path):
    answers = mp.get_context("fork").Queue()
    run_writers(create_one, str(tmp_path / "t"), answers)
    told = [answers.get(timeout=10) for _ in range(WRITERS)]
    assert len([winner for winner in told if winner is not None]) == 1
    assert sl.Table.open(tmp_path / "t").version == 0
