"""Setting up: what is missing is named, with the command that installs it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ["bash", "cat", "cksum", "dirname", "grep", "sed", "tr"]


@pytest.fixture
def machine(tmp_path):
    """A copy of the set-up on a machine whose PATH holds nothing but ``bin``."""
    for name in ("pyproject.toml", "constraints.txt", ".ci/setup"):
        copy = tmp_path / "clone" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy)
    (tmp_path / "bin").mkdir()
    for tool in TOOLS:
        (tmp_path / "bin" / tool).symlink_to(shutil.which(tool))
    return tmp_path


def set_up(machine: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [machine / "clone/.ci/setup"],
        env={"PATH": str(machine / "bin"), **env},
        capture_output=True,
        text=True,
        check=False,
    )


def program(path: Path, *lines: str) -> None:
    path.write_text("\n".join(["#!/bin/bash", *lines]) + "\n")
    path.chmod(0o755)


def test_without_python_it_says_what_to_install(machine):
    done = set_up(machine)
    assert done.returncode == 1
    assert "Python 3.11 or newer" in done.stderr
    assert all(word in done.stderr for word in ("apt install", "dnf install", "brew install"))
    assert not (machine / "clone/.venv").exists()


def test_an_old_python_does_not_count(machine):
    program(machine / "bin/python3", "exit 1")
    assert "Python 3.11 or newer" in set_up(machine).stderr


def test_a_python_without_venv_is_told_apart_from_none(machine):
    program(machine / "bin/python3", 'case "$*" in *ensurepip*) exit 1 ;; esac')
    done = set_up(machine)
    assert done.returncode == 1
    assert "apt install python3-venv" in done.stderr


def test_a_named_interpreter_that_does_not_fit_is_named_in_the_message(machine):
    assert "PYTHON=/no/such/python" in set_up(machine, PYTHON="/no/such/python").stderr


@pytest.mark.parametrize("version", ["1.8.0_321", "11.0.2", None])
def test_missing_or_old_java_is_told_with_what_is_skipped(machine, version):
    if version:
        program(machine / "bin/java", f"echo 'openjdk version \"{version}\"' >&2")
    script = (ROOT / ".ci/setup").read_text()
    function = script[script.index("note_java() {") :].partition("\n}\n")[0] + "\n}\n"
    done = subprocess.run(
        ["bash", "-euc", function + "note_java"],
        env={"PATH": str(machine / "bin")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Java 17 or newer was not found" in done.stdout
    assert "apt install openjdk-17" in done.stdout


def test_make_lists_its_targets_when_asked_for_nothing():
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(["make"], cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    targets = [line.split()[1] for line in done.stdout.splitlines()]
    assert targets == ["help", "demo", "test", "test-peers", "check", "bench", "setup", "clean"]
