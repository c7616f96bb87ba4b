"""Action reconciliation: what a table holds once commits have been applied in order."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streamlake.errors import CorruptTableError
from streamlake.log.arrays import array_of, mask_of
from streamlake.log.checkpoint.reader import Checkpoint
from streamlake.log.commit import Commit
from streamlake.log.files import (
    FILE_TYPES,
    TOMBSTONE_TYPES,
    Column,
    FileColumns,
    FileList,
    FilePart,
    Mask,
    MemoryColumns,
    table_of,
    vectors_of,
)
from streamlake.protocol import (
    Action,
    AddFile,
    DomainMetadata,
    FileKey,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    canonical_path,
)

MOST_LOOSE_ACTIONS = 50_000
"""Adds and removes of commits that are kept as values; more become columns."""
_SPELT_APART = (b"%", b":", b"//", b"./", b"\\")
"""What a path may hold that can be spelt in several ways."""
_EMPTY_ENDS = ("/", "/.")
"""Ends of a path that name nothing."""
_FOLDERS = "(?s).*/"
"""All of a path but its last name; the names of folders may hold line ends."""


def canonical_key(key: FileKey, *, root_url: str) -> FileKey:
    """One spelling of a logical file, for comparing: a path may be encoded, absolute, relative."""
    return canonical_path(key[0], root_url=root_url), key[1]


@dataclass(slots=True)
class _Layer:
    """Adds or removes of one origin, less those that later actions replaced."""

    columns: FileColumns
    mask: Mask | None = None

    def hide(self, keys: Collection[FileKey], root_url: str) -> None:
        """Leave out the logical files of ``keys``."""
        hidden = find_rows(self.columns, keys, root_url=root_url)
        if hidden is not None:
            kept: Any = pc.invert(hidden)
            self.mask = kept if self.mask is None else _both(self.mask, kept)

    @property
    def part(self) -> FilePart:
        return FilePart(self.columns, self.mask)


class Replay:
    """The state of a table while actions are applied (PROTOCOL.md, "Action Reconciliation").

    The latest protocol, metadata, marker by app_id and domain win; an add or a remove replaces what
    was known of the same logical file. What a checkpoint holds stays in columns, which are read
    when they are needed; what the commits since have changed lies over it.
    """

    def __init__(
        self, root_url: str, *, checkpoint: Checkpoint | None = None, version: int = -1
    ) -> None:
        self.version = version
        self.base_version = -1 if checkpoint is None else version
        """The version of the checkpoint that it began with; -1 for none."""
        self.protocol: Protocol | None = None
        self.metadata: Metadata | None = None
        self.markers: dict[str, SetTransaction] = {}
        self.domains: dict[str, DomainMetadata] = {}
        self.checkpoint_actions = 0 if checkpoint is None else checkpoint.num_actions
        """Actions of the checkpoint that it began with; its small ones may be left out."""
        self.replayed_actions = 0
        """Adds and removes of the commits that were applied."""
        self._root_url = root_url
        self._adds: list[_Layer] = []
        self._removes: list[_Layer] = []
        self._loose: dict[FileKey, AddFile | RemoveFile] = {}
        self._unhidden: set[FileKey] = set()
        if checkpoint is not None:
            self._adds += [_Layer(columns) for columns in checkpoint.adds]
            self._removes += [_Layer(columns) for columns in checkpoint.removes]
            self.apply_actions(checkpoint.actions)

    @property
    def has_checkpoint(self) -> bool:
        """Whether it began with one."""
        return self.checkpoint_actions > 0

    @property
    def loose_actions(self) -> int:
        """How many adds and removes of commits are kept as values."""
        return len(self._loose)

    def apply(self, commit: Commit) -> None:
        """Apply the next commit."""
        self.apply_actions(commit.actions)
        self.version = commit.version

    def apply_actions(self, actions: Iterable[Action]) -> None:
        """Apply actions of one commit or checkpoint: removes first, for paths may be re-added."""
        adds: list[AddFile] = []
        for action in actions:
            match action:
                case AddFile():
                    adds.append(action)
                case RemoveFile():
                    self._put(action)
                case SetTransaction():
                    self.markers[action.app_id] = action
                case Metadata():
                    self.metadata = action
                case Protocol():
                    self.protocol = action
                case DomainMetadata():
                    self.domains[action.domain] = action
                case _:
                    pass
        for add in adds:
            self._put(add)
        if len(self._loose) > MOST_LOOSE_ACTIONS:
            self._seal()

    def files(self) -> FileList:
        """The logical files, in the order in which the log added them; reads their paths.

        Raises:
            CorruptTableError: The checkpoint is gone, has changed, or is garbled.
        """
        self._hide()
        loose = [action for action in self._loose.values() if isinstance(action, AddFile)]
        parts = [layer.part for layer in self._adds]
        if loose:
            parts.append(FilePart(MemoryColumns(table_of(loose, FILE_TYPES))))
        return FileList(parts)

    def tombstones(self) -> pa.Table:
        """The removed files, by the columns of ``TOMBSTONE_TYPES``.

        Raises:
            CorruptTableError: As ``files``.
        """
        return pa.concat_tables(list(self.tombstone_blocks()))

    def tombstone_blocks(self) -> Iterator[pa.Table]:
        """The removed files in blocks of bounded size, by the columns of ``TOMBSTONE_TYPES``.

        Raises:
            CorruptTableError: As ``files``.
        """
        self._hide()
        for layer in self._removes:
            yield from layer.part.blocks(TOMBSTONE_TYPES)
        loose = [action for action in self._loose.values() if isinstance(action, RemoveFile)]
        yield table_of(loose, TOMBSTONE_TYPES)

    def held(self, keys: Iterable[FileKey]) -> set[FileKey]:
        """Those of ``keys`` that name files of the table, as they were given."""
        self._hide()
        wanted = {key: self._canonical(key) for key in keys}
        found = {c for c in wanted.values() if isinstance(self._loose.get(c), AddFile)}
        unknown = set(wanted.values()) - set(self._loose)
        for layer in self._adds:
            rows = find_rows(layer.columns, unknown, root_url=self._root_url)
            if rows is not None:
                shown = rows if layer.mask is None else _both(rows, layer.mask)
                found |= set(_keys(layer.columns, shown, self._root_url).values())
        return {key for key, canonical in wanted.items() if canonical in found}

    def checked(self) -> tuple[Protocol, Metadata]:
        """The protocol and metadata, which every table has.

        Raises:
            CorruptTableError: The log holds none.
        """
        if self.protocol is None or self.metadata is None:
            missing = "protocol" if self.protocol is None else "metaData"
            raise CorruptTableError(
                f"The log has no {missing} action.",
                where=self._root_url,
                found=f"version {self.version} without one",
                remedy="The log is damaged or was written by a faulty writer; restore its files.",
            )
        return self.protocol, self.metadata

    def _canonical(self, key: FileKey) -> FileKey:
        return canonical_path(key[0], root_url=self._root_url), key[1]

    def _put(self, action: AddFile | RemoveFile) -> None:
        key = self._canonical(action.key)
        self._loose.pop(key, None)
        self.replayed_actions += 1
        self._loose[key] = action
        if self._adds:
            self._unhidden.add(key)

    def _hide(self) -> None:
        """Leave out of the layers what lies over them."""
        if self._unhidden:
            for layer in (*self._adds, *self._removes):
                layer.hide(self._unhidden, self._root_url)
            self._unhidden = set()

    def _seal(self) -> None:
        """Turn loose actions into columns."""
        self._hide()
        adds = [action for action in self._loose.values() if isinstance(action, AddFile)]
        removes = [action for action in self._loose.values() if isinstance(action, RemoveFile)]
        self._adds.append(_Layer(MemoryColumns(table_of(adds, FILE_TYPES))))
        self._removes.append(_Layer(MemoryColumns(table_of(removes, TOMBSTONE_TYPES))))
        self._loose = {}


def find_rows(columns: FileColumns, keys: Collection[FileKey], *, root_url: str) -> Mask | None:
    """Which rows are logical files of ``keys``, given in canonical form; None where none is."""
    if not keys or not columns.num_rows:
        return None
    paths: Any = columns.column("path")
    names = array_of(list({path for path, _ in keys}), pa.string())
    is_spelt_apart = _is_spelt_apart(paths)
    if is_spelt_apart:
        ends: Any = pc.replace_substring_regex(paths, pattern=_FOLDERS, replacement="")
        wanted = pc.replace_substring_regex(names, pattern=_FOLDERS, replacement="")
        unclear = pc.match_substring_regex(ends, pattern=r"%|^\.?$")
        maybe = _either(pc.is_in(ends, value_set=wanted), unclear)
    else:
        maybe = pc.is_in(paths, value_set=names)
    if not _any(maybe):
        return None
    if not is_spelt_apart and all(vector is None for _, vector in keys):
        vectors = columns.column("deletionVector")
        if vectors.null_count == len(vectors):
            return maybe
    rows = [row for row, key in _keys(columns, maybe, root_url).items() if key in keys]
    if not rows:
        return None
    found = bytearray(columns.num_rows)
    for row in rows:
        found[row] = True
    return pa.chunked_array([mask_of(found)])


def _keys(columns: FileColumns, mask: Mask, root_url: str) -> dict[int, FileKey]:
    """The canonical keys of the rows that ``mask`` leaves, by row."""
    rows: Any = pc.indices_nonzero(mask)
    paths: Any = columns.column("path").take(rows).to_pylist()
    vectors = vectors_of(columns.column("deletionVector").take(rows))
    return {
        row: (canonical_path(path, root_url=root_url), vector.unique_id if vector else None)
        for row, path, vector in zip(rows.to_pylist(), paths, vectors, strict=True)
    }


def _is_spelt_apart(paths: Column) -> bool:
    """Whether any path may be spelt in more than one way; in doubt it may.

    Looked for in the text of all paths together: ten times as fast as path by path.
    """
    has_folders = False
    for chunk in paths.chunks:
        data = chunk.buffers()[2]
        text = b"" if data is None else bytes(data)
        if any(part in text for part in _SPELT_APART):
            return True
        has_folders = has_folders or b"/" in text
    return has_folders and (
        _any(pc.starts_with(paths, "/"))
        or any(_any(pc.ends_with(paths, end)) for end in _EMPTY_ENDS)
    )


def _any(mask: Any) -> bool:  # noqa: ANN401 -- booleans in any Arrow form
    return pc.any(mask).as_py() is True


def _both(one: Any, two: Any) -> Mask:  # noqa: ANN401
    mask: Mask = pc.and_(one, two)
    return mask


def _either(one: Any, two: Any) -> Mask:  # noqa: ANN401
    mask: Mask = pc.or_(one, two)
    return mask
