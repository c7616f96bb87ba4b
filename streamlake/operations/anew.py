"""Operations that begin anew when others changed what they are based on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from streamlake.errors import MetadataChangedError, ProtocolChangedError

TRIES = 10
"""How often an operation is tried while others change metadata or protocol first."""

_T = TypeVar("_T")


def anew(attempt: Callable[[], _T]) -> _T:
    """``attempt``, again as long as others change metadata or protocol first.

    For operations that mean the same whatever the table has become.

    Raises:
        CommitConflictError: They did so TRIES times.
    """
    for _ in range(TRIES - 1):
        try:
            return attempt()
        except (MetadataChangedError, ProtocolChangedError):
            continue
    return attempt()
