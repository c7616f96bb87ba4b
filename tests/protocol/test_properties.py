"""Table properties, their defaults and their bad values."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from strategies import text
from streamlake.errors import InvalidInputError
from streamlake.protocol import (
    append_only,
    check_properties,
    checkpoint_interval,
    data_skipping_num_indexed_cols,
    data_skipping_stats_columns,
    deleted_file_retention_ms,
    isolation_level,
    log_retention_ms,
    set_transaction_retention_ms,
)

DAY_MS = 86_400_000
RETENTION = "delta.setTransactionRetentionDuration"
STATS_COLUMNS = "delta.dataSkippingStatsColumns"


def test_defaults_are_deltas():
    assert append_only({}) is False
    assert checkpoint_interval({}) is None
    assert data_skipping_num_indexed_cols({}) == 32
    assert data_skipping_stats_columns({}) is None
    assert deleted_file_retention_ms({}) == 7 * DAY_MS
    assert isolation_level({}) == "WriteSerializable"
    assert log_retention_ms({}) == 30 * DAY_MS
    assert set_transaction_retention_ms({}) is None


def test_values_are_read():
    assert append_only({"delta.appendOnly": "True"}) is True
    assert checkpoint_interval({"delta.checkpointInterval": "10"}) == 10
    assert data_skipping_num_indexed_cols({"delta.dataSkippingNumIndexedCols": "-1"}) == -1
    assert isolation_level({"delta.isolationLevel": "serializable"}) == "Serializable"


@pytest.mark.parametrize(
    ("interval", "ms"),
    [
        ("interval 30 days", 30 * DAY_MS),
        ("interval 1 week", 7 * DAY_MS),
        ("INTERVAL 2 Hours", 7_200_000),
        ("1 day 2 hours 3 minutes 4 seconds 5 milliseconds", DAY_MS + 7_384_005),
        ("interval 1500 microseconds", 1),
        ("  interval   0   seconds ", 0),
    ],
)
def test_intervals_are_read_as_delta_writes_them(interval, ms):
    assert set_transaction_retention_ms({RETENTION: interval}) == ms


@pytest.mark.parametrize(
    "interval",
    [
        "",
        "interval",
        "30",
        "days",
        "interval 1 month",
        "interval 1 year",
        "interval -1 days",
        "interval 1.5 days",
        "interval 1 day,",
        "interval 1 dayss",
        "interval 999999999999999999 weeks",
        "P1D",
    ],
)
def test_what_is_no_interval_is_refused(interval):
    with pytest.raises(InvalidInputError, match=RETENTION) as caught:
        set_transaction_retention_ms({RETENTION: interval})
    assert caught.value.found == repr(interval)


@given(text)
def test_any_text_is_an_interval_or_refused(interval):
    try:
        found = log_retention_ms({"delta.logRetentionDuration": interval})
    except InvalidInputError:
        return
    assert found >= 0


@pytest.mark.parametrize(
    ("columns", "paths"),
    [
        ("", ()),
        ("a", (("a",),)),
        ("a, b.c ,d", (("a",), ("b", "c"), ("d",))),
        ("`a.b`.`c,d`,e f", (("a.b", "c,d"), ("e f",))),
        ("`a``b`", (("a`b",),)),
    ],
)
def test_columns_with_statistics_are_named_by_their_paths(columns, paths):
    assert data_skipping_stats_columns({STATS_COLUMNS: columns}) == paths


@pytest.mark.parametrize("columns", [",", "a,", "a..b", ".a", "a.", "`a", "`a`b", "``", "a,,b"])
def test_what_names_no_columns_is_refused(columns):
    with pytest.raises(InvalidInputError, match=STATS_COLUMNS):
        data_skipping_stats_columns({STATS_COLUMNS: columns})


quoted = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)


@given(st.lists(st.lists(quoted, min_size=1, max_size=3), min_size=1, max_size=3))
def test_every_column_path_can_be_named(paths):
    named = ",".join(
        ".".join("`" + name.replace("`", "``") + "`" for name in path) for path in paths
    )
    assert data_skipping_stats_columns({STATS_COLUMNS: named}) == tuple(map(tuple, paths))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("delta.appendOnly", "yes"),
        ("delta.checkpointInterval", "0"),
        ("delta.checkpointInterval", "1.5"),
        ("delta.checkpointInterval", "٣"),
        ("delta.checkpointInterval", "9" * 5000),
        ("delta.dataSkippingNumIndexedCols", "-2"),
        ("delta.dataSkippingStatsColumns", ","),
        ("delta.deletedFileRetentionDuration", "soon"),
        ("delta.enableChangeDataFeed", "1"),
        ("delta.feature.appendOnly", "true"),
        ("delta.isolationLevel", "SnapshotIsolation"),
        ("delta.logRetentionDuration", "interval 1 month"),
        ("delta.setTransactionRetentionDuration", ""),
    ],
)
def test_a_value_that_a_property_can_not_have_is_refused(name, value):
    with pytest.raises(InvalidInputError, match=name) as caught:
        check_properties({"mine": "x", name: value})
    assert caught.value.remedy


def test_a_value_that_is_no_string_is_refused():
    with pytest.raises(InvalidInputError, match="checkpointInterval"):
        check_properties({"delta.checkpointInterval": 10})  # type: ignore[dict-item]


def test_a_misspelt_property_is_refused_with_the_one_meant():
    with pytest.raises(InvalidInputError) as caught:
        check_properties({"delta.logRetentionDurations": "interval 1 day"})
    assert "delta.logRetentionDuration?" in caught.value.remedy


def test_what_others_set_is_left_alone():
    check_properties(
        {
            "mine": "",
            "delta.constraints.positive": "a > 0",
            "delta.parquet.compression.codec": "zstd",
            "delta.columnMapping.mode": "none",
            "delta.feature.timestampNtz": "supported",
        }
    )
