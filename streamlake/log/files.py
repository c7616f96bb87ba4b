"""The files of a table by column: Arrow inside, AddFile values where they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Any, Protocol, TypeAlias, overload

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from streamlake.arguments import names_of
from streamlake.errors import InvalidInputError
from streamlake.log.arrays import STRING_MAP, array_of
from streamlake.protocol import AddFile, DeletionVector, RemoveFile

Column: TypeAlias = "pa.ChunkedArray[Any]"
Mask: TypeAlias = "pa.ChunkedArray[Any]"

_VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
FILE_TYPES: dict[str, pa.DataType] = {
    "path": pa.string(),
    "partitionValues": STRING_MAP,
    "size": pa.int64(),
    "modificationTime": pa.int64(),
    "dataChange": pa.bool_(),
    "stats": pa.string(),
    "tags": STRING_MAP,
    "deletionVector": _VECTOR,
    "baseRowId": pa.int64(),
    "defaultRowCommitVersion": pa.int64(),
    "clusteringProvider": pa.string(),
}
"""The columns of an ``add`` by their names in the log (PROTOCOL.md, "Add File and Remove File")."""
TOMBSTONE_TYPES: dict[str, pa.DataType] = {
    "path": pa.string(),
    "deletionTimestamp": pa.int64(),
    "dataChange": pa.bool_(),
    "extendedFileMetadata": pa.bool_(),
    "partitionValues": STRING_MAP,
    "size": pa.int64(),
    "deletionVector": _VECTOR,
    "baseRowId": pa.int64(),
    "defaultRowCommitVersion": pa.int64(),
}
"""The columns of a ``remove`` that a checkpoint keeps."""
_ATTRIBUTES = {
    field.encode_name: field.name
    for kind in (AddFile, RemoveFile)
    for field in msgspec.structs.fields(kind)
}
_ALWAYS = ("path", "partitionValues", "size", "modificationTime", "dataChange", "stats")
"""The columns that nearly every file has, in the order of AddFile's fields."""
_SELDOM = tuple(name for name in FILE_TYPES if name not in _ALWAYS)
REQUIRED_COLUMNS = frozenset({"path", "partitionValues", "size", "modificationTime"})
"""Those of ``FILE_TYPES`` that are never null."""


class FileColumns(Protocol):
    """Actions of one origin (a checkpoint, commits) by column, in the order of the log."""

    @property
    def num_rows(self) -> int:
        """How many there are."""

    def column(self, name: str) -> Column:
        """One column, whole. Narrow ones are kept once they are read."""

    def blocks(self, names: Iterable[str]) -> Iterator[pa.Table]:
        """Columns in blocks of bounded size, read anew unless they are held."""


@dataclass(frozen=True, slots=True)
class MemoryColumns:
    """Columns that are held."""

    table: pa.Table

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return self.table.num_rows

    def column(self, name: str) -> Column:
        """One column, whole."""
        return self.table.column(name)

    def blocks(self, names: Iterable[str]) -> Iterator[pa.Table]:
        """All of it in one block."""
        yield self.table.select(list(names))


@dataclass(frozen=True, eq=False)
class FilePart:
    """Rows of one origin, or those of them that a mask leaves."""

    columns: FileColumns
    mask: Mask | None = None

    @cached_property
    def num_rows(self) -> int:
        """How many rows are left."""
        if self.mask is None:
            return self.columns.num_rows
        kept: Any = pc.sum(self.mask)
        return int(kept.as_py() or 0)

    def column(self, name: str) -> Column:
        """One column of the rows that are left."""
        column = self.columns.column(name)
        return column if self.mask is None else column.filter(self.mask)

    def blocks(self, names: Iterable[str]) -> Iterator[pa.Table]:
        """Columns of the rows that are left, block by block."""
        start = 0
        for block in self.columns.blocks(names):
            stop = start + block.num_rows
            yield block if self.mask is None else block.filter(self.mask.slice(start, stop - start))
            start = stop

    def filtered(self, mask: Mask) -> FilePart:
        """The rows that are left and that ``mask``, one value for each of them, leaves too."""
        whole: Any = pc.and_kleene(mask, pc.is_valid(mask))  # null counts as false
        if self.mask is not None:
            mine = self.mask.combine_chunks()
            whole = pa.chunked_array([pc.replace_with_mask(mine, mine, whole.combine_chunks())])
        return FilePart(self.columns, whole)


class FileList(Sequence[AddFile]):
    """Logical files of a table in the order in which the log added them; it never changes.

    Held by column: counting, ``column`` and ``filter`` make no Python object a file. An iteration
    holds one block at a time; an index reads every column whole.
    """

    __slots__ = ("_length", "_parts")

    def __init__(self, parts: Iterable[FilePart] = ()) -> None:
        self._parts = tuple(part for part in parts if part.num_rows)
        self._length = sum(part.num_rows for part in self._parts)

    @classmethod
    def from_actions(cls, adds: Iterable[AddFile]) -> FileList:
        """The files of ``adds``."""
        return cls([FilePart(MemoryColumns(table_of(tuple(adds), FILE_TYPES)))])

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[AddFile]:
        for part in self._parts:
            for block in part.blocks(FILE_TYPES):
                yield from adds_of(block)

    @overload
    def __getitem__(self, index: int) -> AddFile: ...
    @overload
    def __getitem__(self, index: slice) -> FileList: ...
    def __getitem__(self, index: int | slice) -> AddFile | FileList:
        if isinstance(index, slice):
            rows = self.to_arrow().take(list(range(*index.indices(self._length))))
            return FileList([FilePart(MemoryColumns(rows))])
        start = range(self._length)[index]
        for part in self._parts:
            if start < part.num_rows:
                row = [part.column(name).slice(start, 1) for name in FILE_TYPES]
                return adds_of(pa.Table.from_arrays(row, names=list(FILE_TYPES)))[0]
            start -= part.num_rows
        raise IndexError(index)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str | bytes):
            return NotImplemented
        return len(self) == len(other) and all(
            mine == theirs for mine, theirs in zip(self, other, strict=True)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"FileList({self._length} files)"

    def column(self, name: str) -> Column:
        """One column, a value a file, by the log's names; reads what is not held yet.

        Args:
            name: One of ``path``, ``partitionValues``, ``size``, ``modificationTime``,
                ``dataChange``, ``stats``, ``tags``, ``deletionVector``, ``baseRowId``,
                ``defaultRowCommitVersion``, ``clusteringProvider``.

        Raises:
            InvalidInputError: There is no such column.
            CorruptTableError: The checkpoint that holds it is gone, has changed, or is garbled.
        """
        _check_column(name)
        chunks: Any = [chunk for part in self._parts for chunk in part.column(name).chunks]
        kind: Any = FILE_TYPES[name]
        column: Column = pa.chunked_array(chunks, type=kind)
        return column

    def blocks(self, names: Iterable[str]) -> Iterator[pa.Table]:
        """Columns in blocks of bounded size, one after the other: for passing over them once.

        Raises:
            InvalidInputError: There is no such column.
        """
        names = tuple(names)
        for name in names:
            _check_column(name)
        for part in self._parts:
            yield from part.blocks(names)

    def to_arrow(self, columns: Iterable[str] | None = None) -> pa.Table:
        """The columns, or those that are named as for ``column``, as one table.

        Raises:
            InvalidInputError: There is no such column.
        """
        names = tuple(FILE_TYPES if columns is None else names_of("columns", columns))
        blocks = list(self.blocks(names))
        schema = pa.schema([(name, FILE_TYPES[name]) for name in names])
        return pa.concat_tables([pa.Table.from_batches([], schema), *blocks])

    def filter(self, mask: pa.Array[Any] | Column) -> FileList:
        """The files for which ``mask``, one boolean for each, is true; null counts as false.

        Raises:
            InvalidInputError: It is no array of booleans, or of another length.
        """
        if not isinstance(mask, pa.Array | pa.ChunkedArray) or (
            not pa.types.is_boolean(mask.type) or len(mask) != self._length
        ):
            raise InvalidInputError(
                "A mask must be an Arrow array with one boolean for each file.",
                found=f"{_shape(mask)}; {self._length} files",
                remedy="Make it of columns of these files, as in "
                'files.filter(pyarrow.compute.less(files.column("size"), 1000)).',
            )
        whole = mask if isinstance(mask, pa.ChunkedArray) else pa.chunked_array([mask], pa.bool_())
        parts: list[FilePart] = []
        start = 0
        for part in self._parts:
            parts.append(part.filtered(whole.slice(start, part.num_rows)))
            start += part.num_rows
        return FileList(parts)

    @property
    def size_bytes(self) -> int:
        """The size of all files together."""
        return int(pc.sum(self.column("size")).as_py() or 0)


def _check_column(name: object) -> None:
    if name not in FILE_TYPES:
        raise InvalidInputError(
            f"Files have no column {name!r}.",
            found=f"columns {', '.join(FILE_TYPES)}",
            remedy="Name one of these.",
        )


def _shape(mask: object) -> str:
    if isinstance(mask, pa.Array | pa.ChunkedArray):
        return f"{len(mask)} values of the type {mask.type}"
    return f"a {type(mask).__name__}"


def table_of(actions: Sequence[AddFile | RemoveFile], types: Mapping[str, pa.DataType]) -> pa.Table:
    """Actions by column; ``types`` names columns as the log does."""
    columns = [
        array_of([get(action) for action in actions], kind)
        for get, kind in zip(map(_getter, types), types.values(), strict=True)
    ]
    return pa.Table.from_arrays(columns, names=list(types))


def _getter(name: str) -> Callable[[Any], Any]:
    attribute = _ATTRIBUTES[name]
    if name == "deletionVector":
        return lambda action: msgspec.to_builtins(getattr(action, attribute))
    return attrgetter(attribute)


def adds_of(block: pa.Table) -> list[AddFile]:
    """The rows of a table of ``FILE_TYPES`` as values."""
    names = [*_ALWAYS, *(name for name in _SELDOM if _has_values(block.column(name)))]
    columns = [_values(block.column(name)) for name in names]
    if len(names) == len(_ALWAYS):
        return list(map(AddFile, *columns))
    attributes = [_ATTRIBUTES[name] for name in names]
    return [
        AddFile(**dict(zip(attributes, row, strict=True))) for row in zip(*columns, strict=True)
    ]


def vectors_of(column: Column) -> list[DeletionVector | None]:
    """Deletion vectors as values."""
    if column.null_count == len(column):
        return [None] * len(column)
    return [
        None
        if row is None or row["storageType"] is None
        else DeletionVector(
            storage_type=row["storageType"],
            path_or_inline_dv=row["pathOrInlineDv"],
            size_in_bytes=row["sizeInBytes"],
            cardinality=row["cardinality"],
            offset=row["offset"],
        )
        for row in column.to_pylist()
    ]


def _has_values(column: Column) -> bool:
    return column.null_count < len(column)


def _values(column: Column) -> list[Any]:
    if pa.types.is_boolean(column.type):
        return [value is True for value in column.to_pylist()]
    if not _has_values(column):
        return [None] * len(column)
    if pa.types.is_map(column.type):
        return [value for chunk in column.chunks for value in _dicts(chunk)]
    if pa.types.is_struct(column.type):
        return list(vectors_of(column))
    return column.to_pylist()


def _dicts(array: Any) -> list[dict[str, str | None] | None]:  # noqa: ANN401 -- a MapArray
    offsets = array.offsets.to_pylist()
    first, last = offsets[0], offsets[-1]
    if first == last and not array.null_count:
        return [{}] * len(array)
    keys = array.keys.slice(first, last - first).to_pylist()
    items = array.items.slice(first, last - first).to_pylist()
    pairs = list(zip(keys, items, strict=True))
    return [
        dict(pairs[start - first : stop - first]) if valid else None
        for start, stop, valid in zip(
            offsets, offsets[1:], array.is_valid().to_pylist(), strict=False
        )
    ]
