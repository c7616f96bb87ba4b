"""Tables that Delta on Spark wrote, one a feature, read the same in streamlake."""

from __future__ import annotations

from pathlib import Path

import pytest

import streamlake as sl
from peers.sameness import differences
from peers.spark_tables import SPARK_TABLES, SparkTable


@pytest.fixture(scope="module")
def spark_tables(tmp_path_factory, delta_spark):
    """Where each table of the catalogue is, and its rows as Spark reads them."""
    folder: Path = tmp_path_factory.mktemp("spark")
    paths = {made.name: folder / str(number) for number, made in enumerate(SPARK_TABLES)}
    delta_spark.sql_each(
        [
            [
                line.format(t=f"delta.`{paths[made.name]}`", path=paths[made.name])
                for line in made.script
            ]
            for made in SPARK_TABLES
        ]
    )
    rows = delta_spark.read_each([(path, None) for path in paths.values()])
    return {name: (path, found) for (name, path), found in zip(paths.items(), rows, strict=True)}


@pytest.mark.parametrize("made", [t for t in SPARK_TABLES if not t.refused], ids=lambda t: t.name)
def test_a_table_that_spark_wrote_reads_the_same(made: SparkTable, spark_tables):
    path, expected = spark_tables[made.name]
    assert not isinstance(expected, Exception), expected
    assert differences(sl.Table.open(path).snapshot().to_arrow(), expected) == []


@pytest.mark.parametrize("made", [t for t in SPARK_TABLES if t.refused], ids=lambda t: t.name)
def test_a_table_that_can_not_be_read_rightly_is_refused(made: SparkTable, spark_tables):
    path, _ = spark_tables[made.name]
    with pytest.raises(sl.TableError, match=made.refused):
        sl.Table.open(path).snapshot().to_arrow()
