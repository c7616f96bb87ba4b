"""Bytes by path (floor 1): the seam that everything above reads and writes through.

Knows nothing of Delta. One conformance suite, ``streamlake.testing.StoreConformance``, runs over
every store.
"""

from streamlake.storage.local import LocalStore
from streamlake.storage.memory import MemoryStore, memory_store
from streamlake.storage.open import open_store
from streamlake.storage.probe import prove_put_if_absent, store_time_ms
from streamlake.storage.ranged_file import RangedFile
from streamlake.storage.store import ObjectMeta, ObjectStore

__all__ = [
    "LocalStore",
    "MemoryStore",
    "ObjectMeta",
    "ObjectStore",
    "RangedFile",
    "memory_store",
    "open_store",
    "prove_put_if_absent",
    "store_time_ms",
]
