"""The stores for tests pass the suite that the real ones pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamlake.storage import LocalStore, MemoryStore, ObjectStore
from streamlake.testing import CountingStore, FaultyStore, StoreConformance


class TestFaultyStoreWithoutAPlan(StoreConformance):
    @pytest.fixture
    def store(self, tmp_path: Path) -> ObjectStore:
        return FaultyStore(LocalStore(tmp_path))


class TestCountingStore(StoreConformance):
    @pytest.fixture
    def store(self) -> ObjectStore:
        return CountingStore(MemoryStore())
