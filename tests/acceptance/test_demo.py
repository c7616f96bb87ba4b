import os
import subprocess

import msgspec
import pytest

from programs import COMMAND, TIMEOUT_S
from streamlake.cli.engine import missing_for_spark

EVENTS = (
    "the first orders came through",
    "kill -9: the bridge",
    "the bridge goes on from the markers in the table",
    "kill -9: the tailer",
    "the tailer goes on from its saved Offset",
    "optimize: ",
    "no more orders",
)


def demo(*arguments, **environment):
    """Run the demo without a terminal; gives its verdict and what it told meanwhile."""
    done = subprocess.run(
        [*COMMAND, "demo", "--json", *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return msgspec.json.decode(done.stdout), done.stderr


def assert_holds(verdict, told):
    assert verdict["holds"]
    assert verdict["produced"] == verdict["in_table"] == verdict["delivered"] > 0
    assert verdict["lost"] == verdict["repeated"] == verdict["out_of_order"] == 0
    places = [told.find(event) for event in EVENTS]
    assert -1 not in places
    assert places == sorted(places)


@pytest.mark.skipif(bool(missing_for_spark()), reason=missing_for_spark())
def test_with_spark_everything_is_delivered_once_and_in_order():
    verdict, told = demo("--engine", "spark", "--seconds", 5)
    assert_holds(verdict, told)
    assert verdict["engine"] == "spark"
    assert "its Spark checkpoint folder is deleted" in told


def test_without_java_one_process_bridges_and_says_what_spark_needs(tmp_path):
    verdict, told = demo("--seconds", 3, JAVA_HOME=str(tmp_path))
    assert_holds(verdict, told)
    assert verdict["engine"] == "local"
    assert told.startswith("Without Spark: Java is missing: install Java 17")


def test_on_a_broker_that_runs_already_the_table_stays_where_it_was_asked_for(kafka, tmp_path):
    where = ("--bootstrap-servers", kafka.bootstrap_servers, "--dir", tmp_path / "demo")
    verdict, told = demo("--engine", "local", "--seconds", 3, *where)
    assert_holds(verdict, told)
    assert (tmp_path / "demo" / "orders" / "_delta_log").is_dir()
