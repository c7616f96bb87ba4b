"""The JSON of commit files."""

from __future__ import annotations

import json
import pickle

import msgspec
import pytest
from hypothesis import given

from strategies import actions, commits
from streamlake.errors import InvalidInputError
from streamlake.protocol import (
    Action,
    AddFile,
    CommitInfo,
    DeletionVector,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    decode_actions,
    encode_actions,
)

ADD = AddFile("a.parquet", {"day": None}, 1, 2, data_change=True)
ADD_LINE = (
    b'{"add":{"path":"a","partitionValues":{},"size":1,"modificationTime":2,"dataChange":true'
)


@given(commits)
def test_actions_come_back_as_they_were(written):
    assert decode_actions(encode_actions(written)) == written


@given(commits)
def test_a_commit_is_one_json_object_a_line(written):
    lines = encode_actions(written).splitlines()
    assert len(lines) == len(written)
    assert all(len(json.loads(line)) == 1 for line in lines)


@given(actions)
def test_actions_survive_pickling(action):
    assert pickle.loads(pickle.dumps(action)) == action  # noqa: S301 - our own bytes


def test_absent_optionals_are_left_out():
    assert encode_actions([SetTransaction("app", 1), RemoveFile("a", data_change=True)]) == (
        b'{"txn":{"appId":"app","version":1}}\n{"remove":{"path":"a","dataChange":true}}\n'
    )
    assert b"null" not in encode_actions([Protocol(1, 2), Metadata("id")])


def test_an_add_keeps_null_partition_values():
    assert b'"partitionValues":{"day":null}' in encode_actions([ADD])


def test_metadata_always_writes_what_the_protocol_requires():
    [line] = encode_actions([Metadata("id")]).splitlines()
    assert json.loads(line)["metaData"] == {
        "id": "id",
        "schemaString": "",
        "format": {"provider": "parquet", "options": {}},
        "partitionColumns": [],
        "configuration": {},
    }


def test_nulls_are_read_as_absent():
    line = b'{"add":' + ADD_LINE[7:] + b',"stats":null,"tags":null,"deletionVector":null}}\n'
    assert decode_actions(line) == [AddFile("a", {}, 1, 2, data_change=True)]


def test_an_old_remove_has_little():
    line = b'{"remove":{"path":"a","dataChange":true,"extendedFileMetadata":false}}'
    [remove] = decode_actions(line)
    assert isinstance(remove, RemoveFile)
    assert (remove.partition_values, remove.size) == (None, None)


def test_null_members_of_a_line_are_no_actions():
    line = b'{"remove":null,"txn":{"appId":"a","version":1},"add":null}\n'
    assert decode_actions(line) == [SetTransaction("a", 1)]


def test_unknown_actions_and_fields_are_passed_over():
    lines = b'{"teleport":{"x":[1]}}\n{"txn":{"appId":"a","version":1,"mood":{"a":1}}}\n{}\n'
    assert decode_actions(lines) == [SetTransaction("a", 1)]


@pytest.mark.parametrize("shape", [b'"text"', b"[1]", b"7"])
def test_a_commit_info_of_another_shape_is_passed_over(shape):
    assert decode_actions(b'{"commitInfo":' + shape + b"}") == []


def test_a_commit_info_of_odd_members_tells_what_it_can():
    [info] = decode_actions(
        b'{"commitInfo":{"timestamp":"x","operationParameters":[],"isBlindAppend":"true"}}'
    )
    assert isinstance(info, CommitInfo)
    assert (info.timestamp_ms, dict(info.operation_parameters), info.is_blind_append) == (
        None,
        {},
        False,
    )


@pytest.mark.parametrize("blank", [b"", b"\n", b"\n\n", b"\r\n", b" \n"])
def test_blank_lines_and_line_ends_do_not_matter(blank):
    line = encode_actions([ADD]).rstrip()
    assert decode_actions(blank + line + b"\r\n" + blank + line + blank) == [ADD, ADD]


@pytest.mark.parametrize(
    "data",
    [
        b"\0" * 4096,
        encode_actions([ADD]) + b"\0" * 16,
        encode_actions([ADD, ADD])[:-20],
        encode_actions([ADD])[:-2],
        b'{"add":{"path":"\xff"}}',
        b'{"mood":"\xff"}',
        b'{"mood":"\\ud800"}',
        b"[]",
        b'"text"',
        b"1",
        b'{"txn":[]}',
        b'{"txn":{"appId":"a"}}',
        b'{"txn":{"appId":"a","version":1.0}}',
        b'{"txn":{"appId":"a","version":"1"}}',
        b'{"txn":{"appId":"a","version":true}}',
        b'{"txn":{"appId":"a","version":9223372036854775808}}',
        b'{"txn":{"appId":"a","version":' + b"9" * 5000 + b"}}",
        b'{"commitInfo":{"a":NaN}}',
        ADD_LINE + b"}",
        ADD_LINE + b',"size":2}}',
    ],
    ids=lambda data: f"{data[:12]!r}..{data[-12:]!r}",
)
def test_what_is_torn_or_garbled_is_refused(data):
    with pytest.raises(msgspec.DecodeError):
        decode_actions(data)


@pytest.mark.parametrize(
    "data",
    [
        b'{"txn":{"appId":"a","version":1,"version":2}}',
        b'{"txn":{"appId":"a","version":1},"txn":{"appId":"a","version":2}}',
        b'{ "txn" : { "appId" : "a", "version" : 1, "version" : 2 } }',
        b'{"commitInfo":{"deep":[{"a":1,"a":1}]}}',
        b'{"mood":{"a":1,"a":1}}',
        encode_actions([ADD]) + b'\n{"txn":{"appId":"a\\":","version":1,"version":2}}\n',
    ],
)
def test_one_key_twice_is_refused(data):
    with pytest.raises(msgspec.DecodeError, match="twice"):
        decode_actions(data)


@pytest.mark.parametrize("text", ['":', '\\":', '{"a":1}', '\\"', '"":"":'])
def test_text_that_looks_like_keys_is_just_text(text):
    written: list[Action] = [CommitInfo({text: [text]}), SetTransaction(text, 1)]
    assert decode_actions(encode_actions(written)) == written


def test_two_actions_in_one_object_are_refused():
    with pytest.raises(msgspec.DecodeError, match="another action"):
        decode_actions(b'{"txn":{"appId":"a","version":1},"commitInfo":{}}')


def test_an_error_tells_which_action_it_is():
    data = encode_actions([ADD]) + b'{"txn":{"appId":"a","version":"x"}}'
    with pytest.raises(msgspec.DecodeError, match=r"Action 2 .*txn: .*`int`.*version"):
        decode_actions(data)


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
@pytest.mark.parametrize("key", [b"commitInfo", b"add", b"teleport"])
def test_a_nesting_bomb_is_a_typed_error(opening, closing, key):
    bomb = opening * 100_000 + b"1" + closing * 100_000
    with pytest.raises(msgspec.DecodeError):
        decode_actions(b'{"' + key + b'":{"x":' + bomb + b"}}")


@pytest.mark.parametrize(("depth", "fits"), [(64, True), (65, False)])
def test_the_depth_of_a_line_is_bounded(depth, fits):
    inside = depth - 2
    data = b'{"commitInfo":{"x":' + b"[" * inside + b"]" * inside + b"}}"
    if fits:
        assert len(decode_actions(data)) == 1
    else:
        with pytest.raises(msgspec.DecodeError, match="deeper than"):
            decode_actions(data)


def test_a_file_of_many_megabytes_is_decoded_whole_and_in_order():
    written = [SetTransaction(f"app-{i}" + "x" * 200, i) for i in range(30_000)]
    assert decode_actions(encode_actions(written)) == written


@pytest.mark.parametrize("value", [object(), {1, object()}, "\ud800"])
def test_a_commit_info_that_json_can_not_hold_is_refused(value):
    with pytest.raises(InvalidInputError, match="JSON"):
        encode_actions([CommitInfo({"x": value})])


@pytest.mark.parametrize(
    ("stats", "rows"), [(None, None), ("{}", None), ('{"numRecords":7}', 7), ("torn", None)]
)
def test_an_add_tells_its_rows_where_its_statistics_do(stats, rows):
    assert msgspec.structs.replace(ADD, stats=stats).num_records == rows


def test_keys_tell_files_with_other_vectors_apart():
    vector = DeletionVector("u", "v", 1, 1)
    files = [
        msgspec.structs.replace(ADD, deletion_vector=found)
        for found in (None, vector, msgspec.structs.replace(vector, offset=4))
    ]
    assert [file.key[1] for file in files] == [None, "uv", "uv@4"]
    assert decode_actions(encode_actions(files)) == files
