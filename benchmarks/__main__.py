"""Run the benchmarks: ``python -m benchmarks [append] [snapshot] ...``; all of them by default."""

from __future__ import annotations

import sys

from benchmarks import append, flat, replay, snapshot, tail

BENCHMARKS = {
    "append": append.main,
    "tail": tail.main,
    "snapshot": snapshot.main,
    "replay": replay.main,
    "flat": flat.main,
}


def main() -> int:
    """Run the benchmarks that the command line names."""
    names = sys.argv[1:] or list(BENCHMARKS)
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"unknown: {', '.join(unknown)}; there are: {', '.join(BENCHMARKS)}")
        return 2
    for name in names:
        BENCHMARKS[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main())
