"""What the columns of a query must be before a sink can write them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    DataType,
    GeographyType,
    GeometryType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
    VariantType,
)

import streamlake as sl

POSITION_TYPES: Mapping[str, tuple[type[DataType], ...]] = {
    "topic": (StringType,),
    "partition": (IntegerType, LongType),
    "offset": (IntegerType, LongType),
}
"""The types that each column of a row's position in Kafka may have."""


def table_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema that a table made for these columns gets.

    Raises:
        InvalidInputError: A column of a type that Spark hands over as a struct of its bytes.
    """
    for name, kind in _leaves("", schema):
        if isinstance(kind, VariantType | GeometryType | GeographyType):
            raise sl.InvalidInputError(
                f"Column {name!r} has a type that the table can't have.",
                found=kind.simpleString(),
                remedy="Turn it into a string, a binary or columns of its own: to_json for a "
                "variant, ST_AsBinary for a shape.",
            )
    return to_arrow_schema(schema, timezone="UTC")


def check_position(schema: StructType) -> None:
    """Refuse rows that can't say where in Kafka they come from.

    Raises:
        InvalidInputError: A column of the position is missing, there twice or of another type.
    """
    for name, needed in POSITION_TYPES.items():
        kinds = [field.dataType for field in schema if field.name == name]
        if len(kinds) == 1 and isinstance(kinds[0], needed):
            continue
        found = " and ".join(kind.simpleString() for kind in kinds)
        raise sl.InvalidInputError(
            'markers="kafka" needs the columns topic, partition and offset, each once and as '
            "Kafka's source gives it.",
            found=f"{name} is {found}, not {' or '.join(kind().simpleString() for kind in needed)}"
            if kinds
            else f"missing: {name}",
            remedy="Keep them as they are in the rows, and in the table; what is made of them goes "
            "into other columns.",
        )


def _leaves(name: str, kind: DataType) -> Iterator[tuple[str, DataType]]:
    """Each type with nothing nested in it, by the dotted name of its column."""
    nested: dict[str, DataType] = {}
    if isinstance(kind, StructType):
        nested = {field.name: field.dataType for field in kind}
    elif isinstance(kind, ArrayType):
        nested = {"element": kind.elementType}
    elif isinstance(kind, MapType):
        nested = {"key": kind.keyType, "value": kind.valueType}
    else:
        yield name, kind
    for inner, part in nested.items():
        yield from _leaves(f"{name}.{inner}" if name else inner, part)
