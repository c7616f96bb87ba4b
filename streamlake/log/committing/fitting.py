"""Whether data files that are staged fit metadata which came after them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import msgspec

from streamlake.log.committing.transaction import Transaction
from streamlake.protocol import Metadata, Protocol, schema_from_json, supports_reader_feature
from streamlake.protocol.properties import COLUMN_MAPPING_MODE, constraint_name, is_constraint

Path: TypeAlias = tuple[str, ...]

_PHYSICAL_NAME = "delta.columnMapping.physicalName"
_TYPE_CHANGES = "delta.typeChanges"
_RULES = ("delta.invariants", "delta.generationExpression", "delta.identity.", "__CHAR_VARCHAR")
"""Beginnings of a field's metadata keys that say which values the field may have."""


@dataclass(frozen=True, slots=True)
class _Column:
    """A column, a nested field, an element, a key or a value."""

    type: str
    """A primitive type's name, or "struct", "array", "map"."""
    nullable: bool
    rules: Mapping[str, Any] = field(default_factory=dict)
    was: frozenset[str] = frozenset()
    """Types that it had before it was widened (PROTOCOL.md, "Type Widening")."""


def misfits(staged: Transaction, protocol: Protocol, metadata: Metadata) -> list[str]:
    """What keeps the transaction's data files from being files of the table as it is now.

    Files fit where the change could as well have been made after them: columns that came and may be
    null, columns that were renamed or, under a column mapping, dropped, types that were widened.
    They do not fit a rule that nobody has checked their rows against: a constraint, an invariant,
    NOT NULL, a generated column; nor another type or partitioning.

    Returns:
        Each misfit as a phrase; nothing where they fit.
    """
    if staged.staged_table_id not in {None, metadata.id}:
        return [f"the table was made anew: its id is {metadata.id}, not {staged.staged_table_id}"]
    if staged.staged_schema is None:
        return [] if not staged.adds else ["it is not known under which schema they were written"]
    schema_from_json(metadata.schema_string)  # raises where it can't be one
    was = staged.staged_configuration or {}
    then = _Written(staged.staged_schema, staged.staged_partitions, _mode(protocol, was))
    mode = _mode(protocol, metadata.configuration)
    now = _Written(metadata.schema_string, metadata.partition_columns, mode)
    return [
        *_mapping_misfits(then.mode, now.mode),
        *_partition_misfits(then, now),
        *_column_misfits(now.columns, then.columns, mapped=now.mode != "none"),
        *_constraint_misfits(metadata.configuration, was),
    ]


@dataclass(frozen=True)
class _Written:
    """What files are written for."""

    schema_json: str
    partition_columns: tuple[str, ...]
    mode: str
    """How columns are mapped."""

    @property
    def columns(self) -> dict[Path, _Column]:
        """All that the schema consists of, by path; fields have their physical names."""
        return dict(_fields(msgspec.json.decode(self.schema_json)["fields"], (), self.mode))

    @property
    def physical_partitions(self) -> list[str]:
        """The physical names of the partition columns."""
        fields = msgspec.json.decode(self.schema_json)["fields"]
        names = {found["name"]: _name(found, self.mode) for found in fields}
        return [names.get(column, column) for column in self.partition_columns]


def _mode(protocol: Protocol, configuration: Mapping[str, str]) -> str:
    if not supports_reader_feature(protocol, "columnMapping"):
        return "none"
    return configuration.get(COLUMN_MAPPING_MODE, "none").lower()


def _mapping_misfits(then: str, now: str) -> Iterator[str]:
    """A table that begins to map by name keeps the names of its files; no other change does."""
    if then != now and (then, now) != ("none", "name"):
        yield f"columns are mapped by {now}, the files were written with mapping by {then}"


def _partition_misfits(then: _Written, now: _Written) -> Iterator[str]:
    if now.physical_partitions != then.physical_partitions:
        told, was = list(now.partition_columns), list(then.partition_columns)
        yield f"partitioned by {told}, the files were written for {was}"
        return
    now_columns, then_columns = now.columns, then.columns
    for name in now.physical_partitions:
        was_column, column = then_columns.get((name,)), now_columns.get((name,))
        if was_column is None or column is None:
            yield f"partition column {name!r} is not in the table any more"
        elif was_column.type != column.type:  # a value is spelt by its type
            yield f"partition column {name!r} is {column.type}, the files have {was_column.type}"


def _constraint_misfits(now: Mapping[str, str], then: Mapping[str, str]) -> Iterator[str]:
    for name, expression in now.items():
        if is_constraint(name) and then.get(name) != expression:
            told = constraint_name(name)
            yield f"the constraint {told} ({expression}) is new: rows were not checked against it"


def _column_misfits(
    now: Mapping[Path, _Column], then: Mapping[Path, _Column], *, mapped: bool
) -> Iterator[str]:
    for path, column in now.items():
        staged = then.get(path)
        if staged is not None:
            yield from _changed(staged, column, f"column {'.'.join(path)!r}")
        elif len(path) == 1 or path[:-1] in then:
            yield from _new(column, f"column {'.'.join(path)!r}")
    for path, column in then.items():
        if path not in now and not mapped and (path[:-1] in now or len(path) == 1):
            yield f"column {'.'.join(path)!r} ({column.type}) is not in the table any more"


def _new(column: _Column, told: str) -> Iterator[str]:
    if not column.nullable:
        yield f"{told} ({column.type}) is NOT NULL, and the files lack it"
    for key in column.rules:
        yield f"{told} has a {key}, and the files lack it"


def _changed(then: _Column, now: _Column, told: str) -> Iterator[str]:
    if then.type not in {now.type, *now.was}:
        yield f"{told} is {now.type}, the files have {then.type}"
    if then.nullable and not now.nullable:
        yield f"{told} is NOT NULL, the files may have nulls"
    for key, rule in now.rules.items():
        if then.rules.get(key) != rule:
            yield f"{told} has a new {key}: rows were not checked against it"


def _name(field_json: Mapping[str, Any], mode: str) -> str:
    """The name of a field in data files."""
    name = str(field_json["name"])
    if mode == "none":
        return name
    return str((field_json.get("metadata") or {}).get(_PHYSICAL_NAME, name))


def _fields(fields: list[Any], above: Path, mode: str) -> Iterator[tuple[Path, _Column]]:
    for found in fields:
        metadata = found.get("metadata") or {}
        path = (*above, _name(found, mode))
        widened = _widened(metadata)
        yield (
            path,
            _Column(
                _type_name(found["type"]),
                bool(found.get("nullable", True)),
                {key: rule for key, rule in metadata.items() if key.startswith(_RULES)},
                widened.get((), frozenset()),
            ),
        )
        yield from _inside(found["type"], path, mode, widened)


def _widened(metadata: Mapping[str, Any]) -> dict[Path, frozenset[str]]:
    """The types that a field and its elements, keys and values had before, by path below it."""
    widened: dict[Path, frozenset[str]] = {}
    for change in metadata.get(_TYPE_CHANGES, ()):
        below = tuple(filter(None, str(change.get("fieldPath") or "").split(".")))
        widened[below] = widened.get(below, frozenset()) | {str(change.get("fromType"))}
    return widened


def _inside(
    kind: Any,  # noqa: ANN401 - JSON: a name or an object
    path: Path,
    mode: str,
    widened: Mapping[Path, frozenset[str]],
) -> Iterator[tuple[Path, _Column]]:
    """What a nested type consists of."""
    match _type_name(kind):
        case "struct":
            yield from _fields(kind["fields"], path, mode)
            return
        case "array":
            parts = {"element": bool(kind.get("containsNull", True))}
        case "map":
            parts = {"key": False, "value": bool(kind.get("valueContainsNull", True))}
        case _:
            return
    for part, nullable in parts.items():
        inner = kind[f"{part}Type"]
        below = {found[1:]: types for found, types in widened.items() if found[:1] == (part,)}
        was = below.get((), frozenset())
        yield (*path, part), _Column(_type_name(inner), nullable, was=was)
        yield from _inside(inner, (*path, part), mode, below)


def _type_name(kind: Any) -> str:  # noqa: ANN401 - JSON: a name or an object
    return str(kind["type"] if isinstance(kind, dict) else kind)
