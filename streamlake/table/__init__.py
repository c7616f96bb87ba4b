"""Table and Snapshot, which users hold; they delegate to operations/ and stream/ (floor 6)."""

from streamlake.table.snapshot import Snapshot
from streamlake.table.table import Table

__all__ = ["Snapshot", "Table"]
