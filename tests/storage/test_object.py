"""What an S3 store says of outcomes, how often it asks, and what it never tells."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import traceback
from collections.abc import Callable

import pytest
from obstore.store import MemoryStore as MemoryClient

from storage.answering_server import HANG, RESET, AnsweringServer, answering
from storage.conftest import SECRET, put_over_http
from streamlake.errors import (
    InvalidInputError,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
    WriteRefusedError,
)
from streamlake.storage import ObjectStore, open_store
from streamlake.storage.object import ObstoreStore

LISTED = (
    "<Contents><Key>table/{name}</Key><Size>1</Size>"
    "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
)


def store_at(server: AnsweringServer, **options: str) -> ObjectStore:
    given = {"access_key_id": "tester", "secret_access_key": SECRET, "timeout": "1s"}
    return open_store(
        "s3://bucket/table", {"endpoint": server.url, "allow_http": "true", **given, **options}
    )


@pytest.mark.parametrize("status", [200, 400, 401, 403, 404, 409, 412, 429, 500, 503, HANG, RESET])
def test_a_conditional_put_is_one_request_whatever_the_answer(status):
    with answering(status) as server:
        try:
            store_at(server).put_if_absent("a", b"x")
        except StorageError:
            assert status != 200
        assert [request[0] for request in server.requests] == ["PUT"]
        assert server.requests[0][2]["if-none-match"] == "*"


@pytest.mark.parametrize("status", [400, 404, 409, 429, 500, 503, HANG, RESET])
def test_an_unclear_answer_to_a_conditional_put_leaves_the_outcome_open(status):
    with answering(status) as server, pytest.raises(StorageError) as raised:
        store_at(server).put_if_absent("a", b"x")
    assert type(raised.value) is StorageError


def test_only_the_failed_condition_says_that_the_name_is_taken():
    with answering(412) as server, pytest.raises(ObjectExistsError):
        store_at(server).put_if_absent("a", b"x")


@pytest.mark.parametrize("status", [401, 403])
def test_a_put_without_permission_is_certainly_not_written(status):
    with answering(status) as server, pytest.raises(WriteRefusedError, match="right to put"):
        store_at(server).put_if_absent("a", b"x")


@pytest.mark.parametrize("method", ["put", "put_if_absent"])
def test_a_missing_bucket_refuses_the_write_by_name(s3_options, method):
    store = open_store("s3://no-such-bucket/t", s3_options)
    with pytest.raises(WriteRefusedError, match="Create the bucket"):
        getattr(store, method)("a", b"x")


@pytest.mark.parametrize("ask", [lambda s: s.get("a"), lambda s: list(s.list_from(""))])
def test_a_missing_bucket_is_no_missing_object(s3_options, ask):
    with pytest.raises(StorageError, match="NoSuchBucket") as raised:
        ask(open_store("s3://no-such-bucket/t", s3_options))
    assert not isinstance(raised.value, ObjectNotFoundError)


def test_reads_are_repeated_until_they_succeed():
    with answering(503, RESET, 200, body=b"hello") as server:
        assert store_at(server).get("a") == b"hello"
        assert len(server.requests) == 3


def test_a_garbled_listing_is_an_error_and_not_an_empty_one():
    with answering(200, body=b"<html>not a listing") as server, pytest.raises(StorageError):
        list(store_at(server).list_from("_delta_log/"))


def test_an_idle_probe_is_one_request():
    with answering(404) as server:
        with pytest.raises(ObjectNotFoundError):
            store_at(server).get("_delta_log/00000000000000000007.json")
        assert len(server.requests) == 1


def test_a_listing_asks_the_store_to_begin_after_the_bound():
    with answering(503, 200, body=b"<ListBucketResult/>") as server:
        list(store_at(server).list_from("_delta_log/", "_delta_log/00000000000000000007.json"))
        asked = server.requests[-1][1]
    assert "start-after=table%2F_delta_log%2F00000000000000000007.json" in asked
    assert "prefix=table%2F_delta_log%2F" in asked


@pytest.mark.parametrize("status", [403, 409, 412, 500])
def test_no_secret_shows_in_an_error_or_a_repr(status):
    echo = f"<Error><Message>{SECRET} is wrong</Message></Error>".encode()
    with answering(status, body=echo) as server:
        store = store_at(server)
        with pytest.raises(StorageError) as raised:
            store.put_if_absent("a", b"x")
    shown = "".join(traceback.format_exception(raised.value)) + repr(store) + store.url
    assert SECRET not in shown
    assert SECRET.encode() not in pickle.dumps(raised.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"no_such_option": "x"}, "no_such_option"),
        ({"timeout": "soon"}, "soon"),
        ({"AWS_BUCKET": "other"}, "AWS_BUCKET"),
    ],
)
def test_a_wrong_option_is_refused_by_name(options, message):
    with pytest.raises(InvalidInputError, match=message):
        open_store("s3://bucket/t", options)


@pytest.mark.parametrize("prefix", ["", "AWS_", "aws_"])
def test_options_may_be_spelt_as_in_the_environment(prefix):
    options = {f"{prefix}ALLOW_HTTP": "true", f"{prefix}REGION": "eu-west-1"}
    assert open_store("s3a://bucket/t/", options).url == "s3://bucket/t"


@pytest.mark.parametrize("options", [{}, {"timeout": "5s"}])
def test_a_store_is_reached_by_the_environment_alone(options, s3_options, monkeypatch):
    for name, value in s3_options.items():
        monkeypatch.setenv(f"AWS_{name.upper()}", value)
    store = open_store("s3://bucket/by-environment", options)
    assert list(store.list_from("")) == []


@pytest.mark.parametrize(
    "url",
    ["s3://", "s3:///t", f"s3://u:{SECRET}@bucket/t", "s3://b/t?x=1", "s3://b/t#f", "s3://b/../t"],
)
def test_a_url_that_names_more_or_less_than_bucket_and_path_is_refused(url):
    with pytest.raises(InvalidInputError) as raised:
        open_store(url)
    assert SECRET not in str(raised.value)


def test_the_url_opens_the_same_objects_again(s3_options):
    store = open_store("s3://bucket/100%25 é", s3_options)
    store.put("a", b"x")
    assert open_store(store.url, s3_options).get("a") == b"x"
    assert store.url == "s3://bucket/100%25%20%C3%A9"


def test_the_marker_object_of_a_folder_does_not_disturb_a_listing(s3_options):
    store = open_store("s3://bucket/markers", s3_options)
    for path in ("a-b", "a/c"):
        store.put(path, b"x")
    put_over_http(f"{s3_options['endpoint']}/bucket/markers/a/")
    assert [meta.path for meta in store.list_from("a/")] == ["a/c"]
    assert [meta.path for meta in store.list_from("")] == ["a-b", "a/c"]


def test_a_store_that_lists_out_of_order_is_found_out():
    entries = "".join(LISTED.format(name=name) for name in ("b", "a"))
    body = f"<ListBucketResult>{entries}</ListBucketResult>".encode()
    with answering(200, body=body) as server, pytest.raises(StorageError, match="'a' after 'b'"):
        list(store_at(server).list_from(""))


def test_an_entry_that_is_listed_twice_is_given_once():
    entries = LISTED.format(name="a") * 2
    body = f"<ListBucketResult>{entries}</ListBucketResult>".encode()
    with answering(200, body=body) as server:
        assert [meta.path for meta in store_at(server).list_from("")] == ["a"]


def read_in_child(store: ObjectStore, answers: multiprocessing.SimpleQueue[str]) -> None:
    try:
        store.get("a")
    except StorageError as error:
        answers.put(str(error))
    os._exit(0)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_is_told_and_does_not_hang(make_s3_store: Callable[[], ObjectStore]):
    store = make_s3_store()
    store.put("a", b"x")
    context = multiprocessing.get_context("fork")
    answers: multiprocessing.SimpleQueue[str] = context.SimpleQueue()
    child = context.Process(target=read_in_child, args=(store, answers))
    child.start()
    child.join(30)
    assert child.exitcode == 0
    assert "spawn" in answers.get()


def test_a_store_over_a_given_client_keeps_every_promise_but_pickling():
    store = ObstoreStore(MemoryClient(), url="memory://x/")
    store.put_if_absent("a", b"x")
    with pytest.raises(ObjectExistsError):
        store.put_if_absent("a", b"y")
    assert store.url == "memory://x"
