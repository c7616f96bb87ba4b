"""What of a commit a tail hands on, and how its files are to be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from streamlake.data import TableColumns, projected, table_columns
from streamlake.errors import CorruptTableError, DataRemovedError, StreamError
from streamlake.log import Commit
from streamlake.protocol import (
    AddFile,
    Metadata,
    Protocol,
    check_readable,
    schema_difference,
)
from streamlake.stream.options import OnRemoved, OnSchemaChange
from streamlake.stream.start import Beginning, check_same_table


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How the files of a version are to be read."""

    metadata: Metadata
    protocol: Protocol
    table: TableColumns
    """The table's columns."""
    columns: Sequence[str] | None = None

    @property
    def table_id(self) -> str:
        """The table's own id."""
        return self.metadata.id

    @property
    def schema(self) -> pa.Schema:
        """The table's, in full."""
        return self.table.schema

    @property
    def projected_schema(self) -> pa.Schema:
        """Of the rows that are handed on."""
        return projected(self.schema, self.columns)


def reading_of(
    metadata: Metadata, protocol: Protocol, columns: Sequence[str] | None, *, where: str
) -> Reading:
    """How files are read under that metadata, where they can be.

    Raises:
        UnsupportedFeatureError: The table needs what is not supported.
        InvalidInputError: One of ``columns`` is not in the table.
    """
    check_readable(protocol, where=where, metadata=metadata)
    table = table_columns(protocol, metadata, where=where)
    projected(table.schema, columns)
    return Reading(metadata=metadata, protocol=protocol, table=table, columns=columns)


def reading_at(
    beginning: Beginning, columns: Sequence[str] | None, *, where: str
) -> Reading | None:
    """How files are read where a tail begins; None where the first commit itself says it."""
    definition = beginning.definition
    if definition is None:
        return None
    return reading_of(definition.metadata, definition.protocol, columns, where=where)


def reading_after(
    reading: Reading | None,
    commit: Commit,
    *,
    columns: Sequence[str] | None,
    on_schema_change: OnSchemaChange,
    where: str,
) -> Reading:
    """How files are read from ``commit`` on.

    Raises:
        TableReplacedError: The commit gives the table another id.
        StreamError: It changes columns in a way that is not followed.
        UnsupportedFeatureError: It makes the table need what is not supported.
        CorruptTableError: Nothing says how the files are to be read.
    """
    if reading is None:
        return _first_reading(commit, columns, where)
    if commit.metadata is None and commit.protocol is None:
        return reading
    metadata = commit.metadata or reading.metadata
    check_same_table(reading.table_id, metadata.id, where=where)
    fresh = reading_of(metadata, commit.protocol or reading.protocol, columns, where=where)
    if on_schema_change == "fail":
        _check_additive(reading, fresh, commit.version, where)
    return fresh


def _first_reading(commit: Commit, columns: Sequence[str] | None, where: str) -> Reading:
    if commit.metadata is None or commit.protocol is None:
        missing = "metaData" if commit.metadata is None else "protocol"
        raise CorruptTableError(
            f"The table's first commit has no {missing}.",
            where=where,
            found=f"version {commit.version} without one",
            remedy="The log is damaged or was written by a faulty writer; restore its files.",
        )
    return reading_of(commit.metadata, commit.protocol, columns, where=where)


def _check_additive(before: Reading, after: Reading, version: int, where: str) -> None:
    """Let pass what a reader of the old columns need not notice: see ``OnSchemaChange``."""
    if before.metadata.schema_string == after.metadata.schema_string:
        return
    differences = _differences(before.schema, after.schema)
    # A column that was dropped and added again is another one: it has another physical name.
    then, now = before.table.mapping.physical, after.table.mapping.physical
    differences = differences or _differences(then, now)
    if not differences:
        return
    raise StreamError(
        f"Version {version} changes the table's columns.",
        where=where,
        found="; ".join(differences),
        remedy=f"Go on with start={version}, which takes the new columns, or let the tail follow "
        'every change: on_schema_change="follow".',
    )


def _differences(before: pa.Schema, after: pa.Schema) -> list[str]:
    known = [field.with_nullable(nullable=True) for field in before]
    kept = [after.field(name) for name in before.names if name in after.names]
    return schema_difference(pa.schema(known), pa.schema(kept))


def handed_on(commit: Commit, on_removed: OnRemoved, *, where: str) -> tuple[AddFile, ...]:
    """The files of a commit that a tail hands on; their places are the indexes of an Offset.

    Raises:
        DataRemovedError: The commit removes data, and the policy does not say what to do.
    """
    adds = tuple(add for add in commit.adds if add.data_change)
    removed = [remove for remove in commit.removes if remove.data_change]
    if not removed or on_removed == "ignore_changes":
        return adds
    if on_removed == "skip_change_commits" or (on_removed == "ignore_deletes" and not adds):
        return ()
    raise DataRemovedError(
        f"Version {commit.version} removes data that was handed on before.",
        where=where,
        found=f"{commit.commit_info.operation or 'a commit'} that removes {len(removed)} files "
        f"and adds {len(adds)}",
        remedy=_removal_remedy(commit.version, is_rewrite=bool(adds)),
    )


def _removal_remedy(version: int, *, is_rewrite: bool) -> str:
    if is_rewrite:
        policies = (
            'on_removed="skip_change_commits" passes over such commits whole, '
            '"ignore_changes" hands on all that they add, rows that were there before included'
        )
    else:
        policies = 'on_removed="ignore_deletes" passes over such commits'
    return (
        f'{policies}; or bring what was made of the rows up to date, from start="snapshot", and '
        f"go on with start={version + 1}."
    )
