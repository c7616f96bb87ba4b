"""What can be told of a schema's JSON without knowing its types."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import msgspec

from streamlake.protocol.json_bounds import Json

_VOID = frozenset({"void", "null"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaFacts:
    """What decides which features a schema puts to use."""

    metadata_keys: frozenset[str] = frozenset()
    """Of all columns and nested fields."""
    type_names: frozenset[str] = frozenset()
    """Of all columns, nested fields, elements, keys and values."""
    has_unwritable_void: bool = False
    """Whether void is inside of another type, or all that there is (PROTOCOL.md, "Void Type")."""


@lru_cache(maxsize=256)
def schema_facts(schema_json: str) -> SchemaFacts:
    """The facts of a schema; none of what is no schema, which is told where it is decoded."""
    try:
        schema = msgspec.json.decode(schema_json)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return SchemaFacts()
    columns = _fields(schema)
    keys: set[str] = set()
    names: set[str] = set()
    inner: set[str] = set()
    types = [_remember(field, keys) for field in columns]
    for kind in types:
        if isinstance(kind, str):
            names.add(kind)
    waiting = [kind for kind in types if isinstance(kind, dict)]
    while waiting:
        for kind in _inside(waiting.pop(), keys):
            if isinstance(kind, dict):
                waiting.append(kind)
            elif isinstance(kind, str):
                inner.add(kind)
    only_void = bool(types) and all(isinstance(kind, str) and kind in _VOID for kind in types)
    return SchemaFacts(
        metadata_keys=frozenset(keys),
        type_names=frozenset(names | inner),
        has_unwritable_void=only_void or not inner.isdisjoint(_VOID),
    )


def _inside(kind: dict[str, Json], keys: set[str]) -> list[Json]:
    """The types inside of a struct, an array or a map."""
    types = [kind[part] for part in ("elementType", "keyType", "valueType") if part in kind]
    return types + [_remember(field, keys) for field in _fields(kind)]


def _fields(struct: Json) -> list[dict[str, Json]]:
    fields = struct.get("fields") if isinstance(struct, dict) else None
    return (
        [field for field in fields if isinstance(field, dict)] if isinstance(fields, list) else []
    )


def _remember(field: dict[str, Json], keys: set[str]) -> Json:
    """The type of a field, whose metadata keys are noted."""
    metadata = field.get("metadata")
    if isinstance(metadata, dict):
        keys.update(metadata)
    return field.get("type")
