"""Type widening: which changes of a column's type keep every value (PROTOCOL.md, that section)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from streamlake.protocol.json_bounds import Json
from streamlake.protocol.schema.codec import (
    Path,
    field_metadata,
    type_to_json,
    with_field_metadata,
)

TYPE_CHANGES = "delta.typeChanges"
"""Key of a field's metadata: the history of its type."""

_INTEGERS = ("byte", "short", "integer", "long")
_DECIMAL = re.compile(r"decimal\(\s*([0-9]{1,2})\s*,\s*([0-9]{1,2})\s*\)")
_DIGITS = {"byte": 10, "short": 10, "integer": 10, "long": 20}
"""How many digits left of the point a decimal needs to take the place of an integer."""
_FEWEST_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 19}
"""How many any integer of the type needs."""
_WIDER = {
    ("float", "double"),
    ("byte", "double"),
    ("short", "double"),
    ("integer", "double"),
    ("date", "timestamp_ntz"),
}


def is_widening(before: str, after: str) -> bool:
    """Whether a change from one type to the other is one that the feature allows.

    Args:
        before: Delta's name of a type, as in ``fromType``.
        after: Delta's name of a type, as in ``toType``.
    """
    return _is_wider(before, after, _DIGITS)


def keeps_values(before: str, after: str) -> bool:
    """Whether data of one type can be read as the other: also what early writers widened to.

    Before the feature was final, integers became decimals of just as many digits as they need.
    """
    return _is_wider(before, after, _FEWEST_DIGITS)


def _is_wider(before: str, after: str, digits_needed: Mapping[str, int]) -> bool:
    if (before, after) in _WIDER:
        return True
    if before in _INTEGERS and after in _INTEGERS:
        return _INTEGERS.index(before) < _INTEGERS.index(after)
    wide = _DECIMAL.fullmatch(after)
    if wide is None:
        return False
    digits, scale = int(wide[1]) - int(wide[2]), int(wide[2])
    if before in digits_needed:
        return digits >= digits_needed[before]
    narrow = _DECIMAL.fullmatch(before)
    if narrow is None or before == after:
        return False
    return digits >= int(narrow[1]) - int(narrow[2]) and scale >= int(narrow[2])


def widens(kind: pa.DataType, wider: pa.DataType, *, by_itself: bool = False) -> bool:
    """Whether a primitive type may become ``wider``, another one.

    Args:
        kind: What it is.
        wider: What it is to be.
        by_itself: Whether nobody asked for it by name, but data came that needs it. Then integers
            become neither floats nor decimals, which would not bring them back as they were.
    """
    if pa.types.is_nested(kind) or pa.types.is_nested(wider):
        return False
    before, after = str(type_to_json(kind)), str(type_to_json(wider))
    if by_itself and before in _INTEGERS and after not in _INTEGERS:
        return False
    return is_widening(before, after)


def with_type_change(
    field: pa.Field[Any], path: Path, before: pa.DataType, after: pa.DataType
) -> pa.Field[Any]:
    """The field with a note that it, or what is at ``path`` inside of it, changed its type.

    Args:
        field: The nearest struct field around the change.
        path: "element", "key" and "value" on the way down; empty for the field itself.
        before: A primitive type.
        after: A primitive type.
    """
    metadata = field_metadata(field)
    known = metadata.get(TYPE_CHANGES)
    change: dict[str, Json] = {"fromType": type_to_json(before), "toType": type_to_json(after)}
    if path:
        change["fieldPath"] = ".".join(path)
    earlier = known if isinstance(known, list) else []
    return with_field_metadata(field, {**metadata, TYPE_CHANGES: [*earlier, change]})
