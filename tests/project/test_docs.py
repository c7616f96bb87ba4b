"""What the documentation says is true: its code and commands run, its links lead somewhere."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from documentation import PAGES, ROOT, anchors, blocks, links
from streamlake import errors
from streamlake.cli import app

ADDRESS = "localhost:9092"
BLOCKS = [block for page in PAGES for block in blocks(page)]


def pages_with(language, *words):
    """Pages with a block that needs exactly these words."""
    found = {b.page for b in BLOCKS if b.language == language and set(b.words) == set(words)}
    return sorted(found)


def name_of(value):
    return str(value.relative_to(ROOT)) if isinstance(value, Path) else str(value)


def run_python(page, servers="", **given):
    """Run a page's Python in one namespace: the blocks that need no more than is given."""
    needs = {*given, *(["kafka"] if servers else [])}
    namespace = {"__name__": "snippet", **given}
    for block in blocks(page):
        if block.language == "python" and set(block.words) <= needs:
            text = "\n" * block.line + block.text.replace(ADDRESS, servers or ADDRESS)
            text = text.replace('"checkpoints/', f'"{Path.cwd()}/checkpoints/')
            exec(compile(text, str(page), "exec"), namespace)  # noqa: S102 -- our own documentation


def run_console(page, servers=""):
    """Type a page's commands into one shell, which ends at the first that fails."""
    allowed = [{"kafka"}, set()] if servers else [set()]
    typed = [
        line.removeprefix("$ ")
        for block in blocks(page)
        if block.language == "console" and set(block.words) in allowed
        for line in block.text.replace("\\\n", " ").splitlines()
        if line.startswith("$ ")
    ]
    script = "\n".join(["set -euo pipefail", *typed]).replace(ADDRESS, servers or ADDRESS)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-c", script],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("page", pages_with("python"), ids=name_of)
def test_the_python_of_a_page_runs(page):
    run_python(page)


@pytest.mark.parametrize("page", pages_with("python", "kafka"), ids=name_of)
def test_the_python_of_a_page_runs_with_kafka(page, orders):
    run_python(page, orders)


@pytest.mark.parametrize("page", pages_with("python", "spark", "kafka"), ids=name_of)
def test_the_python_of_a_page_runs_on_spark(page, orders, spark):
    run_python(page, orders, spark=spark)


@pytest.mark.parametrize("page", pages_with("console"), ids=name_of)
def test_the_commands_of_a_page_run(page):
    run_console(page)


@pytest.mark.parametrize("page", pages_with("console", "kafka"), ids=name_of)
def test_the_commands_of_a_page_run_with_kafka(page, orders):
    run_console(page, orders)


@pytest.mark.parametrize("block", BLOCKS, ids=name_of)
def test_a_block_says_how_it_is_checked(block):
    assert block.language in {"python", "console", "sh", "text"}
    assert set(block.words) <= {"kafka", "spark", "no-run"}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_links_of_a_page_lead_somewhere(page):
    for target in links(page):
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), target


def test_every_error_has_its_place_in_the_errors_page():
    told = (ROOT / "docs/errors.md").read_text()
    assert [name for name in vars(errors) if name.endswith("Error") and name not in told] == []


def test_every_command_has_its_place_in_the_command_line_page():
    headings = anchors(ROOT / "docs/cli.md")
    assert {f"streamlake-{command.name}" for command in app.registered_commands} <= headings


def test_every_decision_is_listed():
    folder = ROOT / "docs/decisions"
    assert {path.name for path in folder.glob("0*.md")} == set(links(folder / "README.md"))
