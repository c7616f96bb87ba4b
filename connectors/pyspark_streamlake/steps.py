"""What a batch sets out to do, whatever the kind of its markers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import streamlake as sl
from pyspark_streamlake.query import Query
from pyspark_streamlake.staging import Window

EXPIRY_PROPERTY = "delta.setTransactionRetentionDuration"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One commit to make."""

    markers: tuple[sl.SetTransaction, ...]
    expect: Mapping[str, sl.SetTransaction | None]
    """By app_id the marker that must still be the table's."""
    windows: Mapping[tuple[str, int], Window] | None = None
    """Where rows are trimmed by their Kafka offsets."""
    commits_empty: bool = False
    """Whether the markers move also where there are no rows."""


class Markers(Protocol):
    """One kind of exactly-once markers, for one run of a query."""

    def step(self, query: Query, batch_id: int) -> Step | None:
        """What the batch has to commit; None where the table has it.

        Raises:
            FencedError: The batch is not this owner's to write.
            InvalidInputError: The query does not fit this kind of markers.
        """

    def committed(self, markers: Mapping[str, sl.SetTransaction]) -> None:
        """The commit of a step has landed, with these markers."""

    def reread(self, error: sl.FencedError) -> None:
        """Another owner moved a marker: read them again, or raise ``error``."""


def check_app_id(app_id: str) -> None:
    """Refuse what can't be told from the markers of others.

    Raises:
        InvalidInputError: It is empty, or holds a slash.
    """
    if not app_id or "/" in app_id:
        raise sl.InvalidInputError(
            "An app_id is not empty and has no slash.",
            found=repr(app_id),
            remedy="A slash would mix it up with Kafka's markers, <app_id>/<topic>/<partition>.",
        )


def check_expiry(table: sl.Table) -> None:
    """Refuse a table that lets idle markers expire.

    Raises:
        InvalidInputError: The property is set.
    """
    if EXPIRY_PROPERTY in table.properties:
        raise sl.InvalidInputError(
            "The table lets exactly-once markers expire.",
            where=table.url,
            found=f"{EXPIRY_PROPERTY} = {table.properties[EXPIRY_PROPERTY]}",
            remedy="Unset the property: with a marker gone, rows would be written again.",
        )


def other_kind(app_id: str, found: str, *, where: str) -> sl.InvalidInputError:
    """The error for an app_id whose markers are of another kind."""
    return sl.InvalidInputError(
        f"app_id {app_id!r} has markers of another kind; an app_id keeps one kind for life.",
        where=where,
        found=f"marker {found!r}",
        remedy="Use another app_id, or the kind of markers that this one began with.",
    )
