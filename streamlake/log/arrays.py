"""Arrow arrays from Python lists, without what ``pyarrow.array`` imports on its way.

``pyarrow.array`` loads NumPy and pandas where they are installed, to see whether a list is one of
theirs: 40 MB and a quarter of a second for whoever only lists files.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import pyarrow as pa

STRING_MAP = pa.map_(pa.string(), pa.string())


def array_of(values: Sequence[Any], kind: pa.DataType) -> Any:  # noqa: ANN401 -- of any type
    """Values, or None, as an array of ``kind``."""
    if all(value is None for value in values):
        return nulls(len(values), kind)
    if kind == pa.string():
        return _strings(values)
    if kind == pa.int64():
        return _primitive(values, kind, array("q", [value or 0 for value in values]))
    if kind == pa.bool_():
        return _booleans(values)
    if kind == STRING_MAP and None not in values:
        return _maps(values)
    return pa.array(values, type=kind)


def nulls(length: int, kind: Any) -> Any:  # noqa: ANN401 -- a type and an array of Arrow's
    """Nothing but nulls."""
    return pa.nulls(length, kind)


def mask_of(flags: bytes | bytearray) -> Any:  # noqa: ANN401
    """Booleans, a byte each."""
    numbers: Any = pa.Array.from_buffers(pa.int8(), len(flags), [None, pa.py_buffer(flags)])
    return numbers.cast(pa.bool_())


def _strings(values: Sequence[str | None]) -> Any:  # noqa: ANN401
    encoded = [b"" if value is None else value.encode() for value in values]
    offsets = array("i", [0, *accumulate(map(len, encoded))])
    buffers = [_validity(values), pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(values), buffers)


def _primitive(values: Sequence[Any], kind: pa.DataType, data: Any) -> Any:  # noqa: ANN401
    return pa.Array.from_buffers(kind, len(values), [_validity(values), pa.py_buffer(data)])


def _booleans(values: Sequence[bool | None]) -> Any:  # noqa: ANN401
    bytes_: Any = _primitive(values, pa.int8(), bytes(value is True for value in values))
    return bytes_.cast(pa.bool_())


def _validity(values: Sequence[Any]) -> pa.Buffer | None:
    if None not in values:
        return None
    buffer: pa.Buffer = mask_of(bytes(value is not None for value in values)).buffers()[1]
    return buffer


def _maps(values: Sequence[Mapping[str, str | None]]) -> Any:  # noqa: ANN401
    offsets = array("i", [0, *accumulate(map(len, values))])
    keys = [key for value in values for key in value]
    items = [item for value in values for item in value.values()]
    starts: Any = pa.Array.from_buffers(pa.int32(), len(offsets), [None, pa.py_buffer(offsets)])
    return pa.MapArray.from_arrays(starts, _strings(keys), _strings(items))
