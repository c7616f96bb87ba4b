"""Which rules of a table speak of a column."""

from __future__ import annotations

import re
from collections.abc import Iterator

from streamlake.protocol.actions import Metadata
from streamlake.protocol.properties import constraint_name, is_constraint
from streamlake.protocol.schema.codec import Path, dotted, field_metadata, schema_from_json
from streamlake.protocol.schema.walk import struct_fields

_PARTS = ("element", "key", "value")
GENERATION_EXPRESSION = "delta.generationExpression"
INVARIANTS = "delta.invariants"
CURRENT_DEFAULT = "CURRENT_DEFAULT"
IDENTITY_PREFIX = "delta.identity."
_EXPRESSIONS = (GENERATION_EXPRESSION, INVARIANTS)


def rules_naming(metadata: Metadata, path: Path) -> list[str]:
    """The constraints, invariants and generated columns whose SQL may speak of a column.

    By the names alone, so one may be told that only has the name in a string; none is left out.
    """
    names = [name for name in path if name not in _PARTS] or [path[-1]]
    return [told for told, sql in _rules(metadata) if all(_names(sql, name) for name in names)]


def _rules(metadata: Metadata) -> Iterator[tuple[str, str]]:
    for key, sql in metadata.configuration.items():
        if is_constraint(key):
            yield f"constraint {constraint_name(key)} ({sql})", sql
    for path, field in struct_fields(schema_from_json(metadata.schema_string)):
        found = field_metadata(field)
        for key in _EXPRESSIONS:
            if key in found:
                yield f"{key} of column {dotted(path)} ({found[key]})", str(found[key])


def _names(sql: str, name: str) -> bool:
    quoted = "`" + name.replace("`", "``") + "`"
    plain = rf"(?<!\w){re.escape(name)}(?!\w)"
    return quoted.lower() in sql.lower() or re.search(plain, sql, re.IGNORECASE) is not None
