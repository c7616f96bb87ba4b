"""Which of a table's columns are asked for, and their rows put together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from streamlake.arguments import check_names
from streamlake.errors import InvalidInputError


def projected(schema: pa.Schema, columns: Sequence[str] | None) -> pa.Schema:
    """The schema's fields named by ``columns``, in that order; all of them for None.

    Raises:
        InvalidInputError: A column that the schema does not have, or what is no list of names.
    """
    if columns is None:
        return schema
    check_names("columns", columns)
    unknown = [name for name in columns if name not in schema.names]
    if unknown:
        raise InvalidInputError(
            f"The table has no column {unknown[0]!r}.",
            found=f"columns {', '.join(schema.names)}",
            remedy="Ask for columns that the table has.",
        )
    return pa.schema([schema.field(name) for name in columns])


def joined(tables: Iterable[pa.Table], schema: pa.Schema) -> pa.Table:
    """The rows of all tables in order; also where they have no columns, which Arrow forgets.

    Args:
        tables: All of ``schema``.
        schema: Of the result, should there be no table.
    """
    parts = [pa.Table.from_batches([], schema), *tables]
    if schema.names:
        return pa.concat_tables(parts)
    rows = sum(part.num_rows for part in parts)
    return pa.table({"rows": pa.nulls(rows)}).select([])
