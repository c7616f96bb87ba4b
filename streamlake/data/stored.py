"""From the columns that a data file holds to those that the table has now.

A field of the table is found among those of the file at the same place (the top, or the matching
struct) by its name, or by its Parquet field id where the table maps columns by id; inside of arrays
and maps too. What is found is converted, what is not is null, and what nobody asks for is passed
over. A conversion is planned once for a file and then done for every batch of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, cast

import pyarrow as pa
import pyarrow.compute as pc

from streamlake.data.bounds import Column
from streamlake.data.cast import all_nullable, fits
from streamlake.errors import UnsupportedFeatureError
from streamlake.protocol.mapping import FIELD_ID
from streamlake.protocol.schema.codec import Path, dotted
from streamlake.protocol.schema.variant import VariantType

Convert: TypeAlias = "Callable[[pa.Array[Any]], pa.Array[Any]]"
"""From an array of the file to one of the table, of as many rows."""

_Field: TypeAlias = "pa.Field[Any]"
_Array: TypeAlias = "pa.Array[Any]"


class StoredMismatchError(ValueError):
    """The file's columns can't be the table's; the text says which and why."""


class Siblings:
    """The fields at one place of a file, for finding those of the table among them.

    Raises:
        StoredMismatchError: They are to be found by ids, and none has one.
    """

    def __init__(self, fields: Sequence[_Field], *, by_id: bool) -> None:
        self._fields = fields
        self._by_id = by_id
        self._places: dict[object, list[int]] = {}
        for place, field in enumerate(fields):
            key = field_id(field) if by_id else field.name
            self._places.setdefault(key, []).append(place)
        if by_id and self._places.keys() == {None}:
            raise StoredMismatchError(
                f"no Parquet field ids of {', '.join(field.name for field in fields)}; "
                "the table finds its columns by them"
            )

    def find(self, wanted: _Field, path: Path) -> int | None:
        """The place of the field that holds ``wanted``; None where the file has none.

        Raises:
            StoredMismatchError: There are several, or an id is needed and not known.
        """
        if not self._by_id:
            found = self._places.get(wanted.name) or self._folded.get(wanted.name.lower(), [])
        else:
            number = field_id(wanted)
            if number is None:
                raise StoredMismatchError(f"column {dotted(path)!r} of the table has no id")
            found = self._places.get(number, [])
        if len(found) > 1:
            names = ", ".join(repr(self._fields[place].name) for place in found)
            raise StoredMismatchError(f"several columns for {dotted(path)!r}: {names}")
        return found[0] if found else None

    @cached_property
    def _folded(self) -> dict[str, list[int]]:
        places: dict[str, list[int]] = {}
        for place, field in enumerate(self._fields):
            places.setdefault(field.name.lower(), []).append(place)
        return places


@dataclass(frozen=True, slots=True)
class Matcher:
    """How fields of the table are found in a file and become the table's."""

    by_id: bool
    """By Parquet field id; else by name, exact or, where there is none, whatever its case."""

    def siblings(self, fields: Sequence[_Field]) -> Siblings:
        """Fields of the file to find some among."""
        return Siblings(fields, by_id=self.by_id)

    def plan(
        self, stored: pa.DataType, wanted: pa.DataType, physical: pa.DataType, path: Path
    ) -> Convert | None:
        """How arrays of ``stored`` become ``wanted``; None where they are that already.

        Args:
            stored: Of the file.
            wanted: Of the table, by logical names; NOT NULL inside is left for others to check.
            physical: The same by the names and ids of files.
            path: Of the column, by logical names, for errors.

        Raises:
            StoredMismatchError: The types don't go together.
            UnsupportedFeatureError: A shredded variant.
        """
        if pa.types.is_null(wanted) or pa.types.is_null(stored):
            return _nulls(all_nullable(wanted))
        if isinstance(stored, pa.BaseExtensionType):
            inner = self.plan(stored.storage_type, wanted, physical, path)
            return lambda array: _through(inner, cast("Any", array).storage)
        if isinstance(wanted, VariantType):
            return _variant(stored, path)
        if pa.types.is_nested(wanted):
            return self._nested(stored, wanted, physical, path)
        if stored.equals(wanted):
            return None
        if not fits(stored, wanted, stored=True):
            raise StoredMismatchError(f"column {dotted(path)!r} is {stored}, not {wanted}")
        return _cast_to(wanted)

    def _nested(
        self, stored: pa.DataType, wanted: pa.DataType, physical: pa.DataType, path: Path
    ) -> Convert:
        if isinstance(wanted, pa.StructType) and isinstance(stored, pa.StructType):
            return self._struct(stored, wanted, cast("pa.StructType", physical), path)
        if isinstance(wanted, pa.MapType) and isinstance(stored, pa.MapType):
            return self._map(stored, wanted, cast("pa.MapType[Any, Any]", physical), path)
        if isinstance(wanted, pa.ListType):
            if isinstance(stored, pa.LargeListType | pa.FixedSizeListType):
                plain = pa.list_(stored.value_field)
                rest = self._nested(plain, wanted, physical, path)
                return lambda array: rest(array.cast(plain))
            if isinstance(stored, pa.ListType):
                return self._list(stored, wanted, cast("pa.ListType[Any]", physical), path)
        raise StoredMismatchError(f"column {dotted(path)!r} is {stored}, not {wanted}")

    def _struct(
        self, stored: pa.StructType, wanted: pa.StructType, physical: pa.StructType, path: Path
    ) -> Convert:
        kind = cast("pa.StructType", all_nullable(wanted))
        siblings = self.siblings(list(stored))
        children: list[Callable[[Any], _Array]] = []
        for i, field in enumerate(wanted):
            here = (*path, field.name)
            at = siblings.find(physical.field(i), here)
            if at is None:
                children.append(_nulls(kind.field(i).type))
            else:
                plan = self.plan(stored.field(at).type, field.type, physical.field(i).type, here)
                children.append(_child(at, plan))

        def convert(array: _Array) -> _Array:
            mask = array.is_null() if array.null_count else None
            return pa.StructArray.from_arrays(
                [child(array) for child in children], fields=list(kind), mask=mask
            )

        return convert

    def _list(
        self,
        stored: pa.ListType[Any],
        wanted: pa.ListType[Any],
        physical: pa.ListType[Any],
        path: Path,
    ) -> Convert:
        kind = all_nullable(wanted)
        element = self.plan(
            stored.value_type, wanted.value_type, physical.value_type, (*path, "element")
        )
        return lambda array: _rebuilt(array, kind, [_through(element, cast("Any", array).values)])

    def _map(
        self,
        stored: pa.MapType[Any, Any],
        wanted: pa.MapType[Any, Any],
        physical: pa.MapType[Any, Any],
        path: Path,
    ) -> Convert:
        kind = cast("pa.MapType[Any, Any]", all_nullable(wanted))
        key = self.plan(stored.key_type, wanted.key_type, physical.key_type, (*path, "key"))
        item = self.plan(stored.item_type, wanted.item_type, physical.item_type, (*path, "value"))

        def convert(array: _Array) -> _Array:
            entries = pa.StructArray.from_arrays(
                [
                    _through(key, cast("Any", array).keys),
                    _through(item, cast("Any", array).items),
                ],
                fields=[kind.key_field, kind.item_field],
            )
            return _rebuilt(array, kind, [entries])

        return convert


def field_id(field: _Field) -> int | None:
    """The Parquet field id of a file's field, or of one of a physical schema."""
    found = (field.metadata or {}).get(FIELD_ID)
    return int(found) if found is not None else None


def converted(column: Column, convert: Convert | None, kind: pa.DataType) -> Column:
    """A column of the file as the table has it, with everything inside of it nullable.

    Raises:
        pyarrow.ArrowException: A value can't be had in the table's type.
    """
    if convert is None:
        return column
    chunks = [convert(chunk) for chunk in column.chunks]
    chunked: Column = cast("Any", pa.chunked_array)(chunks, all_nullable(kind))
    return chunked


def _through(convert: Convert | None, array: _Array) -> _Array:
    return array if convert is None else convert(array)


def _cast_to(kind: pa.DataType) -> Convert:
    return lambda array: array.cast(kind)


def _nulls(kind: pa.DataType) -> Callable[[_Array], _Array]:
    return lambda array: cast("Any", pa.nulls)(len(array), kind)


def _child(at: int, convert: Convert | None) -> Callable[[Any], _Array]:
    return lambda array: _through(convert, array.field(at))


def _rebuilt(array: _Array, kind: pa.DataType, children: list[_Array]) -> _Array:
    """A list or map of the same shape around other children."""
    own = array.buffers()[:2]
    return pa.Array.from_buffers(kind, len(array), own, offset=array.offset, children=children)


def _variant(stored: pa.DataType, path: Path) -> Convert:
    names = [field.name for field in stored] if isinstance(stored, pa.StructType) else []
    if "typed_value" in names:
        raise UnsupportedFeatureError(
            f"Column {dotted(path)!r} is a shredded variant, which can't be read: it needs "
            "variantShredding.",
            found=f"{stored}",
            remedy="Rewrite the table without shredding: set delta.enableVariantShredding to "
            "false and rewrite its files with the engine that wrote them.",
        )
    if sorted(names) != ["metadata", "value"]:
        raise StoredMismatchError(f"column {dotted(path)!r} is {stored}, not a variant")
    kind = VariantType()
    fields = list(cast("pa.StructType", kind.storage_type))
    places = [names.index(field.name) for field in fields]

    def convert(array: Any) -> _Array:  # noqa: ANN401 - a struct array
        children = [array.field(place).cast(pa.binary()) for place in places]
        for child in children:
            if pc.any(pc.and_(pc.is_valid(array), pc.is_null(child))).as_py():
                raise pa.ArrowInvalid(f"column {dotted(path)!r} has half a variant")
        storage = pa.StructArray.from_arrays(
            [pc.fill_null(child, cast("Any", b"")) for child in children],
            fields=fields,
            mask=array.is_null(),
        )
        return pa.ExtensionArray.from_storage(kind, storage)

    return convert
