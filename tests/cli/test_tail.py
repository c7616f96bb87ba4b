import signal
import subprocess

import msgspec
import pyarrow as pa
import pytest

import streamlake as sl
from programs import COMMAND, kill, running


def append(table, *ids):
    table.append(pa.table({"id": pa.array(ids, pa.int64())}))


def ids(done):
    return [line["id"] for line in done.json]


@pytest.fixture
def three_commits(orders):
    """Versions 1 to 3: the ids 1 and 2, 3 and 4, 5 and 6."""
    for first in (1, 3, 5):
        append(orders, first, first + 1)
    return orders


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("earliest", [1, 2, 3, 4, 5, 6]),
        ("snapshot", [1, 2, 3, 4, 5, 6]),
        ("2", [3, 4, 5, 6]),
        ("latest", []),
        ("2020-01-01T00:00:00Z", [1, 2, 3, 4, 5, 6]),
    ],
)
def test_starts_where_it_is_told_and_ends_at_the_latest(cli, three_commits, start, expected):
    assert ids(cli("tail", three_commits.url, "--from", start, "--until", "latest")) == expected


def test_follows_what_is_committed(orders):
    with running("tail", orders.url, "--from", "earliest") as process:
        for number in (1, 2, 3):
            append(orders, number)
            assert msgspec.json.decode(process.stdout.readline())["id"] == number


def test_stops_after_so_many_rows_and_goes_on_there(cli, three_commits, tmp_path):
    position = tmp_path / "position.json"
    bounded = ("--from", "earliest", "--max-rows", 4, "--position", position)
    assert ids(cli("tail", three_commits.url, *bounded)) == [1, 2, 3, 4]
    rest = ("--from", "earliest", "--position", position, "--until", "latest")
    assert ids(cli("tail", three_commits.url, *rest)) == [5, 6]


def test_a_count_that_ends_inside_a_commit_resumes_inside_it(cli, three_commits, tmp_path):
    position = tmp_path / "position.json"
    options = ("--from", "earliest", "--position", position, "--max-rows")
    found = [ids(cli("tail", three_commits.url, *options, count)) for count in (3, 2, 1)]
    assert found == [[1, 2, 3], [4, 5], [6]]


def test_a_saved_offset_is_a_start(cli, three_commits, tmp_path):
    offset = sl.Offset(reservoir_id=three_commits.id, reservoir_version=3)
    file = tmp_path / "offset.json"
    file.write_text(offset.to_json())
    assert ids(cli("tail", three_commits.url, "--from", file, "--until", "latest")) == [5, 6]


def test_after_a_kill_it_goes_on_at_the_saved_position(cli, three_commits, tmp_path):
    position = tmp_path / "position.json"
    with running("tail", three_commits.url, "--from", "earliest", "--position", position) as tail:
        printed = [msgspec.json.decode(tail.stdout.readline())["id"] for _ in range(6)]
        append(three_commits, 7)
        printed.append(msgspec.json.decode(tail.stdout.readline())["id"])
        kill(tail)
    rest = ids(cli("tail", three_commits.url, "--position", position, "--until", "latest"))
    assert [*printed[: 7 - len(rest)], *rest] == [1, 2, 3, 4, 5, 6, 7]


def test_a_file_that_holds_no_position_is_named(cli, three_commits, tmp_path):
    position = tmp_path / "position.json"
    position.write_text("none")
    told = cli("tail", three_commits.url, "--position", position, code=1).err
    assert f"where: {position}" in told


def test_a_position_that_can_not_be_saved_is_told(cli, three_commits, tmp_path):
    position = tmp_path / "none" / "position.json"
    arguments = ("--from", "earliest", "--until", "latest", "--position", position)
    assert "can't be saved" in cli("tail", three_commits.url, *arguments, code=1).err


def test_chosen_columns_as_csv_have_one_header(cli, three_commits):
    arguments = (
        "--from",
        "earliest",
        "--until",
        "latest",
        "--format",
        "csv",
        "--columns",
        "item,id",
    )
    lines = cli("tail", three_commits.url, *arguments).out.splitlines()
    assert lines[:2] == ['"item","id"', ",1"]
    assert len(lines) == 7


def test_a_table_in_a_pipe_is_tab_separated(cli, three_commits):
    arguments = ("--from", "3", "--until", "latest", "--format", "table", "--columns", "id")
    assert cli("tail", three_commits.url, *arguments).out == "id\n5\n6\n"


def test_ends_when_its_reader_does_though_nothing_more_is_committed(three_commits):
    shell = f"{' '.join(COMMAND)} tail {three_commits.url} --from earliest | head -1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", shell], capture_output=True, timeout=60, check=False
    )
    assert msgspec.json.decode(done.stdout)["id"] == 1
    assert done.stderr == b""
    assert done.returncode == 141


def test_interrupted_it_ends_without_a_word(three_commits):
    with running("tail", three_commits.url, "--from", "earliest", stderr=subprocess.PIPE) as tail:
        tail.stdout.readline()
        tail.send_signal(signal.SIGINT)
        assert tail.stderr.read() == b""
        assert tail.wait() == 130


def test_a_commit_that_removes_data_stops_it_unless_told_to_go_on(cli, orders, tmp_path):
    deltalake = pytest.importorskip("deltalake")
    append(orders, 1)
    append(orders, 2)
    deltalake.DeltaTable(tmp_path / "orders").delete("id = 1")
    arguments = ("tail", orders.url, "--from", "earliest", "--until", "latest")
    assert "remov" in cli(*arguments, code=1).err
    assert ids(cli(*arguments, "--on-removed", "ignore_deletes")) == [1, 2]


def test_another_tables_offset_is_refused(cli, orders, tmp_path):
    file = tmp_path / "offset.json"
    file.write_text(sl.Offset(reservoir_id="another", reservoir_version=0).to_json())
    assert "do:" in cli("tail", orders.url, "--from", file, code=1).err


def test_a_start_that_is_none_is_told(cli, orders):
    assert "There is no start 'never'" in cli("tail", orders.url, "--from", "never", code=1).err
