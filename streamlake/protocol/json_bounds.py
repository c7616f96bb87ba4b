"""Bounds on JSON that others wrote: nesting, and keys that are there twice.

msgspec reads JSON fast, takes the last of two equal keys and nests until Python's own limit. What
is read from a table is held to more than that.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

import msgspec

MAX_JSON_DEPTH = 64
"""How deep the values of an action, or of a schema, may nest."""

_encoder = msgspec.json.Encoder()


def check_depth(value: Any, max_depth: int = MAX_JSON_DEPTH) -> None:  # noqa: ANN401 - any JSON
    """Refuse a decoded value that nests deeper than ``max_depth``; a scalar has depth 0.

    Raises:
        msgspec.ValidationError: It does.
    """
    level = [value]
    for _ in range(max_depth + 1):
        level = [
            child
            for parent in level
            if isinstance(parent, dict | list)
            for child in (parent.values() if isinstance(parent, dict) else parent)
        ]
        if not level:
            return
    raise msgspec.ValidationError(f"JSON nests deeper than {max_depth} levels")


def check_keys(data: bytes, decoded: Any) -> None:  # noqa: ANN401 - any JSON
    """Refuse JSON in which one object has the same key twice.

    Counting keys tells it nearly always: ``decoded`` lacks the second of two equal ones. Only where
    the counts differ, be it for mere white space, the text is parsed again, slowly.

    Args:
        data: One JSON text.
        decoded: What it was decoded to, without types.

    Raises:
        msgspec.ValidationError: A key is there twice.
    """
    if _count_keys(data) == _count_keys(_encoder.encode(decoded)):
        return
    json.loads(data, object_pairs_hook=_unique)


def _count_keys(data: bytes) -> int:
    """How many keys JSON without white space has: quote-colon that no backslash precedes."""
    return data.count(b'":') - data.count(b'\\":')


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                _refuse(key)
            seen.add(key)
    return unique


def _refuse(key: str) -> NoReturn:
    raise msgspec.ValidationError(f"JSON object has the key {key!r} twice")
