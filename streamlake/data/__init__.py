"""Data files: written with statistics, read back with the table's types (floor 3)."""

from streamlake.data.conform import Tabular, arrow_form, conform, conform_parts
from streamlake.data.limits import (
    DEFAULT_READ_LIMITS,
    DEFAULT_WRITE_LIMITS,
    ReadLimits,
    WriteLimits,
)
from streamlake.data.parquet import encode_parquet
from streamlake.data.projection import joined, projected
from streamlake.data.reader import iter_file, read_file
from streamlake.data.row_ids import KeptIds
from streamlake.data.rules import Rule, check_rule, has_rules, table_rules
from streamlake.data.stager import Stager
from streamlake.data.statistics import collect_statistics
from streamlake.data.table_columns import TableColumns, plain_columns, table_columns

__all__ = [
    "DEFAULT_READ_LIMITS",
    "DEFAULT_WRITE_LIMITS",
    "KeptIds",
    "ReadLimits",
    "Rule",
    "Stager",
    "TableColumns",
    "Tabular",
    "WriteLimits",
    "arrow_form",
    "check_rule",
    "collect_statistics",
    "conform",
    "conform_parts",
    "encode_parquet",
    "has_rules",
    "iter_file",
    "joined",
    "plain_columns",
    "projected",
    "read_file",
    "table_columns",
    "table_rules",
]
