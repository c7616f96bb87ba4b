"""When a handle writes checkpoints, and that it holds nobody up meanwhile."""

from __future__ import annotations

import logging
import threading

from streamlake.clock import Clock
from streamlake.errors import CorruptTableError
from streamlake.log.checkpoint.hint import hinted_version
from streamlake.log.checkpoint.policy import interval_of, retried_from
from streamlake.log.checkpoint.writer import write_checkpoint
from streamlake.log.head import Head
from streamlake.log.limits import Limits
from streamlake.log.snapshot import load_state
from streamlake.protocol import check_writable
from streamlake.storage import ObjectStore

logger = logging.getLogger(__name__)


class Checkpointing:
    """Writes the checkpoints of one log, one at a time; safe to use from several threads.

    A checkpoint is made of what the log holds, not of what the handle remembers; so it needs no
    lock against commits, and no memory between two checkpoints.
    """

    def __init__(self, store: ObjectStore, clock: Clock, limits: Limits) -> None:
        self._store = store
        self._clock = clock
        self._limits = limits
        self._writing = threading.Lock()

    def write(self, version: int) -> None:
        """Write one of ``version``, unless there is one that can be read.

        Raises:
            UnsupportedFeatureError: The table has a writer feature that is not supported: what it
                asks of checkpoints is not known.
            CorruptTableError: The log does not lead to the version.
        """
        with self._writing:
            self._write(version)

    def write_if_due(self, head: Head) -> int | None:
        """Write one of ``head`` if the interval has passed and nobody else has written one since.

        Returns:
            The version to count from now on; None where nothing is due, or another thread is at it.
        """
        interval = interval_of(head)
        if head.version - max(head.checkpoint_version, 0) < interval:
            return None
        if not self._writing.acquire(blocking=False):
            return None
        try:
            hint = hinted_version(self._store)
            known = hint if hint <= head.version else head.checkpoint_version
            if head.version - known < interval:
                return known
            self._write(head.version)
        except Exception:  # the commit stands, whatever its checkpoint meets
            logger.warning(
                "no checkpoint of %s at %d", self._store.url, head.version, exc_info=True
            )
            return retried_from(head, interval)
        else:
            return head.version
        finally:
            self._writing.release()

    def _write(self, version: int) -> None:
        state, _ = load_state(self._store, version, limits=self._limits)
        check_writable(*state.checked(), where=self._store.url)
        if state.base_version == version:  # a reader may be at it, and it says the same
            return
        try:
            write_checkpoint(self._store, state, clock=self._clock)
        except CorruptTableError:  # in a column of the one before that only a checkpoint reads
            logger.warning("another way to %s at %d", self._store.url, version, exc_info=True)
            state, _ = load_state(self._store, version, limits=self._limits, to_the_end=True)
            write_checkpoint(self._store, state, clock=self._clock)
