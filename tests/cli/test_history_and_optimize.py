import json
import os
from pathlib import Path

import pyarrow as pa

import streamlake as sl
from streamlake.testing import TableBuilder


def append(table, *ids):
    return table.append(pa.table({"id": pa.array(ids, pa.int64())}))


def test_history_shows_commits_newest_first(cli, orders):
    append(orders, 1, 2)
    orders.append(pa.table({"id": [3]}), txn=sl.SetTransaction("job", 7))
    done = cli("history", orders.url, "--json")
    assert [line["version"] for line in done.json] == [2, 1, 0]
    assert done.json[0]["markers"] == {"job": 7}
    assert done.json[1]["rowsAdded"] == 2


def test_history_tells_isolation_metrics_and_notes(cli, orders):
    info = {"operation": "MERGE", "operationMetrics": {"numOutputRows": "5"}}
    info |= {"isolationLevel": "Serializable", "userMetadata": "by\thand", "readVersion": 0}
    path = Path(orders.url.removeprefix("file://")) / "_delta_log" / f"{1:020d}.json"
    path.write_text(json.dumps({"commitInfo": info}) + "\n")
    told = cli("history", orders.url, "--json").json[0]
    assert told["operationMetrics"] == {"numOutputRows": "5"}
    assert (told["isolationLevel"], told["readVersion"]) == ("Serializable", 0)
    assert told["userMetadata"] == "by\thand"
    line = cli("history", orders.url, "--limit", 1).out.splitlines()[1]
    assert line.split("\t")[-3:] == ["Serializable", "", "by hand"]


def test_history_in_a_pipe_is_tab_separated(cli, orders):
    append(orders, 1)
    header, line = cli("history", orders.url, "--limit", 1).out.splitlines()
    assert header.split("\t")[0] == "version"
    assert line.split("\t")[0] == "1"


def test_optimize_packs_small_files_and_keeps_every_row(cli, orders):
    for number in range(4):
        append(orders, number)
    done = cli("optimize", orders.url, "--json")
    assert done.json[0]["filesRemoved"] == 4
    assert done.json[0]["filesAdded"] == 1
    assert orders.snapshot().to_arrow()["id"].to_pylist() == [0, 1, 2, 3]


def test_optimize_says_when_there_is_nothing_to_do(cli, orders):
    assert "Nothing to do" in cli("optimize", orders.url).out


def test_a_size_that_is_none_is_told(cli, orders):
    done = cli("optimize", orders.url, "--target-size", "big", code=1)
    assert "--target-size takes a size" in done.err


def test_clean_log_tells_what_would_go_and_removes_it(cli, tmp_path):
    properties = {"delta.logRetentionDuration": "interval 1 days"}
    builder = TableBuilder(tmp_path / "t").properties(properties)
    table = builder.append(times=4).checkpoint().append().build()
    for version in range(5):
        os.utime(tmp_path / "t" / "_delta_log" / f"{version:020d}.json", (1000, 1000))
    assert "Would remove 4 files" in cli("clean-log", table.url, "--dry-run").out
    assert len(list(table.history())) == 6
    kept = cli("clean-log", table.url, "--keep-from", 2, "--json").json[0]
    assert (kept["firstVersion"], kept["files"], kept["isComplete"]) == (None, [], True)
    assert "the log begins with version 4" in cli("clean-log", table.url).out
    assert [record.version for record in table.history()] == [5, 4]
    assert "Nothing to do" in cli("clean-log", table.url).out
