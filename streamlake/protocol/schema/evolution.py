"""A table's schema changed: columns added, renamed, dropped, widened; what data asks for, merged.

Schemas are as ``schema_from_json`` gives them, with the metadata of their fields, which is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from streamlake.errors import InvalidInputError
from streamlake.protocol.schema.codec import Path, dotted, map_type, name_clash
from streamlake.protocol.schema.walk import retyped
from streamlake.protocol.schema.widening import widens, with_type_change

Fields: TypeAlias = "list[pa.Field[Any]]"


def with_columns(schema: pa.Schema, path: Path, new: Sequence[pa.Field[Any]]) -> pa.Schema:
    """The schema with ``new`` after the columns, or the fields of the struct at ``path``.

    Raises:
        InvalidInputError: There is no such struct, a name is taken, or a new field is NOT NULL.
    """
    required = [field.name for field in new if not field.nullable]
    if required:
        raise InvalidInputError(
            f"Column {dotted((*path, required[0]))!r} can't be added as NOT NULL.",
            found="rows that the table has would hold null there",
            remedy="Add it nullable, fill it, and set it NOT NULL with alter_column.",
        )

    def add(fields: Fields) -> Fields:
        together = [*fields, *new]
        clash = name_clash([field.name for field in together])
        if clash is not None:
            raise _taken((*path, clash[1]), clash[0])
        return together

    return _edited(schema, path, add)


def with_new_name(schema: pa.Schema, path: Path, name: str) -> pa.Schema:
    """The schema with the column or field at ``path`` called ``name``.

    Raises:
        InvalidInputError: There is no such column, or the name is taken.
    """
    if not isinstance(name, str) or not name:
        raise InvalidInputError(
            f"Column {dotted(path)!r} needs a name.", found=repr(name), remedy="Give it one."
        )

    def rename(fields: Fields) -> Fields:
        index = position(fields, path[-1], path)
        others = [field.name for i, field in enumerate(fields) if i != index]
        clash = name_clash([*others, name])
        if clash is not None:
            raise _taken((*path[:-1], name), clash[0])
        fields[index] = fields[index].with_name(name)
        return fields

    return _edited(schema, path[:-1], rename)


def without_column(schema: pa.Schema, path: Path) -> pa.Schema:
    """The schema without the column or field at ``path``.

    Raises:
        InvalidInputError: There is no such column, or it is the only one there.
    """

    def drop(fields: Fields) -> Fields:
        index = position(fields, path[-1], path)
        if len(fields) == 1:
            raise InvalidInputError(
                f"Column {dotted(path)!r} is the only one there, and can't be dropped.",
                remedy="Drop the struct that holds it, or keep it."
                if len(path) > 1
                else "A table needs a column.",
            )
        del fields[index]
        return fields

    return _edited(schema, path[:-1], drop)


def with_field(
    schema: pa.Schema, path: Path, change: Callable[[pa.Field[Any]], pa.Field[Any]]
) -> pa.Schema:
    """The schema with ``change`` applied to the column or field at ``path``.

    Raises:
        InvalidInputError: There is no such column.
    """

    def replace(fields: Fields) -> Fields:
        index = position(fields, path[-1], path)
        fields[index] = change(fields[index])
        return fields

    return _edited(schema, path[:-1], replace)


def field_at(schema: pa.Schema, path: Path) -> pa.Field[Any]:
    """The column or field at ``path``.

    Raises:
        InvalidInputError: There is no such column.
    """
    found: Fields = []

    def note(fields: Fields) -> Fields:
        found.append(fields[position(fields, path[-1], path)])
        return fields

    _edited(schema, path[:-1], note)
    return found[0]


def exact_path(schema: pa.Schema, path: Path) -> Path:
    """``path`` in the case that the schema has it in.

    Raises:
        InvalidInputError: There is no such column.
    """
    return _exact(list(schema), path, path)


def _exact(fields: Fields, path: Path, whole: Path) -> Path:
    if not path:
        return ()
    field = fields[position(fields, path[0], whole)]
    return field.name, *_exact_inside(field.type, path[1:], whole)


def _exact_inside(kind: pa.DataType, path: Path, whole: Path) -> Path:
    if not path:
        return ()
    if isinstance(kind, pa.StructType):
        return _exact(list(kind), path, whole)
    if isinstance(kind, pa.ListType) and path[0] == "element":
        return "element", *_exact_inside(kind.value_type, path[1:], whole)
    if isinstance(kind, pa.MapType) and path[0] in {"key", "value"}:
        inner = kind.key_type if path[0] == "key" else kind.item_type
        return path[0], *_exact_inside(inner, path[1:], whole)
    raise _nothing_inside(kind, whole)


def position(fields: Sequence[pa.Field[Any]], name: str, path: Path) -> int:
    """The index of a field by its name, in whatever case.

    Raises:
        InvalidInputError: There is none.
    """
    for i, field in enumerate(fields):
        if field.name == name or field.name.lower() == name.lower():
            return i
    raise InvalidInputError(
        f"The table has no column {dotted(path)!r}.",
        found=f"{', '.join(field.name for field in fields)}",
        remedy="Name a column that the table has; fields of structs after a dot, names that hold a "
        "dot in backticks.",
    )


def _edited(schema: pa.Schema, path: Path, edit: Callable[[Fields], Fields]) -> pa.Schema:
    return pa.schema(_edited_fields(list(schema), path, path, edit))


def _edited_fields(
    fields: Fields, path: Path, whole: Path, edit: Callable[[Fields], Fields]
) -> Fields:
    """The fields with those of the struct at ``path`` below them edited."""
    if not path:
        return edit(fields)
    index = position(fields, path[0], whole)
    field = fields[index]
    fields[index] = retyped(field, _edited_type(field.type, path[1:], whole, edit))
    return fields


def _edited_type(
    kind: pa.DataType, path: Path, whole: Path, edit: Callable[[Fields], Fields]
) -> pa.DataType:
    if isinstance(kind, pa.StructType):
        return pa.struct(_edited_fields(list(kind), path, whole, edit))
    part = path[0] if path else ""
    if isinstance(kind, pa.ListType) and part == "element":
        element = _edited_type(kind.value_type, path[1:], whole, edit)
        return pa.list_(pa.field("element", element, nullable=kind.value_field.nullable))
    if isinstance(kind, pa.MapType) and part in {"key", "value"}:
        key, value = kind.key_type, kind.item_type
        if part == "key":
            key = _edited_type(key, path[1:], whole, edit)
        else:
            value = _edited_type(value, path[1:], whole, edit)
        return map_type(key, value, nullable=kind.item_field.nullable)
    raise _nothing_inside(kind, whole)


def _nothing_inside(kind: pa.DataType, whole: Path) -> InvalidInputError:
    remedy = "Name a struct: other types have no fields."
    if isinstance(kind, pa.ListType | pa.MapType):
        remedy = (
            "An element, a key or a value has no name; it changes with the type of the whole "
            "column. Structs in them are reached by `element`, `key` or `value`."
        )
    return InvalidInputError(
        f"There are no fields inside of {dotted(whole)!r}.", found=str(kind), remedy=remedy
    )


def _taken(path: Path, other: str) -> InvalidInputError:
    return InvalidInputError(
        f"The table has a column {dotted((*path[:-1], other))!r} already.",
        found=f"{path[-1]!r}; names that differ only by case are one name",
        remedy="Choose another name.",
    )


# -------------------------------------------------------------------------------------------------
# Merging


def merged_schema(schema: pa.Schema, given: pa.Schema, *, widen: bool) -> pa.Schema:
    """The least schema that holds ``schema`` and, as far as it may, data of ``given``.

    Columns and nested fields that are new come last, nullable; a void column takes the type that
    is given; types become wider where ``widen`` allows it. What does not fit nevertheless stays as
    the table has it, for whoever conforms the data to tell.

    Args:
        schema: The table's.
        given: The data's, as ``normalize_schema`` gives it.
        widen: Whether columns may change their types (``delta.enableTypeWidening``).
    """
    return pa.schema(_merged_fields(list(schema), list(given), widen=widen))


def retyped_to(field: pa.Field[Any], kind: pa.DataType) -> pa.Field[Any]:
    """The field with another type, wherever inside of it the difference is.

    Fields of structs are neither added nor dropped.

    Raises:
        InvalidInputError: It is no type that a column of such a type may be widened to.
    """
    changed = _merged_field(field, pa.field(field.name, kind), widen=True, by_itself=False)
    if not changed.type.equals(kind):
        raise InvalidInputError(
            f"Column {field.name!r} can't become {kind}.",
            found=str(field.type),
            remedy="Integers may become wider ones, doubles or decimals; floats doubles; dates "
            "timestamps without a zone; decimals wider ones. Add a column for anything else.",
        )
    return changed


def _merged_fields(fields: Fields, given: Fields, *, widen: bool, by_itself: bool = True) -> Fields:
    by_name = {field.name: field for field in given}
    known = {field.name.lower() for field in fields}
    merged = [
        _merged_field(field, by_name[field.name], widen=widen, by_itself=by_itself)
        if field.name in by_name
        else field
        for field in fields
    ]
    new = [_nullable(field) for field in given if field.name.lower() not in known]
    return [*merged, *new]


def _merged_field(
    field: pa.Field[Any], given: pa.Field[Any], *, widen: bool, by_itself: bool
) -> pa.Field[Any]:
    merge = _Merge(widen, by_itself, [])
    merged = retyped(field, merge.type(field.type, given.type, ()))
    for path, before, after in merge.changes:
        merged = with_type_change(merged, path, before, after)
    return merged


@dataclass(frozen=True, slots=True)
class _Merge:
    """The types of one struct field, merged; what changed of them is noted at that field."""

    widen: bool
    by_itself: bool
    changes: list[tuple[Path, pa.DataType, pa.DataType]]

    def type(self, kind: pa.DataType, given: pa.DataType, path: Path) -> pa.DataType:
        if pa.types.is_null(kind):
            return given
        if isinstance(kind, pa.StructType) and isinstance(given, pa.StructType):
            return pa.struct(
                _merged_fields(list(kind), list(given), widen=self.widen, by_itself=self.by_itself)
            )
        if isinstance(kind, pa.ListType) and isinstance(given, pa.ListType):
            element = self.type(kind.value_type, given.value_type, (*path, "element"))
            return pa.list_(pa.field("element", element, nullable=kind.value_field.nullable))
        if isinstance(kind, pa.MapType) and isinstance(given, pa.MapType):
            key = self.type(kind.key_type, given.key_type, (*path, "key"))
            value = self.type(kind.item_type, given.item_type, (*path, "value"))
            return map_type(key, value, nullable=kind.item_field.nullable)
        if self.widen and widens(kind, given, by_itself=self.by_itself):
            self.changes.append((path, kind, given))
            return given
        return kind


def _nullable(field: pa.Field[Any]) -> pa.Field[Any]:
    """The field, and all inside of it, nullable: rows that are there already lack it."""
    return pa.field(field.name, _nullable_type(field.type), metadata=field.metadata)


def _nullable_type(kind: pa.DataType) -> pa.DataType:
    if isinstance(kind, pa.StructType):
        return pa.struct([_nullable(field) for field in kind])
    if isinstance(kind, pa.ListType):
        return pa.list_(pa.field("element", _nullable_type(kind.value_type)))
    if isinstance(kind, pa.MapType):
        return map_type(
            _nullable_type(kind.key_type), _nullable_type(kind.item_type), nullable=True
        )
    return kind
