"""Names of the log's files."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from strategies import text, versions
from streamlake.errors import InvalidInputError, UnsafePathError
from streamlake.protocol import (
    MAX_INT64,
    CheckpointName,
    CommitName,
    checkpoint_path,
    checksum_path,
    commit_path,
    commit_version,
    compacted_path,
    is_sidecar,
    parse_checksum,
    parse_compacted,
    parse_log_name,
    sidecar_path,
    v2_checkpoint_path,
)

UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"


@given(versions)
def test_every_name_that_is_written_is_read_back(version):
    assert parse_log_name(commit_path(version)) == CommitName(version)
    assert commit_version(commit_path(version)) == version
    assert parse_log_name(checkpoint_path(version)) == CheckpointName(version, "classic")
    assert parse_checksum(checksum_path(version)) == version


@given(st.lists(versions, max_size=9))
def test_names_sort_as_their_versions_do(found):
    assert sorted(map(commit_path, found)) == [commit_path(version) for version in sorted(found)]


@pytest.mark.parametrize("version", [-1, MAX_INT64 + 1])
def test_a_version_that_is_no_int64_has_no_name(version):
    with pytest.raises(InvalidInputError, match=str(version)):
        commit_path(version)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (f"{10:020d}.checkpoint.parquet", CheckpointName(10, "classic")),
        (
            f"{10:020d}.checkpoint.{2:010d}.{3:010d}.parquet",
            CheckpointName(10, "multipart", 2, 3),
        ),
        (f"{10:020d}.checkpoint.{UUID}.json", CheckpointName(10, "uuid", uuid=UUID, format="json")),
        (f"{10:020d}.checkpoint.{UUID}.parquet", CheckpointName(10, "uuid", uuid=UUID)),
    ],
)
def test_each_kind_of_checkpoint_is_told(name, expected):
    assert parse_log_name(f"_delta_log/{name}") == expected


@pytest.mark.parametrize(
    "name",
    [
        "1.json",
        f"{1:019d}.json",
        f"{1:021d}.json",
        f"{1:020d}.json.tmp",
        f".{1:020d}.json",
        f"{1:020d}.json\n",
        f"{1:020d}.JSON",
        "\u0661" * 20 + ".json",
        f"{MAX_INT64 + 1}.json",
        f"{'9' * 20}.json",
        f"{1:020d}.{UUID}.json",
        f"_staged_commits/{1:020d}.{UUID}.json",
        f".tmp/{1:020d}.json",
        f"{1:020d}.{3:020d}.compacted.json",
        f"{1:020d}.crc",
        f"{1:020d}.checkpoint.json",
        f"{1:020d}.checkpoint.{0:010d}.{3:010d}.parquet",
        f"{1:020d}.checkpoint.{4:010d}.{3:010d}.parquet",
        f"{1:020d}.checkpoint.{1:010d}.{3:010d}.json",
        f"{1:020d}.checkpoint.no-uuid.parquet",
        "_last_checkpoint",
        "",
    ],
)
def test_what_is_neither_commit_nor_checkpoint_names_nothing(name):
    assert parse_log_name(f"_delta_log/{name}") is None
    assert commit_version(f"_delta_log/{name}") is None


def test_a_commit_of_another_folder_is_none_of_the_log():
    assert parse_log_name(f"{1:020d}.json") is None
    assert parse_log_name(f"x/_delta_log/{1:020d}.json") is None


def test_a_compaction_sorts_before_its_first_commit_and_is_told_from_it():
    compacted = f"_delta_log/{1:020d}.{3:020d}.compacted.json"
    assert compacted < commit_path(1)
    assert parse_compacted(compacted) == (1, 3)


@pytest.mark.parametrize("versions", [(3, 1), (3, 3), (1, MAX_INT64 + 1)])
def test_a_compaction_of_no_range_is_none(versions):
    first, last = versions
    assert parse_compacted(f"_delta_log/{first:020d}.{last:020d}.compacted.json") is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (f"{UUID}.parquet", True),
        ("a/b.parquet", False),
        ("..\\x.parquet", False),
        ("x.json", False),
    ],
)
def test_sidecars_lie_in_their_folder(name, expected):
    assert is_sidecar(f"_delta_log/_sidecars/{name}") is expected


@given(text)
def test_no_text_at_all_makes_parsing_fail(path):
    for parse in (parse_log_name, commit_version, parse_compacted, parse_checksum, is_sidecar):
        parse(path)
        parse(f"_delta_log/{path}")


def test_the_names_that_are_written_are_the_names_that_are_read():
    assert parse_compacted(compacted_path(3, 14)) == (3, 14)
    assert parse_log_name(v2_checkpoint_path(7, UUID)) == CheckpointName(7, "uuid", uuid=UUID)


@pytest.mark.parametrize(("first", "last"), [(3, 3), (4, 3), (-1, 3), (0, 2**63)])
def test_what_is_no_range_of_versions_is_not_compacted(first, last):
    with pytest.raises(InvalidInputError):
        compacted_path(first, last)


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("a.parquet", "a.parquet"),
        ("a%20b.parquet", "a b.parquet"),
        ("a%2525b.parquet", "a%25b.parquet"),
        ("./a.parquet", "a.parquet"),
        ("s3a://bucket/t%20x/_delta_log/_sidecars/a.parquet", "a.parquet"),
        ("/t%20x/_delta_log/_sidecars/a.parquet", "a.parquet"),
    ],
)
def test_a_sidecar_is_named_by_name_or_by_uri(uri, name):
    found = sidecar_path(uri, root_url="s3://bucket/t%20x")
    assert found == f"_delta_log/_sidecars/{name}"


@pytest.mark.parametrize(
    "uri",
    [
        "../a.parquet",
        "%2e%2e/a.parquet",
        "b/a.parquet",
        "b%2Fa.parquet",
        "a.json",
        "a\\b.parquet",
        "s3://other/t%20x/_delta_log/_sidecars/a.parquet",
        "s3://bucket/t%20x/_delta_log/_sidecars-evil/a.parquet",
        "s3://bucket/t%20x/a.parquet",
        "file:///a.parquet",
    ],
)
def test_a_sidecar_outside_of_its_folder_is_unsafe(uri):
    with pytest.raises(UnsafePathError):
        sidecar_path(uri, root_url="s3://bucket/t%20x")
