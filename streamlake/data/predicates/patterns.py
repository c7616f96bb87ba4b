"""LIKE and RLIKE as Spark has them, by the regular expressions of RE2.

RLIKE takes what means the same in Java and in RE2, or can be written so that it does: a ``$`` also
matches before a last line end, a dot no line end of Unicode's. All else is refused.
"""

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


def rlike(text: Values, pattern: str) -> Values:
    """Whether a part of each string matches a regular expression of Java's.

    Raises:
        pyarrow.ArrowInvalid: It has a part that RE2 does not know or reads in another way.
    """
    return pc.match_substring_regex(text, _of_java(pattern))


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


_LINE_ENDS = r"\n\r\x{85}\x{2028}\x{2029}"
_SPACES = r" \t\n\x0B\f\r"
_ESCAPE = re.compile(r"\\.", re.DOTALL)
_SAME_ESCAPES = frozenset("dDwWAtnrf")
_ITEM = re.compile(
    r"(?P<escape>\\.)|(?P<set>\[\^?(?:\\.|[^\]\[\\&])+\])|(?P<group>\((?:\?:)?(?!\?))"
    r"|(?P<repeat>(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})\??)|(?P<end>\$(?=$|[|)]))|(?P<dot>\.)"
    r"|(?P<plain>[|)^]|[^\\\[\](){}*+?$.|^])",
    re.DOTALL,
)


def _of_java(pattern: str) -> str:
    found: list[str] = []
    at = 0
    while at < len(pattern):
        item = _ITEM.match(pattern, at)
        if item is None:
            raise pa.ArrowInvalid(
                f"{pattern[at : at + 10]!r} in the regular expression {pattern!r}"
            )
        found.append(_item_of_java(item))
        at = item.end()
    return "".join(found)


def _item_of_java(item: re.Match[str]) -> str:
    text = item[0]
    if item["end"]:
        return rf"(?:\r\n|[{_LINE_ENDS}])?\z"
    if item["dot"]:
        return f"[^{_LINE_ENDS}]"
    if item["set"]:
        return re.sub(
            r"\\.", lambda escape: _escape_of_java(escape[0], in_set=True), text, flags=re.DOTALL
        )
    return _escape_of_java(text, in_set=False) if item["escape"] else text


def _escape_of_java(escape: str, *, in_set: bool) -> str:
    character = escape[1]
    if character == "s":
        return _SPACES if in_set else f"[{_SPACES}]"
    if character == "S" and not in_set:
        return f"[^{_SPACES}]"
    known = character in _SAME_ESCAPES and not (in_set and character == "A")
    if known or (character.isascii() and not character.isalnum()):
        return escape
    raise pa.ArrowInvalid(f"{escape!r} in a regular expression")
