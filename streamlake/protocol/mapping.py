"""Column mapping: the names that people see and those in files and log (PROTOCOL.md, that section).

With a mapping, data files, partition values, statistics and clustering columns are spelt with the
*physical* name of every struct field, at every depth; the schema, ``partitionColumns`` and whatever
people say use the *logical* name. Without one they are the same. A column is found in a data file
by its physical name in the mode "name", by its Parquet field id in the mode "id".

Where a path goes through an array or a map it has ``element``, ``key`` or ``value`` in that place,
on both sides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NoReturn, TypeAlias, cast

import pyarrow as pa

from streamlake.errors import CorruptTableError, InvalidInputError, TableError
from streamlake.protocol import properties as props
from streamlake.protocol.actions import Metadata, Protocol
from streamlake.protocol.features import supports_reader_feature
from streamlake.protocol.json_bounds import Json
from streamlake.protocol.schema.codec import (
    Path,
    dotted,
    field_metadata,
    schema_from_json,
)

MappingMode: TypeAlias = Literal["none", "name", "id"]
"""``delta.columnMapping.mode``."""

COLUMN_ID = "delta.columnMapping.id"
"""Key of a field's metadata: its id, unique in the table."""
PHYSICAL_NAME = "delta.columnMapping.physicalName"
"""Key of a field's metadata: its name in files and log."""
NESTED_IDS = "delta.columnMapping.nested.ids"
"""Key of a field's metadata: the ids of the elements, keys and values below it, by their paths
(PROTOCOL.md, "Writer Requirements for IcebergCompatV2")."""

FIELD_ID = b"PARQUET:field_id"
"""Where Arrow keeps the Parquet field id in a field's metadata."""
_MAX_ID = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnMapping:
    """How the columns of a table are named in its files and its log."""

    mode: MappingMode
    logical: pa.Schema
    """The table's schema, as everyone outside sees it."""
    physical: pa.Schema
    """The same schema under the names of the data files, at every depth. The metadata of a field
    holds its Parquet field id under ``FIELD_ID`` where the table has given it one, and nothing
    else; layout and nullability are those of ``logical``, field by field."""

    @property
    def is_mapped(self) -> bool:
        """Whether logical and physical names may differ."""
        return self.mode != "none"

    def physical_name(self, column: str) -> str:
        """The physical name of a top-level column: the key of its statistics and partition values.

        Raises:
            InvalidInputError: The table has no such column.
        """
        return self.physical_path((column,))[0]

    def logical_name(self, column: str) -> str | None:
        """The logical name of a top-level column; None for a physical name that is not known.

        Unknown are those of columns that were dropped; the log may still hold them.
        """
        index = self.physical.get_field_index(column)
        return None if index < 0 else self.logical.field(index).name

    def physical_path(self, path: Sequence[str]) -> Path:
        """The physical names along a path of logical ones, exact in case.

        Raises:
            InvalidInputError: The table has no such column.
        """
        found = _translated(path, list(self.logical), list(self.physical))
        if found is None:
            raise InvalidInputError(
                f"The table has no column {dotted(tuple(path))!r}.",
                found=f"columns {', '.join(self.logical.names)}",
                remedy="Ask for columns that the table has.",
            )
        return found

    def logical_path(self, path: Sequence[str]) -> Path | None:
        """The logical names along a path of physical ones; None where the path is not known."""
        return _translated(path, list(self.physical), list(self.logical))


def column_mapping(protocol: Protocol, metadata: Metadata, *, where: str = "") -> ColumnMapping:
    """The mapping of a table's columns. Each schema is parsed once and then remembered.

    The property counts only where the protocol supports the feature for readers.

    Args:
        protocol: The table's.
        metadata: The table's.
        where: The table, for errors.

    Raises:
        CorruptTableError: An unknown mode; a field without a physical name; two fields of one
            struct with one physical name; in the mode "id" a field without an id, or two with one;
            or as ``schema_from_json``.
    """
    mode = "none"
    if supports_reader_feature(protocol, "columnMapping"):
        mode = metadata.configuration.get(props.COLUMN_MAPPING_MODE, "none").lower()
    try:
        return schema_mapping(metadata.schema_string, mode)
    except TableError as error:
        error.where = where
        raise


def physical_name(field: pa.Field[Any]) -> str | None:
    """The physical name that a field of a logical schema was given; None for none."""
    found = field_metadata(field).get(PHYSICAL_NAME)
    return found if isinstance(found, str) and found else None


def column_id(field: pa.Field[Any]) -> int | None:
    """The id that a field of a logical schema was given; None for none."""
    return _as_id(field_metadata(field).get(COLUMN_ID))


def max_column_id(schema: pa.Schema) -> int:
    """The highest id in a logical schema, nested ones included; 0 where there is none."""
    return max((number for _, number in _all_ids(list(schema), ())), default=0)


# -------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def schema_mapping(schema_json: str, mode: str) -> ColumnMapping:
    """The mapping of a schema's columns in a mode that the table is known to honour.

    Raises:
        CorruptTableError: As ``column_mapping``.
    """
    if mode not in {"none", "name", "id"}:
        _corrupt("The table maps its columns in a mode that does not exist.", repr(mode))
    logical = schema_from_json(schema_json)
    known = cast("MappingMode", mode)
    if known == "none":
        plain = pa.schema([_plain(field) for field in logical])
        return ColumnMapping(mode="none", logical=logical, physical=plain)
    physical = pa.schema(_physical_fields(list(logical), (), known))
    if known == "id":
        _check_ids(logical)
    return ColumnMapping(mode=known, logical=logical, physical=physical)


def _physical_fields(
    fields: list[pa.Field[Any]], path: Path, mode: MappingMode
) -> list[pa.Field[Any]]:
    found = [_physical_field(field, (*path, field.name), mode) for field in fields]
    names: set[str] = set()
    for logical, field in zip(fields, found, strict=True):
        if field.name in names:
            _corrupt(
                "Two columns have one physical name.",
                f"{field.name!r}, of column {dotted((*path, logical.name))!r} among others",
            )
        names.add(field.name)
    return found


def _physical_field(field: pa.Field[Any], path: Path, mode: MappingMode) -> pa.Field[Any]:
    name, number = physical_name(field), column_id(field)
    if name is None or (number is None and mode == "id"):
        missing = PHYSICAL_NAME if name is None else COLUMN_ID
        _corrupt("A column of a table with column mapping lacks its mapping.", path, missing)
    nested = field_metadata(field).get(NESTED_IDS)
    ids = nested if isinstance(nested, dict) else {}
    kind = _physical_type(field.type, path, mode, _Nested(ids, name))
    return pa.field(name, kind, nullable=field.nullable, metadata=_id_metadata(number))


@dataclass(frozen=True, slots=True)
class _Nested:
    """The ids of elements, keys and values below one field, and where in them one stands."""

    ids: dict[str, Json]
    at: str

    def below(self, part: str) -> _Nested:
        return _Nested(self.ids, f"{self.at}.{part}")

    @property
    def metadata(self) -> dict[bytes | str, bytes | str] | None:
        return _id_metadata(_as_id(self.ids.get(self.at)))


def _physical_type(
    kind: pa.DataType, path: Path, mode: MappingMode, nested: _Nested
) -> pa.DataType:
    def inner(part: str, field: pa.Field[Any]) -> pa.Field[Any]:
        below = nested.below(part)
        physical = _physical_type(field.type, (*path, part), mode, below)
        return pa.field(part, physical, nullable=field.nullable, metadata=below.metadata)

    if isinstance(kind, pa.StructType):
        return pa.struct(_physical_fields(list(kind), path, mode))
    if isinstance(kind, pa.ListType):
        return pa.list_(inner("element", kind.value_field))
    if isinstance(kind, pa.MapType):
        key: Any = inner("key", kind.key_field)  # the stubs know only types here
        return pa.map_(key, cast("Any", inner("value", kind.item_field)))
    return kind


def _plain(field: pa.Field[Any]) -> pa.Field[Any]:
    """The field without metadata, at every depth."""
    return pa.field(field.name, _plain_type(field.type), nullable=field.nullable)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if isinstance(kind, pa.StructType):
        return pa.struct([_plain(field) for field in kind])
    if isinstance(kind, pa.ListType):
        return pa.list_(_plain(kind.value_field))
    if isinstance(kind, pa.MapType):
        key: Any = _plain(kind.key_field)  # the stubs know only types here
        return pa.map_(key, cast("Any", _plain(kind.item_field)))
    return kind


def _as_id(value: Json) -> int | None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return cast("int", value) if whole and 0 <= cast("int", value) <= _MAX_ID else None


def _id_metadata(number: int | None) -> dict[bytes | str, bytes | str] | None:
    return None if number is None else {FIELD_ID: str(number).encode()}


def _check_ids(schema: pa.Schema) -> None:
    owners: dict[int, Path] = {}
    for path, number in _all_ids(list(schema), ()):
        other = owners.setdefault(number, path)
        if other != path:
            _corrupt("Two columns have one id.", f"{number}: {dotted(other)!r}, {dotted(path)!r}")


def _all_ids(fields: list[pa.Field[Any]], path: Path) -> Iterator[tuple[Path, int]]:
    for field in fields:
        here = (*path, field.name)
        number = column_id(field)
        if number is not None:
            yield here, number
        nested = field_metadata(field).get(NESTED_IDS)
        for key, value in (nested if isinstance(nested, dict) else {}).items():
            number = _as_id(value)
            if number is not None:
                yield (*here, key), number
        yield from _ids_inside(field.type, here)


def _ids_inside(kind: pa.DataType, path: Path) -> Iterator[tuple[Path, int]]:
    if isinstance(kind, pa.StructType):
        yield from _all_ids(list(kind), path)
    else:
        for part, inner in _parts(kind).items():
            yield from _ids_inside(inner.type, (*path, part))


def _parts(kind: pa.DataType) -> dict[str, pa.Field[Any]]:
    """What lies inside of an array or a map, by its name in paths."""
    if isinstance(kind, pa.ListType):
        return {"element": kind.value_field}
    if isinstance(kind, pa.MapType):
        return {"key": kind.key_field, "value": kind.item_field}
    return {}


def _translated(
    path: Sequence[str], given: list[pa.Field[Any]], wanted: list[pa.Field[Any]]
) -> Path | None:
    """The names along ``path`` in ``wanted``, the same fields as ``given`` under other names."""
    if not path:
        return ()
    for one, other in zip(given, wanted, strict=True):
        if one.name == path[0]:
            rest = _translated_inside(path[1:], one.type, other.type)
            return None if rest is None else (other.name, *rest)
    return None


def _translated_inside(path: Sequence[str], given: pa.DataType, wanted: pa.DataType) -> Path | None:
    if not path:
        return ()
    if isinstance(given, pa.StructType) and isinstance(wanted, pa.StructType):
        return _translated(path, list(given), list(wanted))
    inner = _parts(given).get(path[0])
    if inner is None:
        return None
    rest = _translated_inside(path[1:], inner.type, _parts(wanted)[path[0]].type)
    return None if rest is None else (path[0], *rest)


def _corrupt(what: str, found: Path | str, missing: str = "") -> NoReturn:
    where = found if isinstance(found, str) else f"column {dotted(found)!r} has no {missing}"
    raise CorruptTableError(
        what,
        found=where,
        remedy="A faulty writer made the metaData action; have the table's schema repaired.",
    )
