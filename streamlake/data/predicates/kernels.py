"""Arrow's functions as they are: for arrays and scalars of any type.

The stubs of pyarrow have an overload for each pair of types, and none for what is known only when
the program runs; a type checker would refuse most of what this package does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.compute

Values: TypeAlias = "pa.Array[Any]"
"""A value for each row, or for each file."""


class _Kernels(Protocol):
    def __getattr__(self, name: str) -> Callable[..., Values]: ...


_compute: Any = pyarrow.compute
_arrow: Any = pa
pc: _Kernels = _compute


def repeated(value: object, count: int) -> Values:
    """One value, an Arrow scalar or a Python one, so many times."""
    scalar = value if isinstance(value, pa.Scalar) else _arrow.scalar(value)
    found: Values = _arrow.repeat(scalar, count)
    return found


def nulls(count: int, kind: pa.DataType) -> Values:
    """So many nulls of a type."""
    found: Values = _arrow.nulls(count, kind)
    return found


def concatenated(parts: list[Values]) -> Values:
    """Arrays of one type, one after the other."""
    found: Values = _arrow.concat_arrays(parts)
    return found


def chunked(parts: list[Values], kind: pa.DataType) -> pa.ChunkedArray[Any]:
    """Arrays of one type as the chunks of a column."""
    found: pa.ChunkedArray[Any] = _arrow.chunked_array(parts, kind)
    return found


def is_any(mask: Values) -> bool:
    """Whether one is true."""
    found: Any = pc.any(mask)
    return found.as_py() is True


def count_true(mask: Values) -> int:
    """How many are true."""
    found: Any = pc.sum(mask)
    return int(found.as_py() or 0)
