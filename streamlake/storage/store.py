"""The seam for bytes: what a table needs of an object store.

Three promises carry everything above (PROTOCOL.md, "Delta Log Entries"): an object becomes visible
whole or not at all; of several ``put_if_absent`` of one name exactly one succeeds; a listing shows
every object whose put was answered before the listing began.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from streamlake.errors import LimitExceededError

WHOLE_OBJECT_BYTES = 2 * 2**30
"""The largest object that ``get`` fetches; what may be larger is read by ranges."""


def check_whole(size_bytes: int, *, where: str) -> None:
    """Refuse to fetch an object whole that is larger than ``WHOLE_OBJECT_BYTES``.

    Raises:
        LimitExceededError: It is.
    """
    if size_bytes > WHOLE_OBJECT_BYTES:
        raise LimitExceededError(
            "The object is too large to be fetched whole.",
            where=where,
            found=f"{size_bytes} bytes; the limit is {WHOLE_OBJECT_BYTES}",
            remedy="No sound log has such a file: find out who wrote it.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectMeta:
    """What a store tells of an object without reading it."""

    path: str
    """Relative to the store's root, "/"-separated, not URL-encoded."""
    size_bytes: int
    modified_ms: int
    """The store's own time of the last write, in milliseconds since the Unix epoch."""


class ObjectStore(Protocol):
    """Bytes by path, under one root. Paths are relative, "/"-separated and not URL-encoded.

    Every method raises ObjectNotFoundError where a named object is missing and another StorageError
    where the store fails. Implementations are safe to use from several threads, pickle by their
    configuration, start no thread, retry reads as they see fit and never retry ``put_if_absent``.
    """

    @property
    def url(self) -> str:
        """The root, as a URL without secrets; for messages and for equality of stores."""

    def get(self, path: str) -> bytes:
        """The whole object.

        Raises:
            LimitExceededError: It is larger than ``WHOLE_OBJECT_BYTES``; found before it is read.
        """

    def get_range(self, path: str, start: int, length: int) -> bytes:
        """``length`` bytes from byte ``start``; fewer where the object ends before."""

    def put(self, path: str, data: bytes | memoryview) -> None:
        """Write, or replace, an object. Durable when it returns."""

    def put_if_absent(self, path: str, data: bytes | memoryview) -> None:
        """Write an object that must not exist yet. Durable when it returns.

        Raises:
            ObjectExistsError: The name is taken, perhaps by an earlier try of this very put; what
                has it is durable.
            WriteRefusedError: Refused before a byte became visible; certainly not written.
            StorageError: Anything else. The outcome is unknown: the object may exist, or appear
                later.
        """

    def list_from(self, prefix: str, start_after: str = "") -> Iterator[ObjectMeta]:
        """Objects whose path begins with ``prefix`` and sorts after ``start_after`` (a whole path).

        In ascending order of the UTF-8 bytes of the path, lazily, folders below included. A prefix
        that matches nothing gives nothing.
        """

    def stat(self, path: str) -> ObjectMeta:
        """Size and time of one object."""

    def delete(self, path: str) -> None:
        """Remove an object; removing one that is not there is no error."""
