"""Data in whatever Arrow form, brought to exactly the schema of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from streamlake.data.bounds import Column
from streamlake.data.cast import cast_column, fits
from streamlake.data.constraints import check_not_null, required_columns, tighten
from streamlake.errors import InvalidInputError, SchemaMismatchError
from streamlake.protocol.schema import schema_difference


class ArrowStream(Protocol):
    """Anything that streams Arrow record batches (Arrow's PyCapsule interface)."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A capsule of a stream of record batches."""


class ArrowArray(Protocol):
    """Anything that is one Arrow record batch (Arrow's PyCapsule interface)."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """Capsules of the schema and of the data."""


Tabular: TypeAlias = pa.Table | pa.RecordBatch | pa.RecordBatchReader | ArrowStream | ArrowArray
"""Data that a table takes: Arrow's own, or what exports Arrow (Polars, DuckDB, pandas)."""


_CORRECT_THEM = "Rename, cast or drop those columns before writing; nothing was written."
_LET_THEM_JOIN = (
    "Rename or drop those columns before writing, or let them join the table with "
    "merge_schema=True; nothing was written."
)

Fill: TypeAlias = Callable[[pa.Table], pa.Table]
"""Adds columns that data leave out."""


def _nothing_to_fill(rows: pa.Table) -> pa.Table:
    return rows


def conform(data: Tabular, schema: pa.Schema) -> pa.Table:
    """All of ``data`` as one table of exactly ``schema``.

    Columns are matched by name and put in order; nullable ones that are absent are null. A type
    becomes the table's where no value can be lost (int32 to int64, a dictionary to its values, a
    timestamp to microseconds in UTC); nothing else is converted.

    Raises:
        SchemaMismatchError: Naming every column that does not fit.
        ConstraintViolationError: Nulls in NOT NULL, also inside of structs, arrays and maps.
        InvalidInputError: ``data`` is no Arrow data.
    """
    if isinstance(data, pa.Table):
        return _conform(data, schema)
    parts = list(conform_parts(data, schema))
    return pa.concat_tables(parts) if parts else pa.Table.from_batches([], schema)


def conform_parts(
    data: Tabular, schema: pa.Schema, *, fill: Fill = _nothing_to_fill
) -> Iterator[pa.Table]:
    """The same, part by part as a stream delivers them; a mismatch shows at the first part.

    Args:
        data: As ``conform``.
        schema: As ``conform``.
        fill: Adds columns that are absent and not to be null.

    Raises:
        SchemaMismatchError: As ``conform``.
        ConstraintViolationError: As ``conform``, when the part comes.
        InvalidInputError: As ``conform``.
    """
    if isinstance(data, pa.Table):
        yield _conform(fill(data), schema)
    elif isinstance(data, pa.RecordBatch):
        yield _conform(fill(pa.Table.from_batches([data])), schema)
    else:
        with _reader(data) as reader:
            _conform(fill(pa.Table.from_batches([], reader.schema)), schema)
            for batch in reader:
                yield _conform(fill(pa.Table.from_batches([batch])), schema)


def arrow_form(data: Tabular) -> pa.Table | pa.RecordBatch | pa.RecordBatchReader:
    """The data in the form in which its schema can be asked for before it is read.

    Raises:
        InvalidInputError: ``data`` is no Arrow data.
    """
    return data if isinstance(data, pa.Table | pa.RecordBatch) else _reader(data)


def _reader(data: object) -> pa.RecordBatchReader:
    if isinstance(data, pa.RecordBatchReader):
        return data
    try:
        if hasattr(data, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(data)
        if hasattr(data, "__arrow_c_array__"):
            batch = pa.record_batch(data)
            return pa.RecordBatchReader.from_batches(batch.schema, [batch])
    except pa.ArrowInvalid as error:
        raise _no_table(data, "The data is a single column, and not a table.") from error
    raise _no_table(data, "The data is not Arrow data.")


def _no_table(data: object, what: str) -> InvalidInputError:
    return InvalidInputError(
        what,
        found=f"a {type(data).__module__}.{type(data).__qualname__}",
        remedy="Pass a pyarrow Table, RecordBatch or RecordBatchReader, or anything that exports "
        "Arrow (pandas, Polars, DuckDB). Of a list of dicts pyarrow.Table.from_pylist makes one.",
    )


def _conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    if table.schema.equals(schema):
        columns = table.columns
    else:
        check_fits(table.schema, schema)
        columns = [_column(table, field) for field in schema]
    required = required_columns(schema)
    if required:
        check_not_null(columns, schema)
        for i, inside in required:
            if inside:
                columns[i] = tighten(columns[i], schema.field(i))
    return pa.Table.from_arrays(columns, schema=schema)


def check_fits(given: pa.Schema, schema: pa.Schema) -> None:
    """Refuse data whose columns are not those of a table, or of types that can't become theirs.

    Raises:
        SchemaMismatchError: Naming every column that does not fit.
    """
    # What differs without harm is shown as the table has it, so that only the harm is told.
    shown: list[pa.Field[Any]] = []
    harm = False
    for field in schema:
        found = given.get_all_field_indices(field.name)
        if len(found) > 1:
            raise _mismatch([f"column {field.name!r} is there {len(found)} times"])
        kind = given.field(found[0]).type if found else None
        if field.nullable if kind is None else fits(kind, field.type):
            shown.append(field)
            continue
        harm = True
        if kind is not None:
            shown.append(pa.field(field.name, kind, nullable=field.nullable))
    known = set(schema.names)
    extra = [field for field in given if field.name not in known]
    if harm or extra:
        new = {field.name.lower() for field in extra} - {name.lower() for name in known}
        raise _mismatch(
            schema_difference(schema, pa.schema(shown + extra)),
            remedy=_LET_THEM_JOIN if new and not harm else _CORRECT_THEM,
        )


def _mismatch(differences: list[str], *, remedy: str = _CORRECT_THEM) -> SchemaMismatchError:
    return SchemaMismatchError(
        "The data's schema does not fit the table's.",
        found="; ".join(differences),
        remedy=remedy,
    )


def _column(table: pa.Table, field: pa.Field[Any]) -> Column:
    index = table.schema.get_field_index(field.name)
    if index < 0:
        return pa.chunked_array([pa.nulls(table.num_rows, field.type)])
    try:
        return cast_column(table.column(index), field.type)
    except pa.ArrowException as error:
        raise _mismatch([f"column {field.name!r}: {error}"]) from error
