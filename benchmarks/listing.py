"""Opens a table and lists its files, in a process of its own: one line of JSON with what it took.

``python -m benchmarks.listing streamlake|delta-rs PATH paths|actions``. ``paths`` asks for the
files' paths; ``actions`` for everything that the log says of them, as Arrow.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

TURNS = 3
READERS = ("streamlake", "delta-rs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What opening a table and listing its files took."""

    files: int
    seconds: float
    imported_mb: int
    """Peak memory before the table was opened."""
    peak_mb: int


def measure(reader: str, path: str, what: str) -> dict[str, float]:
    """Open and list in this process."""
    count_files = streamlake_files if reader == "streamlake" else delta_rs_files
    count_files("", what)  # imports
    imported = peak_mb()
    start = time.perf_counter()
    files = count_files(path, what)
    seconds = time.perf_counter() - start
    return {"files": files, "seconds": seconds, "imported_mb": imported, "peak_mb": peak_mb()}


def streamlake_files(path: str, what: str) -> int:
    """Open and list with streamlake; nothing but the import without a path."""
    import streamlake as sl  # noqa: PLC0415 -- the peer's process must not pay for it

    if not path:
        return 0
    files = sl.Table.open(path).snapshot().files()
    return len(files.column("path") if what == "paths" else files.to_arrow())


def delta_rs_files(path: str, what: str) -> int:
    """Open and list with delta-rs; nothing but the import without a path."""
    import deltalake  # noqa: PLC0415 -- as above
    import pyarrow as pa  # noqa: PLC0415

    if not path:
        return 0
    table = deltalake.DeltaTable(path)
    return len(table.file_uris()) if what == "paths" else pa.table(table.get_add_actions()).num_rows


def peak_mb() -> int:
    """The most memory that this process had resident so far.

    Where there is /proc, from there: getrusage counts what the parent had when it forked, too.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) // 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def in_turns(path: Path, what: str) -> dict[str, list[Listing]]:
    """Both readers, in processes of their own, taking turns."""
    found: dict[str, list[Listing]] = {reader: [] for reader in READERS}
    for _ in range(TURNS):
        for reader in READERS:
            command = [sys.executable, "-m", "benchmarks.listing", reader, str(path), what]
            done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
            found[reader].append(Listing(**json.loads(done.stdout)))
    return found


def compare(path: Path) -> None:
    """Measure both readers, for both questions, and print figures and ratios."""
    for what in ("paths", "actions"):
        found = in_turns(path, what)
        seconds = {r: statistics.median(one.seconds for one in found[r]) for r in READERS}
        peaks = {r: statistics.median(one.peak_mb for one in found[r]) for r in READERS}
        for reader in READERS:
            first = found[reader][0]
            print(
                f"  {reader + ', ' + what:<24} {seconds[reader]:8.3f} s   "
                f"peak {peaks[reader]:6.0f} MB ({first.imported_mb} MB before)   "
                f"{first.files:,} files"
            )
        print(
            f"    streamlake / delta-rs, {what}: time "
            f"{seconds['streamlake'] / seconds['delta-rs']:.2f}, "
            f"peak memory {peaks['streamlake'] / peaks['delta-rs']:.2f}"
        )


if __name__ == "__main__":
    print(json.dumps(measure(*sys.argv[1:4])))
