"""A log is cleaned up by several while others append, read, travel and tail."""

import random
import threading

import pyarrow as pa

import streamlake as sl
from log.cleaning import DAY_S, MIDNIGHT_MS, NAMES
from streamlake import operations
from streamlake.log import Log
from streamlake.storage import MemoryStore
from streamlake.testing import ManualClock

SCHEMA = pa.schema([pa.field("n", pa.int64())])
COMMITS = 32
PROPERTIES = {
    "delta.logRetentionDuration": "interval 2 days",
    "delta.checkpointInterval": "3",
    "delta.enableExpiredLogCleanup": "true",
}


class Race:
    """Threads over one table, each with a handle of its own, until the writer is done."""

    def __init__(self, store, clock):
        self.store, self.clock = store, clock
        self.done = threading.Event()
        self.failures: list[BaseException] = []
        operations.create(Log(store, clock=clock), SCHEMA, properties=PROPERTIES)

    def handle(self) -> sl.Table:
        return sl.Table(Log(self.store, clock=self.clock))

    def write(self):
        table = self.handle()
        for number in range(COMMITS):
            self.clock.sleep(DAY_S / 4)
            table.append(pa.table([[number]], schema=SCHEMA))

    def read(self):
        """The newest version is always there, whole, from fresh handles and from old ones."""
        old = self.handle()
        while not self.done.is_set():
            for table in (old, self.handle()):
                snapshot = table.snapshot()
                assert len(snapshot.files()) == snapshot.version

    def travel(self):
        """An older version is there, whole, or is told to be gone."""
        dice = random.Random(7)
        while not self.done.is_set():
            table = self.handle()
            version = dice.randint(0, table.log.refresh().version)
            try:
                assert len(table.snapshot(version).files()) == version
            except sl.LogTruncatedError:
                continue

    def follow(self):
        """A tail gives every row in order, or says that it was overtaken."""
        while not self.done.is_set():
            first = max(1, self.handle().log.refresh().version - 3)
            try:
                numbers = [
                    number
                    for batch in self.handle().tail(start=first, stop="latest")
                    for number in batch.data["n"].to_pylist()
                ]
            except sl.LogTruncatedError:
                continue
            assert numbers == list(range(first - 1, first - 1 + len(numbers)))

    def clean(self):
        while not self.done.is_set():
            self.handle().clean_log()

    def run(self, *parts):
        def guarded(part):
            try:
                part()
            except BaseException as error:  # noqa: BLE001 - told by the test's own thread
                self.failures.append(error)
                self.done.set()

        threads = [threading.Thread(target=guarded, args=(part,)) for part in parts]
        for thread in threads:
            thread.start()
        guarded(self.write)
        self.done.set()
        for thread in threads:
            thread.join()
        if self.failures:
            raise self.failures[0]


def test_whoever_reads_finds_the_table_whole_while_others_clean_up():
    clock = ManualClock(now_ms=MIDNIGHT_MS, seed=next(NAMES))
    race = Race(MemoryStore(clock=clock, name=f"race-{next(NAMES)}"), clock)
    race.run(race.read, race.travel, race.follow, race.clean, race.clean)
    assert race.handle().snapshot().version == COMMITS
    assert min(record.version for record in race.handle().history()) > COMMITS // 2
