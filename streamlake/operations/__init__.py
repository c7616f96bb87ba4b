"""What can be done to a table, one file per operation (floor 4). Functions over a Log."""

from streamlake.operations.alter import (
    remove_domain_metadata,
    set_domain_metadata,
    set_properties,
    unset_properties,
)
from streamlake.operations.alter_columns import (
    add_columns,
    alter_column,
    drop_columns,
    rename_column,
)
from streamlake.operations.append import Markers, append, commit_staged, stager
from streamlake.operations.clean_log import clean_log
from streamlake.operations.compact_log import compact_log
from streamlake.operations.confirm import confirm_read
from streamlake.operations.constraints import add_constraint, drop_constraint
from streamlake.operations.create import create
from streamlake.operations.history import CommitRecord, find_marker, history
from streamlake.operations.merge_schema import merge_schema
from streamlake.operations.optimize import OptimizeResult, optimize
from streamlake.operations.read import list_files, read_rows
from streamlake.operations.travel import version_at

__all__ = [
    "CommitRecord",
    "Markers",
    "OptimizeResult",
    "add_columns",
    "add_constraint",
    "alter_column",
    "append",
    "clean_log",
    "commit_staged",
    "compact_log",
    "confirm_read",
    "create",
    "drop_columns",
    "drop_constraint",
    "find_marker",
    "history",
    "list_files",
    "merge_schema",
    "optimize",
    "read_rows",
    "remove_domain_metadata",
    "rename_column",
    "set_domain_metadata",
    "set_properties",
    "stager",
    "unset_properties",
    "version_at",
]
