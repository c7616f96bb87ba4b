"""The program that the tests of crashes run and kill: one pipeline from a table to a table.

Arguments: the source, the target, where to start, and when to stop dead. "before N" kills the
process at its Nth write before it begins, "after N" between the commit and its acknowledgement,
"never" runs on.
"""

import os
import signal
import sys

import streamlake as sl

APP_ID = "carrier"


class MortalSink(sl.TableSink):
    """Kills its process without warning at one of its writes."""

    def __init__(self, target: str, moment: str, turn: int) -> None:
        super().__init__(target, app_id=APP_ID)
        self._moment = moment
        self._turns_left = turn

    def write(self, batch: sl.Batch) -> int:
        self._turns_left -= 1
        self._die("before")
        version = super().write(batch)
        self._die("after")
        return version

    def _die(self, moment: str) -> None:
        if self._moment == moment and self._turns_left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def main(source: str, target: str, start: str, moment: str, turn: int) -> None:
    options = sl.TailOptions(max_rows=1)
    begin = sl.TableSource(source, start=start, stop="latest", options=options)
    result = sl.Pipeline(begin, MortalSink(target, moment, turn)).run()
    print(result.rows)  # noqa: T201 -- that is its answer


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
