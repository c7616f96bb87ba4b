"""The one suite of ObjectStore over every implementation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from obstore.store import MemoryStore as MemoryClient

from streamlake.storage import LocalStore, MemoryStore, ObjectStore
from streamlake.storage.object import ObstoreStore
from streamlake.testing import StoreConformance


class TestLocalStore(StoreConformance):
    @pytest.fixture
    def store(self, tmp_path: Path) -> ObjectStore:
        return LocalStore(tmp_path / "made at the first put" / "root %20")


class TestLocalStoreBehindALink(StoreConformance):
    @pytest.fixture
    def store(self, tmp_path: Path) -> ObjectStore:
        (tmp_path / "real").mkdir()
        (tmp_path / "link").symlink_to("real")
        return LocalStore(tmp_path / "link")


class TestMemoryStore(StoreConformance):
    @pytest.fixture
    def store(self) -> ObjectStore:
        return MemoryStore()


class TestObstoreInMemory(StoreConformance):
    test_a_pickled_store_sees_the_same_objects = None  # type: ignore[assignment] # lives in one process

    @pytest.fixture
    def store(self) -> ObjectStore:
        return ObstoreStore(MemoryClient(), url="memory://obstore")


class TestS3(StoreConformance):
    @pytest.fixture
    def store(self, make_s3_store: Callable[[], ObjectStore]) -> ObjectStore:
        return make_s3_store()
