"""Change the columns of a table: add, rename, drop, widen; no data file is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa

from streamlake.arguments import check_type, names_of
from streamlake.data import read_file, table_columns
from streamlake.data.constraints import check_not_null
from streamlake.data.defaults import default_value
from streamlake.data.table_columns import check_left_for_files
from streamlake.errors import ConstraintViolationError, InvalidInputError
from streamlake.log import CommitResult, Head, Log
from streamlake.operations.alter import as_json, change_metadata
from streamlake.protocol import (
    Metadata,
    column_mapping,
    field_metadata,
    normalize_schema,
    schema_from_json,
    schema_to_json,
    with_field_metadata,
)
from streamlake.protocol import properties as props
from streamlake.protocol.assignment import plain_columns
from streamlake.protocol.clustering import clustering_columns
from streamlake.protocol.schema.codec import Path, dotted, type_to_json
from streamlake.protocol.schema.evolution import (
    exact_path,
    field_at,
    retyped_to,
    with_columns,
    with_field,
    with_new_name,
    without_column,
)
from streamlake.protocol.schema.references import (
    CURRENT_DEFAULT,
    GENERATION_EXPRESSION,
    IDENTITY_PREFIX,
    INVARIANTS,
    rules_naming,
)
from streamlake.protocol.schema.walk import struct_fields

COMMENT = "comment"
_GIVE_FIELDS = 'Give a pyarrow.Schema, or a list such as [pyarrow.field("n", pyarrow.int64())].'
Fields: TypeAlias = "pa.Schema | Sequence[pa.Field[Any]]"
"""Columns to come."""


def add_columns(log: Log, fields: Fields, *, within: str | None = None) -> CommitResult:
    """Add columns after the others; rows that are there hold null in them.

    Args:
        log: The table's log.
        fields: In Arrow's types; all of them nullable.
        within: The struct that gets them as fields; None for the table itself.

    Raises:
        InvalidInputError: A name that is taken, or a type or name that a table can't have.
        UnsupportedFeatureError: A type needs a feature that is not supported.
        MetadataChangedError: A concurrent commit changed the metadata, too.
    """
    head = log.refresh()
    schema = _schema(log, head)
    mapped = column_mapping(head.protocol, head.metadata, where=log.url).is_mapped
    given = _given(fields)
    for _, field in struct_fields(given):
        _check_plain(field)
    new = plain_columns(normalize_schema(given, any_name=mapped))
    path = () if within is None else _path(log, schema, within)
    added = [
        {"column": {"name": field.name, "type": type_to_json(field.type), "nullable": True}}
        for field in new
    ]
    return _change(
        log,
        head,
        with_columns(schema, path, list(new)),
        operation="ADD COLUMNS",
        parameters={"columns": as_json(added)},
    )


def rename_column(log: Log, column: str, name: str) -> CommitResult:
    """Call a column, or a field of a struct, by another name; its values stay where they are.

    Args:
        log: The table's log.
        column: Which: fields of structs after a dot, names that hold a dot in backticks.
        name: The new name, of the field alone.

    Raises:
        InvalidInputError: Columns are not mapped, there is no such column, the name is taken, or a
            constraint or generated column speaks of the column.
        MetadataChangedError: A concurrent commit changed the metadata, too.
    """
    head = log.refresh()
    schema = _schema(log, head)
    metadata = head.metadata
    _check_mapped(log, head, "renamed")
    path = _path(log, schema, column)
    _check_unreferenced(metadata, path, "renamed")
    renamed = with_new_name(schema, path, name)
    after = msgspec.structs.replace(
        metadata,
        schema_string=schema_to_json(renamed),
        partition_columns=tuple(
            name if (partition,) == path else partition for partition in metadata.partition_columns
        ),
        configuration=_statistics_renamed(metadata, path, (*path[:-1], name)),
    )
    return change_metadata(
        log,
        head,
        after,
        operation="RENAME COLUMN",
        parameters={"oldColumnPath": dotted(path), "newColumnPath": dotted((*path[:-1], name))},
    )


def drop_columns(log: Log, columns: Sequence[str]) -> CommitResult:
    """Drop columns, or fields of structs; their values stay in data files, where nobody looks.

    Args:
        log: The table's log.
        columns: Which, as ``rename_column``.

    Raises:
        InvalidInputError: Columns are not mapped, there is no such column, none would be left, or
            the table is partitioned or clustered by one, or a constraint speaks of it.
        MetadataChangedError: A concurrent commit changed the metadata, too.
    """
    head = log.refresh()
    schema = _schema(log, head)
    metadata = head.metadata
    _check_mapped(log, head, "dropped")
    configuration = metadata.configuration
    told = []
    for column in names_of("columns", columns):
        path = _path(log, schema, column)
        _check_unreferenced(metadata, path, "dropped")
        _check_no_key(log, head, path)
        schema = without_column(schema, path)
        metadata = msgspec.structs.replace(metadata, configuration=configuration)
        configuration = _statistics_renamed(metadata, path, None)
        told.append(dotted(path))
    if metadata.partition_columns:
        check_left_for_files(schema, metadata.partition_columns)
    after = msgspec.structs.replace(
        metadata, schema_string=schema_to_json(schema), configuration=configuration
    )
    return change_metadata(
        log, head, after, operation="DROP COLUMNS", parameters={"columns": as_json(told)}
    )


def alter_column(
    log: Log,
    column: str,
    *,
    type: pa.DataType | None = None,  # noqa: A002 - what it is called everywhere
    nullable: bool | None = None,
    default: str | None = None,
    comment: str | None = None,
) -> CommitResult:
    """Change a column's type to a wider one, whether it may be null, its default, its comment.

    A column becomes NOT NULL only when no row has null there: all rows are looked at, and rows that
    are committed meanwhile are a conflict.

    Args:
        log: The table's log.
        column: Which, as ``rename_column``.
        type: The new type; ``delta.enableTypeWidening`` must be set.
        nullable: Whether it may be null.
        default: SQL without columns, for data that leave the column out; "" for null.
        comment: What to say of it; "" for nothing. None leaves each as it is.

    Raises:
        InvalidInputError: There is no such column, its type can't be widened so, or the default is
            not of it.
        ConstraintViolationError: Rows have null where it is to be NOT NULL.
        CommitConflictError: A concurrent commit changed the metadata or, for NOT NULL, the rows.
    """
    check_type("type", type, pa.DataType, remedy="Give a type of Arrow's, as in pyarrow.int64().")
    check_type("nullable", nullable, bool, remedy="Give True or False; None leaves it as it is.")
    check_type("default", default, str, remedy='Give SQL, as in "\'none\'"; "" for null.')
    check_type("comment", comment, str, remedy='Give a text; "" for no comment.')
    head = log.refresh()
    schema = _schema(log, head)
    path = _path(log, schema, column)
    if type is not None:
        schema = _widened(log, head, schema, path, type)
    if default is not None:
        schema = _with_default(log, schema, path, default)
    if comment is not None:
        schema = with_field(schema, path, lambda field: _noted(field, COMMENT, comment))
    read_version = None
    if nullable is not None:
        schema = with_field(schema, path, lambda field: field.with_nullable(nullable))
        if not nullable:
            read_version = _check_no_null(log, head, schema, path)
    return _change(
        log,
        head,
        schema,
        operation="CHANGE COLUMN",
        parameters={"column": as_json({"name": dotted(path)})},
        read_version=read_version,
    )


def _given(fields: Fields) -> pa.Schema:
    try:
        given = pa.schema(list(fields))
    except (TypeError, pa.ArrowException) as error:
        raise InvalidInputError(
            "Columns to add must be fields of Arrow's.",
            found=repr(fields)[:200],
            remedy=_GIVE_FIELDS,
        ) from error
    if not given.names:
        raise InvalidInputError("There is no column to add.", found="[]", remedy=_GIVE_FIELDS)
    return given


def _schema(log: Log, head: Head) -> pa.Schema:
    return schema_from_json(head.metadata.schema_string, where=log.url)


def _path(log: Log, schema: pa.Schema, column: str) -> Path:
    """The column that a user means, in the case that the table has it in."""
    try:
        return exact_path(schema, props.column_path(column))
    except InvalidInputError as error:
        error.where = log.url
        raise


def _change(
    log: Log,
    head: Head,
    schema: pa.Schema,
    *,
    operation: str,
    parameters: dict[str, Any],
    read_version: int | None = None,
) -> CommitResult:
    after = msgspec.structs.replace(head.metadata, schema_string=schema_to_json(schema))
    return change_metadata(
        log, head, after, operation=operation, parameters=parameters, read_version=read_version
    )


def _check_plain(field: pa.Field[Any]) -> None:
    rules = sorted(
        key
        for key in field_metadata(field)
        if key in {CURRENT_DEFAULT, GENERATION_EXPRESSION, INVARIANTS}
        or key.startswith(IDENTITY_PREFIX)
    )
    if rules:
        raise InvalidInputError(
            f"Column {field.name!r} can't be added with {rules[0]}: rows are there without it.",
            remedy="Add the column without. A default is set with alter_column(default=...).",
        )


def _check_mapped(log: Log, head: Head, verb: str) -> None:
    if not column_mapping(head.protocol, head.metadata, where=log.url).is_mapped:
        raise InvalidInputError(
            f"A column can't be {verb} while columns are not mapped: data files have its name.",
            where=log.url,
            found=f"{props.COLUMN_MAPPING_MODE} is not set",
            remedy=f'Set the table property {props.COLUMN_MAPPING_MODE} to "name" first.',
        )


def _check_unreferenced(metadata: Metadata, path: Path, verb: str) -> None:
    rules = rules_naming(metadata, path)
    if rules:
        raise InvalidInputError(
            f"Column {dotted(path)!r} can't be {verb}: the table has rules that name it.",
            found="; ".join(rules),
            remedy="Drop those rules first, and add them again for the columns as they are then.",
        )


def _check_no_key(log: Log, head: Head, path: Path) -> None:
    if len(path) == 1 and path[0] in head.metadata.partition_columns:
        raise InvalidInputError(
            f"Column {path[0]!r} can't be dropped: the table is partitioned by it.",
            where=log.url,
            remedy="Write the rows to a table that is partitioned otherwise.",
        )
    mapping = column_mapping(head.protocol, head.metadata, where=log.url)
    physical = mapping.physical_path(path)
    clustered_by = clustering_columns(head.protocol, head.domains)
    if any(each[: len(physical)] == physical for each in clustered_by):
        raise InvalidInputError(
            f"Column {dotted(path)!r} can't be dropped: the table is clustered by it.",
            where=log.url,
            remedy="Cluster the table by other columns first.",
        )


def _statistics_renamed(metadata: Metadata, path: Path, new: Path | None) -> dict[str, str]:
    """The properties with a renamed (or dropped) column so among those that have statistics."""
    configuration = dict(metadata.configuration)
    named = props.data_skipping_stats_columns(configuration)
    if named is None or not any(each[: len(path)] == path for each in named):
        return configuration
    kept: list[Path] = []
    for each in named:
        if each[: len(path)] != path:
            kept.append(each)
        elif new is not None:
            kept.append((*new, *each[len(path) :]))
    if not kept:
        del configuration[props.DATA_SKIPPING_STATS_COLUMNS]
        return configuration
    text = ",".join(_quoted(each) for each in kept)
    return {**configuration, props.DATA_SKIPPING_STATS_COLUMNS: text}


def _quoted(path: Path) -> str:
    return ".".join("`" + name.replace("`", "``") + "`" for name in path)


def _widened(log: Log, head: Head, schema: pa.Schema, path: Path, kind: pa.DataType) -> pa.Schema:
    metadata = head.metadata
    normal = normalize_schema(pa.schema([pa.field("c", kind)]), any_name=True).field(0).type
    before = field_at(schema, path)
    if path[0] in metadata.partition_columns and pa.types.is_date(before.type):
        raise InvalidInputError(
            f"Column {path[0]!r} can't become {kind}: the table is partitioned by it.",
            where=log.url,
            found="dates in the log that would have to be timestamps",
            remedy="Write the rows to a table that is partitioned otherwise.",
        )
    schema = with_field(schema, path, lambda field: retyped_to(field, normal))
    if (
        before.type.equals(normal)
        or pa.types.is_null(before.type)
        or props.flag(metadata.configuration, props.ENABLE_TYPE_WIDENING)
    ):
        return schema
    raise InvalidInputError(
        f"Column {dotted(path)!r} can't change its type: the table does not allow widening.",
        where=log.url,
        found=f"{props.ENABLE_TYPE_WIDENING} is not set",
        remedy=f"Set the table property {props.ENABLE_TYPE_WIDENING} to true first.",
    )


def _with_default(log: Log, schema: pa.Schema, path: Path, sql: str) -> pa.Schema:
    if len(path) > 1:
        raise InvalidInputError(
            f"Column {dotted(path)!r} can't have a default: it is inside of another one.",
            where=log.url,
            remedy="Only whole columns have defaults.",
        )
    if sql:
        kind = field_at(schema, path).type
        default_value(path[0], sql, kind, now_ms=log.clock.now_ms)
    return with_field(schema, path, lambda field: _noted(field, CURRENT_DEFAULT, sql))


def _noted(field: pa.Field[Any], key: str, text: str) -> pa.Field[Any]:
    """The field with ``text`` in its metadata; without the key where it is empty."""
    metadata = {k: v for k, v in field_metadata(field).items() if k != key}
    return with_field_metadata(field, {**metadata, key: text} if text else metadata)


def _check_no_null(log: Log, head: Head, schema: pa.Schema, path: Path) -> int:
    """The version at which no row has null in the column that ``schema`` has as NOT NULL."""
    snapshot = log.snapshot(head.version)
    table = table_columns(snapshot.protocol, snapshot.metadata, where=log.url)
    wanted = pa.schema([schema.field(path[0])])
    for add in snapshot.files():
        rows = read_file(log.store, add, table, columns=[path[0]])
        try:
            check_not_null(rows.columns, wanted)
        except ConstraintViolationError as error:
            raise ConstraintViolationError(
                f"Column {dotted(path)!r} can't be NOT NULL: rows of the table have null there.",
                where=log.url,
                found=error.found,
                remedy="Fill or remove those rows first; the table stays as it is.",
            ) from error
    return snapshot.version
