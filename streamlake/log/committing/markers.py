"""Exactly-once markers: when a commit is a repeat, when it may go on, when its owner is fenced."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Self, TypeAlias

import msgspec

from streamlake.errors import (
    ConcurrentTransactionError,
    FencedError,
    InvalidInputError,
    PartlyCommittedError,
)
from streamlake.protocol import SetTransaction, validate_marker

Expectation: TypeAlias = Mapping[str, SetTransaction | None]
"""By app_id the marker that its owner found at open or set since; None where there was none."""


def staged_markers(
    txn: SetTransaction | Sequence[SetTransaction] | None,
    expect: Expectation | None,
    now_ms: int,
) -> tuple[SetTransaction, ...]:
    """The markers of one commit, checked and stamped with ``lastUpdated``.

    Raises:
        InvalidInputError: A version outside of int64 or negative, an empty app_id, two markers of
            one app, or an expectation that does not name every marker.
    """
    given = _given(txn)
    _check_expectation(expect)
    seen: set[str] = set()
    for marker in given:
        validate_marker(marker)
        if marker.app_id in seen:
            raise InvalidInputError(
                f"Two markers of app_id {marker.app_id!r} in one commit.",
                found=", ".join(str(m.version) for m in given if m.app_id == marker.app_id),
                remedy="Give one marker per app_id: the highest version that the rows account for.",
            )
        seen.add(marker.app_id)
    if (expect and not seen) or (expect is not None and not seen <= set(expect)):
        raise InvalidInputError(
            "`expect` must name the marker found at open for every app_id of `txn`.",
            found=f"txn names {sorted(seen)}, expect names {sorted(expect)}",
            remedy="Pass None for an app_id that had no marker.",
        )
    return tuple(msgspec.structs.replace(marker, last_updated=now_ms) for marker in given)


def _given(txn: SetTransaction | Sequence[SetTransaction] | None) -> list[SetTransaction]:
    if txn is None:
        return []
    several = list(txn) if isinstance(txn, Sequence) and not isinstance(txn, str) else [txn]
    markers = [marker for marker in several if isinstance(marker, SetTransaction)]
    if len(markers) < len(several):
        raise InvalidInputError(
            "`txn` must be a SetTransaction, or several.",
            found=repr(txn),
            remedy='Write txn=streamlake.SetTransaction("my-app", 42).',
        )
    return markers


def _check_expectation(expect: object) -> None:
    if expect is None:
        return
    if not isinstance(expect, Mapping) or not all(
        marker is None or isinstance(marker, SetTransaction) for marker in expect.values()
    ):
        raise InvalidInputError(
            "`expect` must map each app_id to its SetTransaction or None.",
            found=repr(expect),
            remedy="Pass the `markers` of the last result.",
        )


def already_committed(
    markers: Sequence[SetTransaction],
    expect: Expectation | None,
    current: Mapping[str, SetTransaction],
    *,
    where: str,
) -> bool:
    """Whether the table's markers say that these were committed before.

    Without an expectation ``version <=`` the table's marker is a repeat. With one, only versions at
    or below the marker found at open are; a marker that is not the expected one any more fences its
    owner.

    Raises:
        PartlyCommittedError: Some are repeats and some are not.
        FencedError: The table's marker is not the expected one.
    """
    if not markers:
        return False
    repeats = [marker for marker in markers if _is_repeat(marker, expect, current)]
    if len(repeats) == len(markers):
        return True
    if repeats:
        fresh = [marker.app_id for marker in markers if marker not in repeats]
        raise PartlyCommittedError(
            "Of the markers of this append some are committed already and some are not.",
            where=where,
            found=f"committed: {[m.app_id for m in repeats]}; not committed: {fresh}",
            remedy="Leave out the rows and markers that are committed, and append the rest.",
        )
    if expect is not None:
        for marker in markers:
            check_unmoved(marker.app_id, expect, current.get(marker.app_id), where=where)
    return False


def _is_repeat(
    marker: SetTransaction, expect: Expectation | None, current: Mapping[str, SetTransaction]
) -> bool:
    known = current.get(marker.app_id) if expect is None else expect[marker.app_id]
    return known is not None and marker.version <= known.version


def check_unmoved(
    app_id: str, expect: Expectation, current: SetTransaction | None, *, where: str
) -> None:
    """Compare-and-set: the table's marker must be the one that its owner knows.

    Raises:
        FencedError: It is another one, or gone.
    """
    expected = expect[app_id]
    if current != expected:
        raise FencedError(
            f"The marker {app_id!r} was moved by another owner.",
            where=where,
            found=f"{_told(current)}; this owner expected {_told(expected)}",
            remedy="Two processes run under one app_id: stop one of them. The one that goes on "
            "must read the marker again and leave out what it accounts for.",
        )


def check_winner(
    markers: Sequence[SetTransaction],
    expect: Expectation | None,
    moved: Mapping[str, SetTransaction],
    *,
    where: str,
) -> None:
    """A commit that won a race moved some of our markers, and they do not make ours a repeat.

    Raises:
        FencedError: With an expectation.
        ConcurrentTransactionError: Without one.
    """
    for marker in markers:
        winner = moved.get(marker.app_id)
        if winner is None:
            continue
        if expect is not None:
            check_unmoved(marker.app_id, expect, winner, where=where)
        raise ConcurrentTransactionError(
            f"A concurrent commit moved the marker {marker.app_id!r}.",
            where=where,
            found=f"{_told(winner)}; this commit sets version {marker.version}",
            remedy="One app_id has one writer at a time. Read the marker and append again.",
        )


def _told(marker: SetTransaction | None) -> str:
    if marker is None:
        return "no marker"
    return f"version {marker.version} (lastUpdated {marker.last_updated})"


_claims: set[tuple[str, str]] = set()
_claims_lock = threading.Lock()


class MarkerClaim:
    """One owner per app_id in one process; other processes are fenced at their next commit.

    A context manager; opening one that is open raises InvalidInputError, and writes nothing.
    """

    def __init__(self, table_id: str, app_ids: Iterable[str]) -> None:
        self._keys = tuple((table_id, app_id) for app_id in app_ids)
        with _claims_lock:
            taken = [app_id for table, app_id in self._keys if (table, app_id) in _claims]
            if taken:
                raise InvalidInputError(
                    f"app_id {taken[0]!r} is already open in this process for this table.",
                    where=f"table {table_id}",
                    remedy="Close the other sink or producer first, or use another app_id.",
                )
            _claims.update(self._keys)

    def close(self) -> None:
        """Let go of the claim. Idempotent."""
        with _claims_lock:
            _claims.difference_update(self._keys)
        self._keys = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
