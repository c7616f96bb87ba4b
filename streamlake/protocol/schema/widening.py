"""Type widening: which changes of a column's type keep every value (PROTOCOL.md, that section)."""

from __future__ import annotations

import re

TYPE_CHANGES = "delta.typeChanges"
"""Key of a field's metadata: the history of its type."""

_INTEGERS = ("byte", "short", "integer", "long")
_DECIMAL = re.compile(r"decimal\(\s*([0-9]{1,2})\s*,\s*([0-9]{1,2})\s*\)")
_DIGITS = {"byte": 10, "short": 10, "integer": 10, "long": 20}
"""How many digits left of the point a decimal needs to take the place of an integer."""
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
    if (before, after) in _WIDER:
        return True
    if before in _INTEGERS and after in _INTEGERS:
        return _INTEGERS.index(before) < _INTEGERS.index(after)
    wide = _DECIMAL.fullmatch(after)
    if wide is None:
        return False
    digits, scale = int(wide[1]) - int(wide[2]), int(wide[2])
    if before in _DIGITS:
        return digits >= _DIGITS[before]
    narrow = _DECIMAL.fullmatch(before)
    if narrow is None or before == after:
        return False
    return digits >= int(narrow[1]) - int(narrow[2]) and scale >= int(narrow[2])
