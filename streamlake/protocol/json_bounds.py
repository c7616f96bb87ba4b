"""Bounds on JSON that others wrote: nesting, and keys that are there twice.

msgspec reads JSON fast, takes the last of two equal keys and nests until Python's own limit. What
is read from a table is held to more than that.
"""

from __future__ import annotations

import json
import re
from typing import Any, TypeAlias

import msgspec

Json: TypeAlias = Any
"""A decoded JSON value."""

MAX_JSON_DEPTH = 64
"""How deep objects and arrays may lie inside of one another."""

_encoder = msgspec.json.Encoder()
_WHITE_SPACE = re.compile(r"[ \t\r\n]*")


class NestingError(msgspec.ValidationError):
    """JSON nests deeper than is allowed, or than can be decoded."""


def check_depth(value: Json, *, max_depth: int = MAX_JSON_DEPTH) -> None:
    """Refuse a decoded value that nests deeper than ``max_depth``; a scalar has depth 0.

    Raises:
        NestingError: It does.
    """
    level = [value]
    for _ in range(max_depth + 1):
        nested = [child for child in level if isinstance(child, dict | list)]
        if not nested:
            return
        level = [
            child
            for parent in nested
            for child in (parent.values() if isinstance(parent, dict) else parent)
        ]
    raise NestingError(f"JSON nests deeper than {max_depth} levels")


def check_keys(data: bytes, decoded: Json) -> None:
    """Refuse JSON in which one object has the same key twice.

    Counting colons tells it nearly always: each key has one, those in strings are the same on both
    sides, and ``decoded`` lacks the second of two equal keys. Only where the counts differ, be it
    for a mere escape, the text is parsed again, slowly.

    Args:
        data: One JSON text, or several in a row.
        decoded: What it was decoded to, without types; of several texts the list.

    Raises:
        msgspec.ValidationError: A key is there twice.
    """
    if data.count(b":") == _encoder.encode(decoded).count(b":"):
        return
    text = data.decode()
    end = _after_white_space(text, 0)
    while end < len(text):
        _, end = _decoder.raw_decode(text, end)
        end = _after_white_space(text, end)


def _after_white_space(text: str, start: int) -> int:
    match = _WHITE_SPACE.match(text, start)
    return start if match is None else match.end()


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    unique = dict(pairs)
    if len(unique) != len(pairs):
        names = [key for key, _ in pairs]
        twice = next(key for key in names if names.count(key) > 1)
        raise msgspec.ValidationError(f"JSON object has the key {twice!r} twice")
    return unique


_decoder = json.JSONDecoder(object_pairs_hook=_unique)
