"""The checksum of ``_last_checkpoint`` (PROTOCOL.md, "JSON checksum")."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from urllib.parse import quote

import msgspec

from streamlake.protocol.json_bounds import MAX_JSON_DEPTH, Json, check_depth

_CHECKSUM = "checksum"


class _Number(str):
    """A number as the JSON spells it: its own canonical form."""

    __slots__ = ()


def canonical_json(data: bytes) -> str:
    """The canonical form of a JSON object, without its top-level ``checksum``.

    Raises:
        msgspec.DecodeError: It is no JSON object, holds one key twice, or nests too deep.
    """
    pairs = _leaves(_members(data))
    return ",".join(f"{'+'.join(path)}={value}" for path, value in sorted(pairs, key=_path_bytes))


def json_checksum(data: bytes) -> str:
    """The MD5 of the canonical form, in hexadecimal digits: it finds damage, and proves nothing.

    Raises:
        msgspec.DecodeError: As ``canonical_json``.
    """
    return hashlib.md5(canonical_json(data).encode(), usedforsecurity=False).hexdigest()


def _members(data: bytes) -> dict[str, Json]:
    try:
        value = json.loads(
            data,
            object_pairs_hook=_unique,
            parse_int=_Number,
            parse_float=_Number,
            parse_constant=_refuse_constant,
        )
    except (ValueError, RecursionError) as error:
        raise msgspec.DecodeError(f"not a JSON object: {error}") from error
    if not isinstance(value, dict):
        raise msgspec.DecodeError("not a JSON object")
    check_depth(value, max_depth=MAX_JSON_DEPTH)
    value.pop(_CHECKSUM, None)
    return value


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a key is there twice")
    return members


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is no JSON value")


def _leaves(value: Json, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, dict):
        for name, member in value.items():
            yield from _leaves(member, (*path, _quoted(name)))
    elif isinstance(value, list):
        for position, member in enumerate(value):
            yield from _leaves(member, (*path, str(position)))
    else:
        yield path, _scalar(value)


def _scalar(value: Json) -> str:
    if isinstance(value, _Number):
        return str(value)
    return _quoted(value) if isinstance(value, str) else json.dumps(value)


def _quoted(text: str) -> str:
    try:
        return f'"{quote(text, safe="~")}"'
    except UnicodeEncodeError as error:
        raise msgspec.DecodeError("a string with half a surrogate pair") from error


def _path_bytes(pair: tuple[tuple[str, ...], str]) -> bytes:
    return "+".join(pair[0]).encode()
