"""What can be told of a schema's JSON without knowing its types."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import msgspec

from streamlake.protocol.json_bounds import Json
from streamlake.protocol.schema.codec import MAX_SCHEMA_CHARS
from streamlake.protocol.schema.widening import TYPE_CHANGES

_VOID = frozenset({"void", "null"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaFacts:
    """What decides which features a schema puts to use, and whether it can be read."""

    metadata_keys: frozenset[str] = frozenset()
    """Of all columns and nested fields."""
    type_names: frozenset[str] = frozenset()
    """Of all columns, nested fields, elements, keys and values."""
    type_changes: frozenset[tuple[str, str]] = frozenset()
    """From which type to which columns and what is in them were changed, by Delta's names; JSON
    where it is no name."""
    has_not_null: bool = False
    """Whether a column, or a field of a struct, must not be null."""
    has_unwritable_void: bool = False
    """Whether void is inside of another type, or all that there is (PROTOCOL.md, "Void Type")."""


@lru_cache(maxsize=256)
def schema_facts(schema_json: str) -> SchemaFacts:
    """The facts of a schema; none of what is no schema, which is told where it is decoded."""
    if len(schema_json) > MAX_SCHEMA_CHARS:
        return SchemaFacts()
    try:
        schema = msgspec.json.decode(schema_json)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return SchemaFacts()
    columns = _fields(schema)
    keys: set[str] = set()
    changes: set[tuple[str, str]] = set()
    names: set[str] = set()
    inner: set[str] = set()
    types = [_remember(field, keys, changes) for field in columns]
    for kind in types:
        if isinstance(kind, str):
            names.add(kind)
    waiting = [kind for kind in types if isinstance(kind, dict)]
    while waiting:
        outer = waiting.pop()
        names.add(str(outer.get("type")))
        for kind in _inside(outer, keys, changes):
            if isinstance(kind, dict):
                waiting.append(kind)
            elif isinstance(kind, str):
                inner.add(kind)
    only_void = bool(types) and all(isinstance(kind, str) and kind in _VOID for kind in types)
    return SchemaFacts(
        has_not_null=_has_not_null(columns),
        metadata_keys=frozenset(keys),
        type_names=frozenset(names | inner),
        type_changes=frozenset(changes),
        has_unwritable_void=only_void or not inner.isdisjoint(_VOID),
    )


def _inside(kind: dict[str, Json], keys: set[str], changes: set[tuple[str, str]]) -> list[Json]:
    """The types inside of a struct, an array or a map."""
    types = [kind[part] for part in ("elementType", "keyType", "valueType") if part in kind]
    return types + [_remember(field, keys, changes) for field in _fields(kind)]


def _has_not_null(fields: list[dict[str, Json]]) -> bool:
    """As Delta on Spark looks for it: in structs of structs, not inside of arrays and maps."""
    waiting = [*fields]
    while waiting:
        field = waiting.pop()
        if field.get("nullable") is False:
            return True
        waiting += _fields(field.get("type"))
    return False


def _fields(struct: Json) -> list[dict[str, Json]]:
    fields = struct.get("fields") if isinstance(struct, dict) else None
    return (
        [field for field in fields if isinstance(field, dict)] if isinstance(fields, list) else []
    )


def _remember(field: dict[str, Json], keys: set[str], changes: set[tuple[str, str]]) -> Json:
    """The type of a field, whose metadata is noted."""
    metadata = field.get("metadata")
    if isinstance(metadata, dict):
        keys.update(metadata)
        changes.update(_type_changes(metadata.get(TYPE_CHANGES)))
    return field.get("type")


def _type_changes(listed: Json) -> Iterator[tuple[str, str]]:
    """The changes that a field's metadata lists; garbage as one that nobody supports."""
    for change in listed if isinstance(listed, list) else [listed] if listed is not None else []:
        known = change if isinstance(change, dict) else {}
        before, after = known.get("fromType"), known.get("toType")
        if isinstance(before, str) and isinstance(after, str):
            yield before, after
        else:
            yield _told(before if known else change), _told(after)


def _told(value: Json) -> str:
    return msgspec.json.encode(value).decode()
