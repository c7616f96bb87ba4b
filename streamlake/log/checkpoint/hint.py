"""``_last_checkpoint``: where to begin listing; a hint that may be wrong in every way."""

from __future__ import annotations

import logging

import msgspec

from streamlake.errors import ObjectNotFoundError
from streamlake.protocol import LAST_CHECKPOINT, MAX_INT64, json_checksum
from streamlake.storage import ObjectStore

logger = logging.getLogger(__name__)

MOST_HINT_BYTES = 16 * 2**20
"""A larger hint is not decoded: what it may hold besides the version is not used."""


class _Hint(msgspec.Struct):
    version: int
    checksum: str | None = None


class _NewHint(msgspec.Struct, frozen=True, rename="camel"):
    version: int
    size: int
    size_in_bytes: int
    num_of_add_files: int


def hinted_version(store: ObjectStore) -> int:
    """The version that ``_last_checkpoint`` names, or 0 where it is missing or can't be trusted.

    It may name any version, below or above the newest checkpoint, or one that does not exist. A
    hint that is garbled, or whose checksum does not fit, counts as missing (PROTOCOL.md, "Last
    Checkpoint File").
    """
    try:
        data = store.get(LAST_CHECKPOINT)
    except ObjectNotFoundError:
        return 0
    if len(data) > MOST_HINT_BYTES:
        logger.warning("%s/%s is too large: not used", store.url, LAST_CHECKPOINT)
        return 0
    try:
        hint = msgspec.json.decode(data, type=_Hint)
        is_whole = hint.checksum is None or hint.checksum == json_checksum(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        is_whole = False
    if not is_whole or not 0 <= hint.version <= MAX_INT64:
        logger.warning("%s/%s is garbled: not used", store.url, LAST_CHECKPOINT)
        return 0
    return hint.version


def write_hint(
    store: ObjectStore, version: int, *, num_actions: int, num_bytes: int, num_adds: int
) -> None:
    """Name a checkpoint that was written, with the checksum of what is said: one request."""
    told = msgspec.json.encode(_NewHint(version, num_actions, num_bytes, num_adds))
    checksum = json_checksum(told).encode()
    store.put(LAST_CHECKPOINT, told[:-1] + b',"checksum":"' + checksum + b'"}')
