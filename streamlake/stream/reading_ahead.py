"""Commits and data files, read in place at the head of a log and ahead of time while behind."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa

from streamlake.data import iter_file, read_file
from streamlake.errors import ObjectNotFoundError
from streamlake.log import Commit, Log, LogTail, read_commit
from streamlake.protocol import AddFile
from streamlake.stream.options import LOCAL_SCHEMES
from streamlake.stream.plan import Reading

COMMITS_AHEAD = 64
"""The most commits that are read before it is their turn."""
FILES_AHEAD = 32
"""The most data files that are read before it is their turn."""
BYTES_AHEAD = 64 * 2**20
"""The most bytes of data files, as stored, that are read before it is their turn."""
LARGE_FILE_BYTES = 8 * 2**20
"""Files from this size on are read in parts, when it is their turn."""
THREADS = 16
"""Of an executor of the tail's own: requests in flight to a store with latency."""
LOCAL_FILE_BYTES = 2**17
"""Of a store without latency (a local disk, memory) smaller files are read in place: a thread costs
more than it saves. So are its commits."""
FEWEST_WAITING = 4
"""From that many waiting commits, or files, on reading ahead is worth its threads."""


@dataclass(slots=True, kw_only=True)
class FileToRead:
    """A data file on its way to a batch."""

    index: int
    add: AddFile
    reading: Reading
    start_row: int = 0
    rows: Future[pa.Table] | None = None
    """What is being read ahead; None where it will be read in place."""
    is_taken: bool = False
    """Whether its rows were asked for."""

    @property
    def is_large(self) -> bool:
        """Whether it is read in parts."""
        return self.add.size >= LARGE_FILE_BYTES


class AheadReader:
    """Reads commits in order, and the files that were planned; owns an executor while behind.

    Used by one thread. Memory is bounded by the constants of this module and one batch. A store
    without latency is read in place, but for larger files, unless an executor is given.
    """

    def __init__(self, log: Log, executor: Executor | None) -> None:
        self._log = log
        self._given = executor
        self._own: ThreadPoolExecutor | None = None
        self._has_latency = executor is not None or not log.url.startswith(LOCAL_SCHEMES)
        self.follow(LogTail(log.store, next_version=0, clock=log.clock))

    def follow(self, tail: LogTail) -> None:
        """Read the commits of ``tail`` from now on; forget what was read and expected before."""
        self._tail = tail
        self._commits: deque[Future[Commit]] = deque()
        self._expected: deque[FileToRead] = deque()
        self._files_ahead = 0
        self._bytes_ahead = 0

    @property
    def is_behind(self) -> bool:
        """Whether enough commits wait to read ahead."""
        return self._tail.behind >= FEWEST_WAITING or bool(self._commits)

    def next_commit(self) -> Commit | None:
        """The next commit, or None where there is none yet: one request at the head.

        Raises:
            LogGapError: A version is missing between two that exist.
            LogTruncatedError: Log clean-up removed the version.
            CorruptTableError: The commit file is torn or garbled.
        """
        if not self._has_latency or not self.is_behind:
            commits = self._tail.poll(most=1)
            return commits[0] if commits else None
        self._read_commits_ahead()
        try:
            commit = self._commits.popleft().result()
        except ObjectNotFoundError:
            self._forget_commits()
            found = self._tail.poll(most=1)
            return found[0] if found else None
        self._tail.next_version = commit.version + 1
        return commit

    def expect(self, files: Iterable[FileToRead]) -> None:
        """Take note of files that will be asked for, in this order."""
        self._expected.extend(files)

    def read_ahead(self) -> None:
        """Begin to read expected files, where several wait and as far as the bounds allow."""
        if self.is_behind or len(self._expected) >= FEWEST_WAITING:
            self._fill()

    def forget_expected(self) -> None:
        """All files that were expected have been asked for."""
        self._expected.clear()

    def _fill(self) -> None:
        while self._expected and self._may_begin(self._expected[0]):
            file = self._expected.popleft()
            if self._is_worth_it(file):
                file.rows = self._executor().submit(self._read_whole, file)
                self._files_ahead += 1
                self._bytes_ahead += file.add.size

    def _is_worth_it(self, file: FileToRead) -> bool:
        is_small = not self._has_latency and file.add.size < LOCAL_FILE_BYTES
        return not (is_small or file.is_large or file.start_row or file.is_taken)

    def _may_begin(self, file: FileToRead) -> bool:
        fits = not self._bytes_ahead or self._bytes_ahead + file.add.size <= BYTES_AHEAD
        return file.is_taken or file.is_large or (fits and self._files_ahead < FILES_AHEAD)

    def rows_of(self, file: FileToRead) -> Iterator[pa.Table]:
        """The rows of a file from its ``start_row`` on, in one or several tables.

        Raises:
            CorruptTableError: The file is missing (a vacuum may have removed it), torn or garbled.
            LimitExceededError: A bound of reading was passed.
            UnsupportedFeatureError: The file holds what can't be read; it is named.
        """
        file.is_taken = True
        if file.rows is not None:
            future, file.rows = file.rows, None
            self._files_ahead -= 1
            self._bytes_ahead -= file.add.size
            self._fill()
            yield future.result()
        elif file.is_large or file.start_row:
            yield from self._read_in_parts(file)
        else:
            yield self._read_whole(file)

    def close(self) -> None:
        """Give up what is being read, and stop the executor of its own. Idempotent."""
        self._forget_commits()
        if self._own is not None:
            self._own.shutdown(wait=True, cancel_futures=True)
            self._own = None

    def _read_commits_ahead(self) -> None:
        executor = self._executor()
        first = self._tail.next_version + len(self._commits)
        last = min(self._tail.listed_until, self._tail.next_version + COMMITS_AHEAD - 1)
        for version in range(first, last + 1):
            self._commits.append(executor.submit(self._read_commit, version))

    def _read_commit(self, version: int) -> Commit:
        return read_commit(self._log.store, version, limits=self._log.limits)

    def _forget_commits(self) -> None:
        for future in self._commits:
            future.cancel()
        self._commits.clear()

    def _read_whole(self, file: FileToRead) -> pa.Table:
        reading = file.reading
        return read_file(
            self._log.store,
            file.add,
            reading.table,
            columns=reading.columns,
        )

    def _read_in_parts(self, file: FileToRead) -> Iterator[pa.Table]:
        reading = file.reading
        return iter_file(
            self._log.store,
            file.add,
            reading.table,
            columns=reading.columns,
            start_row=file.start_row,
        )

    def _executor(self) -> Executor:
        if self._given is not None:
            return self._given
        if self._own is None:
            self._own = ThreadPoolExecutor(THREADS, thread_name_prefix="streamlake-tail")
        return self._own
