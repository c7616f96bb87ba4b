"""What the documentation says is true: its code runs, its commands parse, its links lead somewhere."""

import contextlib
import os
from pathlib import Path

import pytest
from snippets import PAGES, ROOT, anchors, blocks, commands, links

from streamlake import errors

BLOCKS = [block for page in PAGES for block in blocks(page)]
PYTHON_PAGES = sorted({block.page for block in BLOCKS if block.language == "python"})
CONSOLES = [block for block in BLOCKS if block.language == "console" and commands(block)]


def ident(value):
    return str(value.relative_to(ROOT)) if isinstance(value, Path) else str(value)


def run_snippets(page, *, needs, replace=()):
    """Run a page's Python blocks that need nothing, or what ``needs`` names, in one namespace."""
    namespace = {"__name__": "snippet"}
    ran = 0
    for block in blocks(page):
        if block.language != "python" or not set(block.words) <= set(needs):
            continue
        text = "\n" * block.line + block.text
        for old, new in replace:
            text = text.replace(old, new)
        exec(compile(text, str(page), "exec"), namespace)  # noqa: S102 -- our own documentation
        ran += 1
    return ran


@pytest.mark.parametrize("page", PYTHON_PAGES, ids=ident)
def test_the_python_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_snippets(page, needs=())


@pytest.mark.parametrize("block", BLOCKS, ids=ident)
def test_a_block_says_how_it_is_checked(block):
    assert block.language in {"python", "console", "sh", "json", "yaml"}
    assert set(block.words) <= {"kafka", "spark", "no-run"}


@pytest.mark.parametrize("page", PAGES, ids=ident)
def test_the_links_of_a_page_lead_somewhere(page):
    for target in links(page):
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), target


def test_every_error_has_its_place_in_the_errors_page():
    told = (ROOT / "docs/errors.md").read_text()
    assert [name for name in vars(errors) if name.endswith("Error") and name not in told] == []


def test_every_decision_is_listed():
    folder = ROOT / "docs/decisions"
    listed = set(links(folder / "README.md"))
    assert listed == {path.name for path in folder.glob("0*.md")}
