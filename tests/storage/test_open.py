"""From URL to store."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from streamlake.errors import InvalidInputError
from streamlake.storage import LocalStore, MemoryStore, open_store


@pytest.mark.parametrize(
    "spell", [str, Path, lambda path: path.as_uri(), lambda path: f"file:{path}"]
)
def test_a_folder_may_be_named_as_path_or_url(tmp_path, spell):
    store = open_store(spell(tmp_path / "t"))
    store.put("a", b"x")
    assert isinstance(store, LocalStore)
    assert (tmp_path / "t" / "a").read_bytes() == b"x"


@pytest.mark.parametrize("name", ["a%20b", "a b", "é", "a?b", "a#b", "50%"])
def test_a_path_is_literal_and_its_url_is_encoded_once(tmp_path, name):
    store = open_store(tmp_path / name)
    store.put("a", b"x")
    assert (tmp_path / name / "a").exists()
    assert open_store(store.url).get("a") == b"x"


def test_a_path_object_may_hold_what_looks_like_a_scheme(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    open_store(Path("s3:") / "x").put("a", b"x")
    assert (tmp_path / "s3:" / "x" / "a").exists()


def test_a_colon_behind_the_first_slash_makes_no_scheme(tmp_path):
    assert open_store(f"{tmp_path}/a:b").url.endswith("/a%3Ab")


def test_a_memory_store_is_shared_by_its_name():
    open_store("memory://shared/").put("a", b"x")
    assert open_store("memory://shared").get("a") == b"x"
    assert open_store("memory://another").url == "memory://another"


@pytest.mark.parametrize(
    "url", ["hdfs://host/t", "gs://b/t", "abfss://c@account/t", "http://host/t", "C:\\t", "redis:x"]
)
def test_another_scheme_is_refused_with_the_supported_ones_named(url):
    with pytest.raises(InvalidInputError, match=r"file:///path, memory://name, s3://bucket/path"):
        open_store(url)


@pytest.mark.parametrize("url", ["file://host/t", "file:", "memory://", "memory:", "file:///", ""])
def test_a_url_that_names_nothing_here_is_refused(url):
    with pytest.raises(InvalidInputError):
        open_store(url)


def test_credentials_in_a_url_are_not_repeated():
    with pytest.raises(InvalidInputError) as raised:
        open_store("ftp://user:canary@host/t?key=canary")
    assert "canary" not in str(raised.value)


@pytest.mark.parametrize("url", ["/srv/t", "file:///srv/t", "memory://t"])
def test_options_that_a_store_does_not_know_are_refused_by_name(url):
    with pytest.raises(InvalidInputError, match="unknown: region"):
        open_store(url, {"region": "eu-west-1"})


def test_a_memory_store_of_a_taken_name_is_refused():
    taken = MemoryStore(name="taken")
    with pytest.raises(InvalidInputError, match="Open it by its URL"):
        MemoryStore(name="taken")
    assert open_store("memory://taken") is taken


def test_a_memory_store_does_not_travel_to_another_process(tmp_path):
    program = (
        "import pickle; from streamlake.storage import MemoryStore as S; s = S();"
        f"open({str(tmp_path / 'pickled')!r}, 'wb').write(pickle.dumps(s))"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    program = f"import pickle; pickle.load(open({str(tmp_path / 'pickled')!r}, 'rb'))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert "A memory store can't be handed to another process." in done.stderr
