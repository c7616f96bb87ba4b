"""Does a store honour put-if-absent? Some take the condition and ignore it."""

from __future__ import annotations

import contextlib

from streamlake.clock import Clock
from streamlake.errors import (
    ConditionalPutUnsupportedError,
    ObjectExistsError,
    StorageError,
    WriteRefusedError,
)
from streamlake.storage.store import ObjectStore

PROBE_FOLDER = "_streamlake/probe"
"""Where the probe's object lies for a moment; one may stay behind where deleting is not allowed."""
_PUTS = 6
"""Enough for a first put, a refused one, and four whose answers get lost."""
_REMEDY = (
    "Use a store with conditional puts (S3, or a server that honours If-None-Match), or open the "
    "table with single_writer=True if no other process ever writes to it."
)


def prove_put_if_absent(store: ObjectStore, clock: Clock) -> None:
    """Put one object twice; the second put must be refused and must leave the first one's bytes.

    Costs two puts, a get and a delete. Answers that get lost are put again, a bounded number of
    times.

    Raises:
        ConditionalPutUnsupportedError: The second put was accepted, or replaced the object, or the
            store says itself that it can't.
        WriteRefusedError: Nothing may be written there.
        StorageError: The store did not answer clearly often enough to tell.
    """
    path = f"{PROBE_FOLDER}/{clock.new_id()}"
    try:
        refused = _put_until_refused(store, path)
        if store.get(path) == refused:
            raise _unsupported(store, "the put was refused, and yet it replaced the object")
    finally:
        with contextlib.suppress(StorageError):
            store.delete(path)


def store_time_ms(store: ObjectStore, clock: Clock) -> int:
    """What time it is by the store's own clock, in milliseconds since the Unix epoch.

    A put, a stat and a delete of a probe.

    Raises:
        StorageError: The store refuses one of them.
    """
    path = f"{PROBE_FOLDER}/{clock.new_id()}"
    store.put(path, b"what time is it\n")
    try:
        return store.stat(path).modified_ms
    finally:
        with contextlib.suppress(StorageError):
            store.delete(path)


def _put_until_refused(store: ObjectStore, path: str) -> bytes:
    """Put until the store says that the name is taken; gives the bytes that it refused."""
    accepted, lost = 0, StorageError("The store gave no answer.", where=store.url)
    for number in range(_PUTS):
        data = f"{path} {number}\n".encode()
        try:
            store.put_if_absent(path, data)
        except ObjectExistsError:
            return data
        except (ConditionalPutUnsupportedError, WriteRefusedError):
            raise
        except StorageError as error:
            lost = error
            continue
        accepted += 1
        if accepted > 1:
            raise _unsupported(store, "a second put of one name was accepted")
    raise lost


def _unsupported(store: ObjectStore, found: str) -> ConditionalPutUnsupportedError:
    return ConditionalPutUnsupportedError(
        "The store does not honour put-if-absent, so two writers could both win a version.",
        where=store.url,
        found=found,
        remedy=_REMEDY,
    )
