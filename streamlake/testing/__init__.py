"""What tests need to run streamlake for real, on time and storage that they control (floor 7).

Tables in any state of their log, stores that fail as object stores fail, a clock that stands
still, and the suite that every ObjectStore has to pass: the fakes here pass it too. Nothing in it
imports pytest.
"""

from streamlake.testing.counting_store import CountingStore
from streamlake.testing.faulty_store import Fault, FaultKind, FaultyStore
from streamlake.testing.manual_clock import ManualClock
from streamlake.testing.numbered_rows import numbered_rows
from streamlake.testing.store_conformance import AWKWARD_PATHS, UNSAFE_PATHS, StoreConformance
from streamlake.testing.table_builder import TableBuilder, torn

__all__ = [
    "AWKWARD_PATHS",
    "UNSAFE_PATHS",
    "CountingStore",
    "Fault",
    "FaultKind",
    "FaultyStore",
    "ManualClock",
    "StoreConformance",
    "TableBuilder",
    "numbered_rows",
    "torn",
]
