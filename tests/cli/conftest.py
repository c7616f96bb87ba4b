import pyarrow as pa
import pytest

import streamlake as sl
from programs import streamlake


@pytest.fixture
def cli():
    """Runs a command to its end: ``cli("tail", url, code=0)``."""
    return streamlake


@pytest.fixture
def orders(tmp_path):
    """An empty table of orders."""
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            pa.field("item", pa.string()),
            pa.field("at", pa.timestamp("us", "UTC")),
        ]
    )
    return sl.Table.create(tmp_path / "orders", schema=schema)
