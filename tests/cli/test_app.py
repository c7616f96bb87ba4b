import re
import subprocess
import sys

import pytest

import streamlake as sl


def test_help_shows_every_command(cli):
    out = cli("--help").out
    for name in ("create", "append", "tail", "history", "optimize", "bridge", "demo"):
        assert name in out


@pytest.mark.parametrize(
    "name", ["create", "append", "tail", "history", "optimize", "bridge", "demo"]
)
def test_every_command_shows_an_example(cli, name):
    assert re.search(rf"streamlake {name} [/-]", cli(name, "--help").out)


def test_shows_the_version(cli):
    assert cli("--version").out == f"streamlake {sl.__version__}\n"


def test_a_command_that_is_not_understood_ends_with_2(cli):
    cli("tale", code=2)
    cli("history", code=2)


def test_an_error_is_a_message_and_its_traceback_only_with_debug(cli, tmp_path):
    assert "Traceback" not in cli("history", tmp_path / "none", code=1).err
    assert "Traceback" in cli("--debug", "history", tmp_path / "none", code=1).err


def test_a_pair_without_an_equals_sign_is_told_without_what_may_be_a_secret(cli, tmp_path):
    done = cli("history", tmp_path, "--storage-option", "key", code=1)
    assert "--storage-option takes KEY=VALUE" in done.err


def test_help_imports_neither_spark_nor_kafka_nor_pandas():
    probe = (
        "import sys, streamlake.cli;"
        "print([m for m in ('pyspark', 'confluent_kafka', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
