"""Paths in the log, which are encoded once and never leave the table."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given

from strategies import paths, text
from streamlake.errors import CorruptTableError, InvalidInputError, UnsafePathError
from streamlake.protocol import canonical_path, encode_path, partition_path, resolve_path

ROOT = "file:///data/my%20table"
ODD_VALUES = [
    *(chr(code) for code in range(0x20, 0x100)),
    *(f"a{chr(code)}b" for code in range(0x20, 0x100)),
    *(
        "😀",
        "..",
        ".",
        "../..",
        "%2e%2e",
        "%252F",
        "%",
        "a%2Fb",
        "\\..\\",
        "//",
        "s3://x",
        "e\u0301",
    ),
]


@given(paths)
def test_every_path_comes_back_as_it_was(path):
    assert resolve_path(encode_path(path), root_url=ROOT) == path


@given(paths)
def test_what_is_written_is_a_plain_uri_reference(path):
    uri = encode_path(path)
    assert uri.isascii()
    assert not set(uri) & set(' "<>#?{}|\\^`:[]')


@given(paths)
def test_an_absolute_uri_inside_of_the_root_is_the_same_file(path):
    assert resolve_path(f"{ROOT}/{encode_path(path)}", root_url=ROOT) == path


@given(text)
def test_no_text_leaves_the_root(uri):
    try:
        path = resolve_path(uri, root_url=ROOT)
    except (UnsafePathError, CorruptTableError):
        return
    assert not {"", ".", ".."} & set(path.split("/"))
    assert not {"\\", "\0"} & set(path)


@pytest.mark.parametrize("value", [*ODD_VALUES, None, ""], ids=repr)
def test_every_partition_value_names_a_file_in_the_table(value):
    path = partition_path(["p"], {"p": value}) + "part-0.parquet"
    assert resolve_path(encode_path(path), root_url=ROOT) == path
    assert path.count("/") == 1


def test_a_name_is_decoded_once():
    assert resolve_path("p=a%2525b/x", root_url=ROOT) == "p=a%25b/x"
    assert encode_path("p=a%25b/x") == "p=a%2525b/x"


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("a/b.parquet", "a/b.parquet"),
        ("a b/ü#?.parquet", "a b/ü#?.parquet"),
        ("a%20b", "a b"),
        ("bar%2Dbar.parquet", "bar-bar.parquet"),
        ("a%2Fb", "a/b"),
        ("./a//b/./c", "a/b/c"),
        ("a..b/c..", "a..b/c.."),
        ("day=2020-01-01 00:00:00/x", "day=2020-01-01 00:00:00/x"),
        ("/data/my%20table/x", "x"),
        ("file:/data/my%20table/x", "x"),
        ("file:///data/my table/x", "x"),
        ("file://localhost/data/my%20table/x", "x"),
        ("FILE:///data/my%20table/x", "x"),
    ],
)
def test_spellings_of_a_file_in_the_table(uri, path):
    assert resolve_path(uri, root_url=ROOT) == path


@pytest.mark.parametrize(
    "uri",
    [
        "..",
        "../x",
        "a/../x",
        "a/../../x",
        "..//Users/x",
        "%2e%2e/x",
        "%2E%2E/x",
        ".%2e/x",
        "..%2Fx",
        "a%2F..%2Fx",
        "%252e%252e/x",
        "..%252Fx",
        "%25252e%25252e%25252Fx",
        "%255c..%255cx",
        "%2525252525252525252525252525252525252525252525252e",
        "..\\x",
        "a\\x",
        "a%5Cx",
        "a\0b",
        "a%00b",
        "%2500",
        "/etc/passwd",
        "//etc/passwd",
        "/data/my%20table-evil/x",
        "/data/my%20table/../my%20table-evil/x",
        "/data/x",
        "/",
        "file:///etc/passwd",
        "file://host/data/my%20table/x",
        "s3://data/my%20table/x",
        "http://169.254.169.254/latest",
        "data:text/plain,x",
        "C:\\x",
    ],
)
def test_a_path_that_leaves_the_table_or_could_is_refused(uri):
    with pytest.raises(UnsafePathError) as caught:
        resolve_path(uri, root_url=ROOT)
    assert caught.value.where == ROOT
    assert caught.value.remedy


@pytest.mark.parametrize("uri", ["", ".", "./", "a%zz", "100%", "%f", "%ff", "%ed%a0%80", ROOT])
def test_what_is_no_uri_reference_is_a_corrupt_table(uri):
    with pytest.raises(CorruptTableError):
        resolve_path(uri, root_url=ROOT)


@pytest.mark.parametrize(
    ("root", "uri"),
    [
        ("s3://bucket/t", "s3://bucket/t/a%20b"),
        ("s3://bucket/t", "s3a://bucket/t/a%20b"),
        ("s3://bucket/t/", "/t/a%20b"),
        ("s3://bucket", "s3n://bucket/a%20b"),
        ("abfss://c@account/t", "abfs://c@account/t/a%20b"),
        ("memory://name", "memory://name/a%20b"),
        ("/data/t", "file:/data/t/a%20b"),
    ],
)
def test_absolute_uris_of_every_store_are_made_relative(root, uri):
    assert resolve_path(uri, root_url=root) == "a b"


@pytest.mark.parametrize(
    "uri", ["s3://other/t/x", "s3://bucket/t-evil/x", "s3://bucket/x", "gs://bucket/t/x", "/x"]
)
def test_another_bucket_or_folder_is_refused(uri):
    with pytest.raises(UnsafePathError, match="outside"):
        resolve_path(uri, root_url="s3://bucket/t")


@given(paths)
def test_canonical_paths_of_files_in_the_table_are_the_resolved_ones(path):
    for uri in (encode_path(path), quote(path, safe=""), f"{ROOT}/{encode_path(path)}"):
        assert canonical_path(uri, root_url=ROOT) == path


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/some/absolute/path", "file:///some/absolute/path"),
        ("file:/some/with%20space/p@%23h", "/some/with%20space/p@%23h"),
        ("../x", "..//x"),
    ],
)
def test_spellings_of_one_file_outside_of_the_table_are_one(one, other):
    assert canonical_path(one, root_url=ROOT) == canonical_path(other, root_url=ROOT)
    with pytest.raises(UnsafePathError):
        resolve_path(one, root_url=ROOT)


def test_a_file_outside_is_never_taken_for_one_inside():
    assert canonical_path("/x", root_url=ROOT) != canonical_path("x", root_url=ROOT)


@given(text)
def test_every_text_has_a_canonical_form(uri):
    assert isinstance(canonical_path(uri, root_url=ROOT), str)


def test_a_path_without_bytes_is_refused():
    with pytest.raises(InvalidInputError, match="UTF-8"):
        encode_path("\ud800")
