"""The JSON of commit files: one action a line (PROTOCOL.md, "Delta Log Entries").

Decoding is typed and refuses what does not fit; unknown fields and unknown actions are passed over,
as the protocol asks of readers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from streamlake.errors import InvalidInputError
from streamlake.protocol.actions import (
    Action,
    AddCdcFile,
    AddFile,
    CheckpointMetadata,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    Sidecar,
)
from streamlake.protocol.json_bounds import (
    MAX_JSON_DEPTH,
    Json,
    NestingError,
    check_depth,
    check_keys,
)

_COMMIT_INFO = "commitInfo"
_KINDS: dict[str, type[Action]] = {
    "add": AddFile,
    "remove": RemoveFile,
    "cdc": AddCdcFile,
    "metaData": Metadata,
    "protocol": Protocol,
    "txn": SetTransaction,
    "domainMetadata": DomainMetadata,
    "checkpointMetadata": CheckpointMetadata,
    "sidecar": Sidecar,
}
_KEYS: dict[type[Action], str] = {kind: key for key, kind in _KINDS.items()}
_BLOCK_BYTES = 4 * 2**20
"""About how much of a file is decoded at a time, to bound the memory of it."""

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()
_convert = msgspec.convert


def encode_actions(actions: Iterable[Action]) -> bytes:
    """The bytes of a commit file that holds ``actions`` in order.

    One line each, newline-terminated, without white space; absent optionals are left out.

    Raises:
        InvalidInputError: A commitInfo holds what JSON can't.
    """
    lines = [
        {_COMMIT_INFO: action.fields}
        if isinstance(action, CommitInfo)
        else {_KEYS[type(action)]: action}
        for action in actions
    ]
    try:
        return _encoder.encode_lines(lines)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidInputError(
            "The commit can't be written as JSON.",
            found=str(error),
            remedy="Give commit information of strings, numbers, booleans, lists and dicts.",
        ) from error


def decode_actions(data: bytes, *, max_depth: int = MAX_JSON_DEPTH) -> list[Action]:
    """The actions of a commit file, in order; unknown actions are left out.

    Blank lines are passed over. An action whose value is null is none.

    Args:
        data: The whole file.
        max_depth: How deep the JSON of one line may nest; what is passed over may be deeper.

    Raises:
        msgspec.DecodeError: The bytes are no JSON lines (torn, NUL, no UTF-8, a key twice), a line
            has two actions, or an action lacks a field or has one of a wrong type.
            (msgspec.ValidationError is one of these.)
        NestingError: They nest deeper than is allowed; a msgspec.DecodeError, too.
    """
    actions: list[Action] = []
    number = 0
    for block in _blocks(data):
        for line in _decoded(block):
            number += 1
            try:
                action = _action(line, max_depth)
            except msgspec.ValidationError as error:
                raise type(error)(f"Action {number} of the file: {error}") from error
            if action is not None:
                actions.append(action)
    return actions


def _blocks(data: bytes) -> Iterator[bytes]:
    """The file in parts that end with a line."""
    if len(data) <= _BLOCK_BYTES:
        yield data
        return
    start = 0
    while start < len(data):
        end = data.find(b"\n", start + _BLOCK_BYTES) + 1 or len(data)
        yield data[start:end]
        start = end


def _decoded(block: bytes) -> list[Json]:
    try:
        lines = _decoder.decode_lines(block)
        check_keys(block, lines)
    except RecursionError:
        raise NestingError("JSON nests deeper than can be decoded") from None
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError(f"JSON is not UTF-8: {error.reason}") from error
    return lines


def _action(line: Json, max_depth: int) -> Action | None:
    if not isinstance(line, dict):
        raise msgspec.ValidationError("JSON object expected")
    action: Action | None = None
    for key, value in line.items():
        kind: Any = _KINDS.get(key)
        if value is None or (kind is None and key != _COMMIT_INFO):
            continue
        if action is not None:
            raise msgspec.ValidationError(f"{key!r} beside another action")
        if kind is not None:
            action = _typed(key, value, kind)
        elif isinstance(value, dict):
            check_depth(value, max_depth=max_depth - 1)
            action = CommitInfo(value)
    return action


def _typed(key: str, value: Json, kind: type[Action]) -> Action:
    try:
        return _convert(value, kind)
    except msgspec.ValidationError as error:
        raise msgspec.ValidationError(f"{key}: {error}") from error
