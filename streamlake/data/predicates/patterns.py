"""LIKE as Spark has it: the whole string, ``%`` and ``_``, and an escape character."""

from __future__ import annotations

import re

import pyarrow as pa

from streamlake.data.predicates.kernels import Values, pc

_SPECIAL = re.compile(r"([^A-Za-z0-9_\u0080-\U0010ffff])")


def like(text: Values, pattern: str, escape: str) -> Values:
    """Whether each string matches the pattern.

    Raises:
        pyarrow.ArrowInvalid: The pattern ends with the escape character, or escapes another than
            it, ``%`` and ``_``.
    """
    return pc.match_substring_regex(text, _regex(pattern, escape, flags="s"))


def ilike(text: Values, pattern: str, escape: str) -> Values:
    """The same without regard to case."""
    return pc.match_substring_regex(text, _regex(pattern, escape, flags="si"))


def constant_prefix(pattern: str, escape: str) -> str:
    """What every string that matches starts with."""
    prefix = ""
    for kind, character in _tokens(pattern, escape):
        if kind != "":
            break
        prefix += character
    return prefix


def _regex(pattern: str, escape: str, *, flags: str) -> str:
    parts = [
        {"%": ".*", "_": "."}[kind] if kind else _SPECIAL.sub(r"\\\1", character)
        for kind, character in _tokens(pattern, escape)
    ]
    return rf"\A(?{flags}:{''.join(parts)})\z"


def _tokens(pattern: str, escape: str) -> list[tuple[str, str]]:
    """Each character of a pattern: its wildcard, or none and the character that it stands for."""
    found: list[tuple[str, str]] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            escaped = next(characters, None)
            if escaped not in {"%", "_", escape}:
                raise pa.ArrowInvalid(f"the pattern {pattern!r} has a stray escape character")
            found.append(("", escaped))
        else:
            found.append((character if character in "%_" else "", character))
    return found
