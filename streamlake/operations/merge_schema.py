"""Bring a table's schema to what data needs: new columns, new fields, wider types."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import pyarrow as pa

from streamlake.data.cast import fits
from streamlake.data.conform import check_fits
from streamlake.log import CommitResult, Head, Log
from streamlake.operations.alter import as_json, change_metadata
from streamlake.operations.anew import anew
from streamlake.protocol import (
    Metadata,
    Protocol,
    check_writable,
    column_mapping,
    normalize_schema,
    schema_from_json,
    schema_to_json,
    upgraded_protocol,
)
from streamlake.protocol import properties as props
from streamlake.protocol.assignment import assigned, plain_columns
from streamlake.protocol.schema.evolution import merged_schema


@dataclass(frozen=True, slots=True)
class Evolution:
    """What a table becomes so that data fits."""

    head: Head
    """What the table is before."""
    metadata: Metadata
    protocol: Protocol | None
    """None where it may stay as it is."""


def evolution(log: Log, given: pa.Schema) -> Evolution | None:
    """What the table must become to take data of ``given``; None where it may stay as it is.

    Judged by the newest metadata: where those that the handle knows would have to change it looks
    for newer ones, at one request, for somebody else may have changed them already.

    Raises:
        InvalidInputError: A new column has a name or type that a table can't have.
        UnsupportedFeatureError: A new column needs a feature that is not supported.
    """
    if _merged(log.head, given, log.url) is None:
        return None
    head = log.refresh()
    schema = _merged(head, given, log.url)
    if schema is None:
        return None
    before = head.metadata
    after = msgspec.structs.replace(before, schema_string=schema_to_json(schema))
    protocol = upgraded_protocol(head.protocol, before, after)
    after = assigned(protocol or head.protocol, after, new_id=log.clock.new_id)
    check_writable(protocol or head.protocol, after, where=log.url)
    return Evolution(head, after, protocol)


def merge_schema(log: Log, given: pa.Schema) -> CommitResult:
    """Commit what the table must become to take data of ``given``; nothing where it fits already.

    Columns and nested fields that the table lacks are added, nullable; types become wider where
    ``delta.enableTypeWidening`` is set. What the table has and ``given`` lacks stays.

    Raises:
        SchemaMismatchError: A column has another type than the table's, which can't become it, or
            a name that differs by case. Nothing was committed.
        InvalidInputError: A new column has a name or type that a table can't have.
        UnsupportedFeatureError: A new column needs a feature that is not supported.
        MetadataChangedError: Others changed the metadata again and again.
    """
    normalize_schema(given, any_name=True)  # what is no schema at all is told here

    def merge() -> CommitResult:
        change = evolution(log, given)
        _check_merged(given, log.head.metadata if change is None else change.metadata, log.url)
        if change is None:
            return CommitResult(version=log.head.version, already_committed=True)
        return change_metadata(
            log,
            change.head,
            change.metadata,
            operation="ADD COLUMNS",
            parameters={"columns": as_json(given.names), "mergeSchema": "true"},
        )

    return anew(merge)


def _check_merged(given: pa.Schema, metadata: Metadata, where: str) -> None:
    """Refuse data that what the table becomes does not take either."""
    asked = {name.lower() for name in given.names}
    schema = schema_from_json(metadata.schema_string, where=where)
    check_fits(given, pa.schema([field for field in schema if field.name.lower() in asked]))


def _merged(head: Head, given: pa.Schema, where: str) -> pa.Schema | None:
    """The table's schema merged with that of data; None where nothing is to be merged."""
    schema = schema_from_json(head.metadata.schema_string, where=where)
    known = {field.name: field.type for field in schema}
    news = [f for f in given if f.name not in known or not fits(f.type, known[f.name])]
    if not news:
        return None
    mapped = column_mapping(head.protocol, head.metadata, where=where).is_mapped
    asked = plain_columns(normalize_schema(pa.schema(news), any_name=mapped))
    widen = props.flag(head.metadata.configuration, props.ENABLE_TYPE_WIDENING)
    merged = merged_schema(schema, asked, widen=widen)
    return None if merged.equals(schema, check_metadata=True) else merged
