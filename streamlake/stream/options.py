"""How a tail behaves: bounds, policies, pauses."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from streamlake.arguments import check_integer, check_names
from streamlake.errors import InvalidInputError

OnRemoved: TypeAlias = Literal["fail", "ignore_deletes", "ignore_changes", "skip_change_commits"]
"""What to do at a commit that removes data (``remove`` with ``dataChange=true``).

``fail``: DataRemovedError. ``ignore_deletes``: pass over commits that only remove, fail at those
that rewrite. ``ignore_changes``: hand on what such commits add, so that rows which a rewrite kept
come again. ``skip_change_commits``: pass over such commits whole. As Delta's options of these
names.
"""

OnLost: TypeAlias = Literal["fail", "earliest", "latest", "resnapshot"]
"""What to do where log clean-up removed versions that were not read yet.

``fail``: LogTruncatedError. ``earliest``: go on at the oldest version that is left; the rows
between are lost. ``latest``: go on with what is committed from now on. ``resnapshot``: hand on the
whole table as it is now, and go on from there; rows may come again. All but the first log a
warning.
"""

OnSchemaChange: TypeAlias = Literal["fail", "follow"]
"""What to do where columns are dropped, renamed or retyped, inside of structs also added.

``fail``: StreamError before the first batch of the new schema. ``follow``: go on with the new
schema. New columns, and columns that may be null from now on, are always followed.
"""

LOCAL_POLL_MIN_S = 0.001
LOCAL_POLL_MAX_S = 0.1
REMOTE_POLL_MIN_S = 0.05
REMOTE_POLL_MAX_S = 1.0
LOCAL_SCHEMES = ("file:", "memory:")


@dataclass(frozen=True, slots=True, kw_only=True)
class TailOptions:
    """How a tail behaves; the defaults lose nothing and repeat nothing."""

    columns: Sequence[str] | None = None
    """Which columns, in which order; all for None."""
    max_rows: int = 65_536
    """The most rows of a batch. Files that have more are handed on in parts."""
    whole_files: bool = False
    """Cut batches between files only, so that every position fits a marker (``Offset.to_marker``).
    A batch may pass ``max_rows`` then, by one file."""
    on_removed: OnRemoved = "fail"
    on_lost: OnLost = "fail"
    on_schema_change: OnSchemaChange = "fail"
    poll_min_s: float | None = None
    """The shortest pause between two looks for a new commit; None for 1 ms on a local disk and in
    memory, 50 ms elsewhere."""
    poll_max_s: float | None = None
    """The longest one, reached when nothing has come for a while; None for 100 ms on a local disk
    and in memory, 1 s elsewhere."""
    executor: Executor | None = None
    """Where commits and files are read ahead while several commits wait; None for one of the tail's
    own, which it starts when it is behind and stops when it is closed."""

    def __post_init__(self) -> None:
        _check_choice("on_removed", self.on_removed, OnRemoved)
        _check_choice("on_lost", self.on_lost, OnLost)
        _check_choice("on_schema_change", self.on_schema_change, OnSchemaChange)
        check_integer("max_rows", self.max_rows, least=1)
        _check_pause("poll_min_s", self.poll_min_s)
        _check_pause("poll_max_s", self.poll_max_s)
        if self.columns is not None:
            check_names("columns", self.columns)

    def poll_bounds_s(self, url: str) -> tuple[float, float]:
        """The shortest and the longest pause between polls of the table at ``url``, in seconds."""
        is_local = url.startswith(LOCAL_SCHEMES)
        shortest = LOCAL_POLL_MIN_S if is_local else REMOTE_POLL_MIN_S
        longest = LOCAL_POLL_MAX_S if is_local else REMOTE_POLL_MAX_S
        shortest = shortest if self.poll_min_s is None else self.poll_min_s
        longest = longest if self.poll_max_s is None else self.poll_max_s
        return min(shortest, longest), longest


def _check_pause(name: str, pause_s: float | None) -> None:
    if pause_s is None:
        return
    is_number = isinstance(pause_s, (int, float)) and not isinstance(pause_s, bool)
    if not is_number or not 0 < pause_s < float("inf"):
        raise InvalidInputError(
            f"{name} must be a number of seconds above 0.",
            found=repr(pause_s),
            remedy=f"Leave it out, or give seconds, as in {name}=0.5.",
        )


def _check_choice(name: str, value: str, choices: object) -> None:
    allowed = get_args(choices)
    if value not in allowed:
        raise InvalidInputError(
            f"There is no {name}={value!r}.", remedy=f"Choose one of {', '.join(allowed)}."
        )
