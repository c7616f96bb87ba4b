"""The package as its users meet it."""

from __future__ import annotations

import subprocess
import sys

import pytest

import streamlake.storage
import streamlake.testing
from streamlake.errors import ObjectNotFoundError
from streamlake.storage import MemoryStore
from streamlake.testing import CountingStore


@pytest.mark.parametrize("package", [streamlake.storage, streamlake.testing])
def test_the_names_of_the_package_are_sorted_and_there(package):
    names = package.__all__
    assert names == sorted(names, key=lambda name: (not name.isupper(), name))
    assert all(hasattr(package, name) for name in names)


def test_neither_streamlake_nor_its_testing_kit_imports_pytest():
    program = "import sys, streamlake.testing; sys.exit('pytest' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_counting_store_notes_each_request_also_the_failed_ones():
    store = CountingStore(MemoryStore())
    store.put("a", b"x")
    list(store.list_from("a", "b"))
    with pytest.raises(ObjectNotFoundError):
        store.stat("missing")
    assert store.requests == [("put", "a"), ("list_from", "a"), ("stat", "missing")]
    assert store.count("stat") == 1
