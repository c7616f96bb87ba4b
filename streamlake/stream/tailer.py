"""The tail of a table: its rows as they were committed, from a position on, and those that come."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Generator
from typing import Literal, TypeAlias

from streamlake.arguments import check_type
from streamlake.errors import (
    InvalidInputError,
    LogTruncatedError,
    ObjectNotFoundError,
    StreamlakeError,
    TableReplacedError,
)
from streamlake.log import Commit, Log, LogTail, find_segment
from streamlake.protocol import commit_path
from streamlake.stream.contracts import Batch
from streamlake.stream.cutting import BatchCutter, PlannedVersion
from streamlake.stream.offset import Offset
from streamlake.stream.options import TailOptions
from streamlake.stream.plan import Reading
from streamlake.stream.planner import VersionPlanner
from streamlake.stream.reading_ahead import AheadReader
from streamlake.stream.start import (
    Beginning,
    Start,
    after_newest,
    at_oldest,
    check_same_table,
    find_beginning,
)

logger = logging.getLogger(__name__)

POLLS_PER_GAP = 8
"""The pause between polls is this part of the time since the last commit, within its bounds: so a
commit waits for little in comparison with the gap before it, and a quiet table is rarely asked."""
IDLE_POLLS_PER_CHECK = 32
"""Of that many idle polls one asks whether the last commit read is still there."""
MAX_RECOVERIES = 3
"""How often in a row, without a batch in between, a policy for lost versions is applied."""
OPTIONS_REMEDY = "Give sl.TailOptions(...), as in options=sl.TailOptions(max_rows=1000)."
VERSIONS_AHEAD = 32
"""The most versions that are planned before it is their turn."""

_UNKNOWN = Beginning(version=0, definition=None)

Stop: TypeAlias = int | Literal["latest"] | None
"""Where a tail ends: after that version, after the newest one at the start, or never."""


def tail(
    log: Log,
    *,
    start: Start = "earliest",
    stop: Stop = None,
    follow: bool = True,
    options: TailOptions | None = None,
) -> Generator[Batch, None, None]:
    """The rows of a table in the order of their commits, each commit a batch or several.

    Delivery: in order; nothing is left out. ``Batch.offset`` resumes right after its batch, so a
    consumer that stores it after the rows gets at least once, and one that stores both in one step
    exactly once.

    Where to begin is found out at the call; nothing is read ahead, and no thread started, before
    the first batch is asked for, and then only while several commits wait. Closing the generator
    (``contextlib.closing``) stops them.

    Files that a commit adds without a change of data (an optimize) are passed over. Rows have the
    schema that the table had at their version. A position inside of an initial snapshot can only be
    resumed while the log still leads to that version.

    Args:
        log: The table's log.
        start: See ``Start``.
        stop: See ``Stop``; a version that does not exist yet is waited for.
        follow: Whether to wait for what comes; False ends after the newest version at the start.
        options: Bounds and policies.

    Raises:
        TableNotFoundError: There is no table.
        LogTruncatedError: Versions that were not read have been removed by log clean-up.
        LogGapError: A version is missing between two that exist.
        DataRemovedError: A commit removes data, and the policy is to fail.
        TableReplacedError: The table was made anew, or the Offset is of another one.
        StreamError: Columns were dropped, renamed or retyped, and the policy is to fail.
        CorruptTableError: A commit or a data file is missing, torn or garbled.
        UnsupportedFeatureError: The table needs what is not supported.
        InvalidInputError: No such start, stop or column.
    """
    tailer = Tailer(log, start=start, stop=stop, follow=follow, options=options)
    return tailer.batches()


class Tailer:
    """One pass over a table's commits; see ``tail``. Used by one thread."""

    def __init__(
        self,
        log: Log,
        *,
        start: Start = "earliest",
        stop: Stop = None,
        follow: bool = True,
        options: TailOptions | None = None,
    ) -> None:
        check_type("options", options, TailOptions, remedy=OPTIONS_REMEDY)
        self._log = log
        self._options = options or TailOptions()
        self._poll_min_s, self._poll_max_s = self._options.poll_bounds_s(log.url)
        self._plan: deque[PlannedVersion] = deque()
        self._planner = VersionPlanner(_UNKNOWN, self._options, where=log.url)
        self._reader = AheadReader(log, self._options.executor)
        self._recoveries = 0
        self._idle_polls = 0
        self._idle_since_s: float | None = None
        self._passed: Offset | None = None
        check_stop(stop)
        try:
            self._enter(find_beginning(log, start))
        except LogTruncatedError as error:
            self._recover(error)
        self._stop = self._resolved_stop(stop, follow=follow)
        if self._stop is not None:
            self._tail.listed_until = min(self._tail.listed_until, self._stop)

    @property
    def passed(self) -> Offset | None:
        """The position after the last version that was handed on whole, or had no rows."""
        return self._passed

    @property
    def first_version(self) -> int:
        """The version that the tail began with."""
        return self._beginning.version

    @property
    def start(self) -> int | Offset:
        """A start that was said in words or as a time, as the version or snapshot that it meant."""
        begun = self._beginning
        if begun.snapshot_files is None or begun.definition is None:
            return begun.version
        return Offset(
            reservoir_id=begun.definition.metadata.id,
            reservoir_version=begun.version,
            index=begun.index,
            is_starting_version=True,
            rows_done=begun.rows_done,
        )

    @property
    def stop_version(self) -> int | None:
        """The version after which the tail ends, as resolved at the start; None for never."""
        return self._stop

    @property
    def reading(self) -> Reading | None:
        """How files are read now; None before the first commit."""
        return self._planner.reading

    def batches(self) -> Generator[Batch, None, None]:
        """The batches; waits where there is none yet."""
        steps = self.steps()
        try:
            for batch in steps:
                if batch is not None:
                    yield batch
        finally:
            steps.close()

    def steps(self) -> Generator[Batch | None, None, None]:
        """The batches, and None after each pause in which nothing came."""
        try:
            while self._plan or not self._is_at_stop():
                self._plan_on()
                if self._plan:
                    yield from self._hand_on(self._plan.popleft())
                elif not self._is_at_stop():
                    self._pause()
                    yield None
        finally:
            self._reader.close()

    def _resolved_stop(self, stop: Stop, *, follow: bool) -> int | None:
        newest = self._tail.listed_until
        if stop == "latest" or (stop is None and not follow):
            return newest
        if stop is None:
            return None
        begun = self._beginning
        if begun.snapshot_files is not None and begun.version > stop:
            raise InvalidInputError(
                f"The snapshot to start from is past the stop {stop}.",
                where=self._log.url,
                found=f"a snapshot of version {begun.version}",
                remedy="Start from a version, or stop later.",
            )
        return stop if follow else min(stop, newest)

    def _enter(self, beginning: Beginning) -> None:
        """Begin there: one listing, which shows what waits and what is gone."""
        log = self._log
        self._beginning = beginning
        self._planner = VersionPlanner(beginning, self._options, where=log.url)
        is_snapshot = beginning.snapshot_files is not None
        first = beginning.version + 1 if is_snapshot else beginning.version
        self._tail = LogTail(log.store, next_version=first, clock=log.clock, limits=log.limits)
        self._reader.follow(self._tail)
        self._plan.clear()
        if beginning.newest_known is None:
            self._tail.look_ahead()
        if beginning.definition is None and not self._tail.behind:
            find_segment(log.store)
        snapshot = self._planner.snapshot()
        if snapshot is not None:
            self._add_to_plan(snapshot)

    def _recover(self, error: LogTruncatedError) -> None:
        """Go on as the policy for lost versions says.

        Raises:
            LogTruncatedError: It says to fail, or did not help.
        """
        policy = self._options.on_lost
        if policy == "fail" or self._recoveries >= MAX_RECOVERIES:
            raise LogTruncatedError(
                error.what,
                where=error.where,
                found=error.found,
                remedy='What the table holds is read with start="snapshot". To accept the loss of '
                'what lay between, go on with on_lost="earliest" or "latest"; to read all rows '
                'again, with on_lost="resnapshot".',
            ) from error
        self._recoveries += 1
        logger.warning("%s; going on with %r as on_lost says", error.what, policy)
        before = self.reading
        match policy:
            case "earliest":
                beginning = at_oldest(self._log)
            case "latest":
                beginning = after_newest(self._log)
            case _:
                beginning = find_beginning(self._log, "snapshot")
        self._enter(beginning)
        if before is not None and self.reading is not None:
            check_same_table(before.table_id, self.reading.table_id, where=self._log.url)

    def _is_at_stop(self) -> bool:
        return self._stop is not None and self._tail.next_version > self._stop

    def _plan_on(self) -> None:
        """Plan the next version; while behind more of them, and have their files read ahead."""
        if not self._plan:
            self._reader.forget_expected()
        while not self._is_at_stop() and not self._is_planned_enough():
            if not self._plan_next():
                break
        self._reader.read_ahead()

    def _is_planned_enough(self) -> bool:
        if not self._plan:
            return False
        is_ahead = self._reader.is_behind and len(self._plan) < VERSIONS_AHEAD
        return self._plan[-1].error is not None or not is_ahead

    def _plan_next(self) -> bool:
        """Plan one more version; False where there is none yet. Errors wait for their turn."""
        version = self._tail.next_version
        try:
            commit = self._next_commit()
            if commit is None:
                return False
            self._idle_since_s = None
            self._idle_polls = 0
            self._add_to_plan(self._planner.plan(commit))
        except StreamlakeError as error:
            self._plan.append(PlannedVersion(version=version, error=error))
        return True

    def _next_commit(self) -> Commit | None:
        if self._idle_polls % IDLE_POLLS_PER_CHECK == IDLE_POLLS_PER_CHECK - 1:
            self._check_still_there()
            return None
        return self._reader.next_commit()

    def _check_still_there(self) -> None:
        """Notice a table that was put back or made anew: its commits would be taken for ours."""
        last = self._tail.next_version - 1
        if last < 0:
            return
        try:
            self._log.store.stat(commit_path(last))
        except ObjectNotFoundError:
            newest = find_segment(self._log.store).version
            if newest < last:
                raise TableReplacedError(
                    f"Version {last}, which was read before, is gone, and so are all after it.",
                    where=self._log.url,
                    found=f"the newest version is {newest}",
                    remedy="The table was put back to an earlier state, or was made anew. Find out "
                    'which rows it holds, then start again from "earliest" or "snapshot".',
                ) from None

    def _add_to_plan(self, planned: PlannedVersion) -> None:
        self._plan.append(planned)
        self._reader.expect(planned.files)

    def _hand_on(self, planned: PlannedVersion) -> Generator[Batch, None, None]:
        if isinstance(planned.error, LogTruncatedError):
            self._recover(planned.error)
            return
        if planned.error is not None:
            raise planned.error
        options = self._options
        cutter = BatchCutter(planned, max_rows=options.max_rows, whole_files=options.whole_files)
        for batch in cutter.batches(self._reader):
            self._recoveries = 0
            yield batch
        self._passed = Offset.after_version(planned.version, planned.table_id)

    def _pause(self) -> None:
        """Wait before the next poll: longer, the longer nothing has come."""
        clock = self._log.clock
        now_s = clock.monotonic()
        if self._idle_since_s is None:
            self._idle_since_s = now_s
        self._idle_polls += 1
        longest = (now_s - self._idle_since_s) / POLLS_PER_GAP
        clock.sleep(min(max(longest, self._poll_min_s), self._poll_max_s))


def check_stop(stop: object) -> None:
    """Refuse what is no ``Stop``.

    Raises:
        InvalidInputError: It is none.
    """
    is_version = isinstance(stop, int) and not isinstance(stop, bool) and stop >= 0
    if stop is not None and stop != "latest" and not is_version:
        raise InvalidInputError(
            f"There is no stop {stop!r}.",
            remedy='Give "latest", a version from 0 on, or None to follow without end.',
        )
