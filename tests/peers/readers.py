"""The peers as readers of a table's rows, and what each of them can't read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import deltalake
import duckdb
import duckdb_extension_delta
import pyarrow as pa

DUCKDB_LACKS = {
    "mapped partitions": "reads partition values of mapped columns as null",
    "rescaled partitions": "can't parse a decimal partition value of fewer digits than it has now",
}
DELTALAKE_LACKS = {"typeWidening": "refuses the feature"}
SPARK_LACKS: dict[str, str] = {}
LACKING = {**DUCKDB_LACKS, **DELTALAKE_LACKS, **SPARK_LACKS}
"""What keeps a peer from reading a table rightly, and how it fails; such tables it is not shown."""


class Read(Protocol):
    """A table's rows, at its newest version or another."""

    def __call__(self, path: Path, version: int | None = None) -> pa.Table: ...


def read_with_deltalake(path: Path, version: int | None = None) -> pa.Table:
    """By the query engine of delta-rs, which knows more features than its Arrow dataset."""
    table = deltalake.DeltaTable(str(path), version=version)
    query = deltalake.QueryBuilder().register("t", table)
    return pa.table(query.execute("SELECT * FROM t"))


@contextmanager
def duckdb_reader() -> Iterator[Read]:
    """DuckDB with the delta extension of the installed wheel; no network."""
    folder = Path(duckdb_extension_delta.__file__).parent
    extension = next(folder.rglob("delta.duckdb_extension"))
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as connection:
        connection.execute(f"LOAD '{extension}'")
        connection.execute("SET TimeZone = 'UTC'")

        def read(path: Path, version: int | None = None) -> pa.Table:
            asked = "" if version is None else f", version := {version}"
            found = connection.execute(
                f"SELECT * FROM delta_scan($path{asked})", {"path": str(path)}
            )
            return found.to_arrow_table()

        yield read
