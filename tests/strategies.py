"""Hypothesis strategies for the values of the protocol, one place for all tests."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
from hypothesis import HealthCheck, settings

from streamlake.protocol import (
    MAX_INT64,
    Action,
    AddCdcFile,
    AddFile,
    CheckpointMetadata,
    CommitInfo,
    DeletionVector,
    DomainMetadata,
    Format,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    Sidecar,
    with_field_metadata,
)

# A busy machine is slow; that is no failure.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

Json = Any

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
"""Any Unicode but halves of surrogate pairs."""
names = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters=" ,;{}()\n\t="),
    min_size=1,
    max_size=8,
)
"""Names that a column may have."""
versions = st.integers(0, MAX_INT64)
int64s = st.integers(-(2**63), MAX_INT64)
maybe_int64s = st.none() | int64s

json_scalars: st.SearchStrategy[Json] = (
    st.none() | st.booleans() | int64s | st.floats(allow_nan=False, allow_infinity=False) | text
)
json_values: st.SearchStrategy[Json] = st.recursive(
    json_scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)

# -------------------------------------------------------------------------------------------------
# Actions

strings = st.dictionaries(text, text, max_size=3)
nullable_strings = st.dictionaries(text, st.none() | text, max_size=3)
features = st.none() | st.lists(text, max_size=3).map(tuple)
deletion_vectors = st.builds(
    DeletionVector,
    storage_type=st.sampled_from("uip"),
    path_or_inline_dv=text,
    size_in_bytes=st.integers(-(2**31), 2**31 - 1),
    cardinality=int64s,
    offset=st.none() | st.integers(0, 2**31 - 1),
)
add_files = st.builds(
    AddFile,
    path=text,
    partition_values=nullable_strings,
    size=int64s,
    modification_time=int64s,
    data_change=st.booleans(),
    stats=st.none() | text,
    tags=st.none() | nullable_strings,
    deletion_vector=st.none() | deletion_vectors,
    base_row_id=maybe_int64s,
    default_row_commit_version=maybe_int64s,
    clustering_provider=st.none() | text,
)
remove_files = st.builds(
    RemoveFile,
    path=text,
    data_change=st.booleans(),
    deletion_timestamp=maybe_int64s,
    extended_file_metadata=st.none() | st.booleans(),
    partition_values=st.none() | nullable_strings,
    size=maybe_int64s,
    stats=st.none() | text,
    tags=st.none() | nullable_strings,
    deletion_vector=st.none() | deletion_vectors,
)
metadatas = st.builds(
    Metadata,
    id=text,
    schema_string=text,
    format=st.builds(Format, provider=text, options=strings),
    partition_columns=st.lists(text, max_size=3).map(tuple),
    configuration=strings,
    created_time=maybe_int64s,
    name=st.none() | text,
    description=st.none() | text,
)
protocols = st.builds(
    Protocol,
    min_reader_version=st.integers(0, 9),
    min_writer_version=st.integers(0, 9),
    reader_features=features,
    writer_features=features,
)
set_transactions = st.builds(SetTransaction, app_id=text, version=int64s, last_updated=maybe_int64s)
commit_infos = st.builds(CommitInfo, fields=st.dictionaries(text, json_values, max_size=4))
actions: st.SearchStrategy[Action] = st.one_of(
    add_files,
    remove_files,
    metadatas,
    protocols,
    set_transactions,
    commit_infos,
    st.builds(
        AddCdcFile,
        path=text,
        partition_values=nullable_strings,
        size=int64s,
        data_change=st.booleans(),
        tags=st.none() | nullable_strings,
    ),
    st.builds(DomainMetadata, domain=text, configuration=text, removed=st.booleans()),
    st.builds(CheckpointMetadata, version=int64s, tags=st.none() | nullable_strings),
    st.builds(
        Sidecar,
        path=text,
        size_in_bytes=int64s,
        modification_time=int64s,
        tags=st.none() | nullable_strings,
    ),
)
commits = st.lists(actions, max_size=5)

# -------------------------------------------------------------------------------------------------
# Types and schemas

decimal_types = st.integers(1, 38).flatmap(
    lambda precision: st.builds(pa.decimal128, st.just(precision), st.integers(0, precision))
)
_PLAIN: list[pa.DataType] = [
    pa.string(),
    pa.int64(),
    pa.int32(),
    pa.int16(),
    pa.int8(),
    pa.float32(),
    pa.float64(),
    pa.bool_(),
    pa.binary(),
    pa.date32(),
    pa.timestamp("us", "UTC"),
    pa.timestamp("us"),
]
partition_types: st.SearchStrategy[pa.DataType] = st.sampled_from(_PLAIN) | decimal_types
"""Every primitive type of Delta with values of its own."""
user_only_types: st.SearchStrategy[pa.DataType] = st.sampled_from(
    [
        pa.uint8(),
        pa.uint16(),
        pa.uint32(),
        pa.uint64(),
        pa.float16(),
        pa.large_string(),
        pa.string_view(),
        pa.large_binary(),
        pa.binary_view(),
        pa.binary(16),
        pa.date64(),
        pa.timestamp("s"),
        pa.timestamp("ns", "Europe/Berlin"),
        pa.decimal256(38, 3),
        pa.decimal128(5, -2),
        pa.dictionary(pa.int16(), pa.large_string()),
        pa.run_end_encoded(pa.int32(), pa.uint8()),
    ]
)
"""Types of Arrow that only become some of Delta's."""


@st.composite
def struct_fields(draw: st.DrawFn, types: st.SearchStrategy[pa.DataType]) -> list[pa.Field[Any]]:
    """The fields of a struct or schema: names unique whatever their case."""
    chosen = draw(st.lists(names, min_size=1, max_size=4, unique_by=str.lower))
    fields = [pa.field(name, draw(types), nullable=draw(st.booleans())) for name in chosen]
    keys = st.dictionaries(text, json_values, max_size=2)
    return [with_field_metadata(field, draw(keys)) for field in fields]


def nested_types(
    leaves: st.SearchStrategy[pa.DataType],
) -> st.SearchStrategy[pa.DataType]:
    """``leaves`` and structs, arrays and maps of them."""
    return st.recursive(leaves, _nest, max_leaves=6)


def _nest(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    return st.one_of(
        struct_fields(inner).map(pa.struct),
        st.builds(_array, inner, st.booleans()),
        st.builds(_map, inner, inner, st.booleans()),
    )


def _array(element: pa.DataType, nullable: bool) -> pa.DataType:  # noqa: FBT001 - a drawn value
    return pa.list_(pa.field("element", element, nullable=nullable))


def _map(key: pa.DataType, value: pa.DataType, nullable: bool) -> pa.DataType:  # noqa: FBT001
    item: Any = pa.field("value", value, nullable=nullable)
    return pa.map_(key, item)


delta_types = nested_types(partition_types)
table_schemas = struct_fields(delta_types).map(pa.schema)
"""Schemas that a table can have, with column metadata."""
user_schemas = struct_fields(nested_types(partition_types | user_only_types)).map(pa.schema)
"""Schemas that a user may give for a table."""

# -------------------------------------------------------------------------------------------------
# Values of partition columns

_VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.string(): text,
    pa.int64(): int64s,
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int16(): st.integers(-(2**15), 2**15 - 1),
    pa.int8(): st.integers(-128, 127),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.bool_(): st.booleans(),
    pa.binary(): st.binary(max_size=20),
    pa.date32(): st.dates(date(1, 1, 1), date(9999, 12, 31)),
    pa.timestamp("us", "UTC"): st.datetimes(
        datetime(1, 1, 1),  # noqa: DTZ001 - the strategy adds the zone
        datetime(9999, 12, 31, 23, 59, 59, 999999),  # noqa: DTZ001 - as above
        timezones=st.just(UTC),
    ),
    pa.timestamp("us"): st.datetimes(),
}


def partition_values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Values that a partition column of a type may have, null among them."""
    if isinstance(kind, pa.Decimal128Type):
        bound = 10**kind.precision - 1
        scale = -kind.scale
        digits = st.integers(-bound, bound)
        return st.none() | digits.map(lambda unscaled: Decimal(f"{unscaled}e{scale}"))
    return st.none() | _VALUES[kind]


typed_partition_values = partition_types.flatmap(
    lambda kind: st.tuples(st.just(kind), partition_values(kind))
)
"""A type and a value of it."""

# -------------------------------------------------------------------------------------------------
# Paths

segments = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="/\\\0%"), min_size=1, max_size=8
).filter(lambda segment: segment not in {".", ".."})
paths = st.lists(segments, min_size=1, max_size=4).map("/".join)
"""Where a file may be in a table."""
