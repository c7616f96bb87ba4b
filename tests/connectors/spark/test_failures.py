"""Errors that come out of Spark as text are made whole again."""

from __future__ import annotations

import traceback

import pytest

import streamlake as sl
from pyspark_streamlake.failures import typed_error


def as_spark_tells(error):
    """A traceback of Python's inside of Java's."""
    try:
        raise error
    except sl.StreamlakeError:
        text = traceback.format_exc()
    return (
        f"[STREAM_FAILED] Query [id = 1] terminated: {text} SQLSTATE: 38000\n\tat java.Thread.run"
    )


@pytest.mark.parametrize(
    "error",
    [
        sl.SchemaMismatchError("a does not fit.", where="t", found="b: long", remedy="cast it"),
        sl.OffsetOutOfRangeError(
            "Offsets from 1 of orders/0 are gone.", found="Kafka holds [4, 6)"
        ),
        sl.FencedError("Another owner moved it."),
    ],
)
def test_an_error_comes_back_with_all_it_said(error):
    found = typed_error(as_spark_tells(error))
    assert type(found) is type(error)
    assert str(found).strip() == str(error)


def test_of_several_errors_it_is_the_last_that_counts():
    text = as_spark_tells(sl.StorageError("one")) + as_spark_tells(sl.FencedError("two"))
    assert isinstance(typed_error(text), sl.FencedError)


def test_text_without_an_error_of_ours_is_none():
    assert typed_error("java.lang.RuntimeException: boom\n\tat somewhere") is None
