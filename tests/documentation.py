"""The documentation as data: its code blocks, commands and links."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")], key=lambda path: path.relative_to(ROOT)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block of a page."""

    page: Path
    line: int
    language: str
    words: tuple[str, ...]
    """What follows the language after the fence: ``kafka``, ``spark`` or ``no-run``."""
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found = []
    text = page.read_text()
    for match in re.finditer(r"^```(\w+)([^\n]*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        language, words, body = match.groups()
        line = text.count("\n", 0, match.start()) + 1
        found.append(
            Block(page=page, line=line, language=language, words=tuple(words.split()), text=body)
        )
    return found


def commands(block: Block) -> list[list[str]]:
    """The ``streamlake`` commands of a console block; a trailing backslash goes on."""
    lines = block.text.replace("\\\n", " ").splitlines()
    typed = [line[2:] for line in lines if line.startswith("$ ")]
    parsed = [shlex.split(line, comments=True) for line in typed]
    return [words[1:] for words in parsed if words[0] == "streamlake"]


def links(page: Path) -> list[str]:
    """The targets of a page's links into this repository."""
    targets = re.findall(r"\]\(([^)\s]+)\)", page.read_text())
    return [target for target in targets if not re.match(r"[a-z]+:", target)]


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives a page's headings."""
    headings = re.findall(r"^#+ +(.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}
