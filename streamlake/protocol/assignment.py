"""What a writer gives to new columns and tables: ids, physical names, hidden columns' names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pyarrow as pa

from streamlake.errors import InvalidInputError
from streamlake.protocol import properties as props
from streamlake.protocol.actions import Metadata, Protocol
from streamlake.protocol.features import keeps_row_ids, supports_reader_feature
from streamlake.protocol.mapping import (
    COLUMN_ID,
    NESTED_IDS,
    PHYSICAL_NAME,
    column_id,
    max_column_id,
    physical_name,
)
from streamlake.protocol.schema import (
    field_metadata,
    schema_from_json,
    schema_to_json,
    with_field_metadata,
)
from streamlake.protocol.schema.codec import Path
from streamlake.protocol.schema.walk import visited

NewId = Callable[[], str]
"""Gives a fresh UUID."""

_GIVEN = (COLUMN_ID, PHYSICAL_NAME, NESTED_IDS, "delta.typeChanges")
"""Keys of column metadata that tell of the files of one table only."""


def unassigned(schema: pa.Schema) -> pa.Schema:
    """The schema of a table to come: without what another table's files were written by."""

    def visit(field: pa.Field[Any], _: Path) -> pa.Field[Any]:
        kept = {k: v for k, v in field_metadata(field).items() if k not in _GIVEN}
        return with_field_metadata(field, kept)

    return visited(schema, visit)


def plain_columns(schema: pa.Schema) -> pa.Schema:
    """Columns that join a table: without metadata but their comments.

    Where they come from they may have been mapped, generated or defaulted; here they are not.
    """

    def visit(field: pa.Field[Any], _: Path) -> pa.Field[Any]:
        kept = {k: v for k, v in field_metadata(field).items() if k == "comment"}
        return with_field_metadata(field, kept)

    return visited(schema, visit)


def assigned(
    protocol: Protocol, metadata: Metadata, *, new_id: NewId, had_names: bool = False
) -> Metadata:
    """Metadata in which everything has what the table's features call for.

    Where columns are mapped, each without an id gets the next, and a physical name: a fresh one or,
    of columns that ``had_names`` in data files before, its own (PROTOCOL.md, "Writer Requirements
    for Column Mapping"). Where rows keep their ids the hidden columns for them get names
    (PROTOCOL.md, "Writer Requirements for Row Tracking").
    """
    configuration = dict(metadata.configuration)
    schema_string = metadata.schema_string
    if maps_columns(protocol, metadata):
        schema = schema_from_json(schema_string)
        mapped, highest = _mapped(schema, configuration, new_id=new_id, had_names=had_names)
        schema_string = schema_to_json(mapped)
        configuration[props.MAX_COLUMN_ID] = str(highest)
    if keeps_row_ids(protocol, metadata):
        configuration.setdefault(props.MATERIALIZED_ROW_ID, f"_row-id-col-{new_id()}")
        configuration.setdefault(
            props.MATERIALIZED_ROW_COMMIT_VERSION, f"_row-commit-version-col-{new_id()}"
        )
    return msgspec.structs.replace(
        metadata, schema_string=schema_string, configuration=configuration
    )


def maps_columns(protocol: Protocol, metadata: Metadata) -> bool:
    """Whether columns have physical names: the property counts only with the feature."""
    mode = props.column_mapping_mode(metadata.configuration)
    return mode != "none" and supports_reader_feature(protocol, "columnMapping")


def _mapped(
    schema: pa.Schema, configuration: Mapping[str, str], *, new_id: NewId, had_names: bool
) -> tuple[pa.Schema, int]:
    highest = max(props.max_column_id(configuration), max_column_id(schema))

    def visit(field: pa.Field[Any], _: Path) -> pa.Field[Any]:
        nonlocal highest
        metadata = field_metadata(field)
        if column_id(field) is None:
            highest += 1
            metadata[COLUMN_ID] = highest
        if physical_name(field) is None:
            metadata[PHYSICAL_NAME] = field.name if had_names else f"col-{new_id()}"
        return with_field_metadata(field, metadata)

    return visited(schema, visit), highest


def check_mapping_change(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Refuse a change of the column mapping that the files of the table do not allow.

    Raises:
        InvalidInputError: From or to the mode "id", or back to none.
    """
    old, new = props.column_mapping_mode(before), props.column_mapping_mode(after)
    if old != new and (old, new) != ("none", "name"):
        raise InvalidInputError(
            f"The column mapping of a table can't go from {old} to {new}.",
            found=f"{props.COLUMN_MAPPING_MODE}={old}",
            remedy='Only "none" may become "name". Write the rows to a new table otherwise.',
        )


def check_row_tracking(configuration: Mapping[str, str]) -> None:
    """Refuse properties that contradict one another.

    Raises:
        InvalidInputError: Row tracking is both enabled and suspended.
    """
    if props.flag(configuration, props.ENABLE_ROW_TRACKING) and props.flag(
        configuration, props.ROW_TRACKING_SUSPENDED
    ):
        raise InvalidInputError(
            "Row tracking can't be both enabled and suspended.",
            found=f"{props.ENABLE_ROW_TRACKING} and {props.ROW_TRACKING_SUSPENDED}",
            remedy="Unset one of them.",
        )
