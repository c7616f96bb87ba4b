"""A handle whose next commit is overtaken by somebody else's."""

from __future__ import annotations

from collections.abc import Callable

import streamlake as sl
from streamlake.log import Log
from streamlake.storage import ObjectStore
from streamlake.testing import CountingStore


class OvertakenStore(CountingStore):
    """Lets somebody else commit right before the first commit file is put."""

    def __init__(self, inner: ObjectStore, winner: Callable[[], object]) -> None:
        super().__init__(inner)
        self._winners = [winner]

    def put_if_absent(self, path: str, data: bytes | memoryview) -> None:
        """The winner's commit first, the first time."""
        if path.endswith(".json") and self._winners:
            self._winners.pop()()
        super().put_if_absent(path, data)


def overtaken(table: sl.Table, winner: Callable[[], object]) -> sl.Table:
    """Another handle on ``table``, at its newest version, that ``winner`` will overtake."""
    log = Log(OvertakenStore(table.log.store, winner))
    log.refresh()
    return sl.Table(log)
