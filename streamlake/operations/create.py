"""Create a table: version 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import pyarrow as pa

from streamlake.arguments import check_names
from streamlake.data import has_rules, table_rules
from streamlake.data.table_columns import check_left_for_files
from streamlake.errors import InvalidInputError, UnsupportedFeatureError
from streamlake.log import CommitResult, Log, Transaction
from streamlake.protocol import (
    Metadata,
    Protocol,
    check_properties,
    check_writable,
    normalize_schema,
    protocol_for,
    schema_to_json,
)
from streamlake.protocol.assignment import assigned, check_row_tracking, unassigned
from streamlake.protocol.properties import column_mapping_mode, kept_properties, spelt


def create(
    log: Log,
    schema: pa.Schema,
    *,
    partition_by: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    name: str | None = None,
    description: str | None = None,
) -> CommitResult:
    """Create the table that ``log`` points at: a few requests, one commit.

    Raises:
        TableExistsError: There is one already.
        InvalidInputError: A type, name, partition column or property that a Delta table can't have.
        UnsupportedFeatureError: A property asks for a feature that is not supported; a constraint
            or generated column can't be computed here.
    """
    asked = spelt(properties or {})
    check_properties(asked)
    mapped = column_mapping_mode(asked) != "none"
    normal = unassigned(normalize_schema(schema, any_name=mapped))
    _check_partitions(normal, partition_by)
    protocol = protocol_for(normal, asked)
    metadata = assigned(
        protocol,
        Metadata(
            id=log.clock.new_id(),
            schema_string=schema_to_json(normal),
            partition_columns=tuple(partition_by),
            configuration=kept_properties(asked),
            created_time=log.clock.now_ms(),
            name=name,
            description=description,
        ),
        new_id=log.clock.new_id,
    )
    check_row_tracking(metadata.configuration)
    _check_supported(protocol, metadata, log.url)
    partitions = msgspec.json.encode(list(partition_by)).decode()
    return log.create(
        Transaction(
            operation="CREATE TABLE",
            operation_parameters={
                "isManaged": "false",
                "description": description or "",
                "partitionBy": partitions,
                "properties": msgspec.json.encode(metadata.configuration).decode(),
            },
            protocol=protocol,
            metadata=metadata,
            is_blind_append=True,
        )
    )


def _check_supported(protocol: Protocol, metadata: Metadata, where: str) -> None:
    """Refuse a table that could not be written afterwards."""
    try:
        check_writable(protocol, metadata, where=where)
        if has_rules(metadata.schema_string, metadata.configuration):
            table_rules(metadata.schema_string, metadata.configuration)
    except UnsupportedFeatureError as error:
        error.where = where
        error.remedy = "Correct it, or create the table without it."
        raise


def _check_partitions(schema: pa.Schema, partition_by: Sequence[str]) -> None:
    check_names("partition_by", partition_by)
    unknown = [column for column in partition_by if column not in schema.names]
    if unknown:
        raise InvalidInputError(
            f"Partition column {unknown[0]!r} is not in the schema.",
            found=f"columns {schema.names}",
            remedy="Partition by columns of the schema.",
        )
    nested = [c for c in partition_by if pa.types.is_nested(schema.field(c).type)]
    if nested:
        raise InvalidInputError(
            f"Partition column {nested[0]!r} has a nested type.",
            found=str(schema.field(nested[0]).type),
            remedy="Partition by columns of primitive types.",
        )
    if len(set(partition_by)) != len(partition_by):
        raise InvalidInputError(
            "A partition column is named twice.",
            found=str(partition_by),
            remedy="Name each column once.",
        )
    if partition_by:
        check_left_for_files(schema, partition_by)
