"""What changes a table itself: its schema, properties, constraints and domains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from streamlake import operations
from streamlake.log import (
    CommitResult,
    Log,
)


class TableChanges:
    """The part of Table whose methods each commit a change of metadata, and no rows."""

    log: Log

    def set_properties(self, properties: Mapping[str, str]) -> CommitResult:
        """Set table properties by Delta's names, or of your own, in one commit.

        The protocol rises where a property needs it, and no further.

        Raises:
            InvalidInputError: A name or value of Delta's that can't be, or a change that the
                table's files do not allow.
            UnsupportedFeatureError: A property asks for a feature that is not supported.
            MetadataChangedError: A concurrent commit changed the metadata, too.
        """
        return operations.set_properties(self.log, properties)

    def unset_properties(self, names: Iterable[str], *, missing_ok: bool = False) -> CommitResult:
        """Unset table properties, which have their defaults then; in one commit.

        Raises:
            InvalidInputError: One that is not set (unless ``missing_ok``), or that can't be unset.
            MetadataChangedError: A concurrent commit changed the metadata, too.
        """
        return operations.unset_properties(self.log, names, missing_ok=missing_ok)

    def add_columns(
        self, fields: pa.Schema | Sequence[pa.Field[Any]], *, within: str | None = None
    ) -> CommitResult:
        """Add nullable columns after the others, or fields to the struct ``within``, in one commit.

        Args:
            fields: In Arrow's types. Rows that are there have null in them.
            within: The struct, named as for ``rename_column``; None for the table itself.

        Raises:
            InvalidInputError: A name that is taken, or a name or type that a table can't have.
            MetadataChangedError: A concurrent commit changed the metadata, too.
        """
        return operations.add_columns(self.log, fields, within=within)

    def merge_schema(self, schema: pa.Schema) -> CommitResult:
        """Add what data of ``schema`` needs and the table lacks; no commit where it fits already.

        Raises:
            SchemaMismatchError: A column has a type that no new column can help; nothing was
                committed.
            InvalidInputError: A new column has a name or type that a table can't have.
            UnsupportedFeatureError: A new column needs a feature that is not supported.
        """
        return operations.merge_schema(self.log, schema)

    def rename_column(self, column: str, name: str) -> CommitResult:
        """Call a column by another name; no data file is touched. Needs column mapping.

        Args:
            column: Which: fields of structs after a dot, names that hold a dot in backticks.
            name: The new name, of the field alone.

        Raises:
            InvalidInputError: Columns are not mapped (set ``delta.columnMapping.mode`` to "name"),
                there is no such column, the name is taken, or a constraint speaks of the column.
            MetadataChangedError: A concurrent commit changed the metadata, too.
        """
        return operations.rename_column(self.log, column, name)

    def drop_columns(self, columns: Sequence[str]) -> CommitResult:
        """Drop columns or fields of structs; no data file is touched. Needs column mapping.

        Raises:
            InvalidInputError: Columns are not mapped, there is no such column, none would be left,
                the table is partitioned or clustered by it, or a constraint speaks of it.
            MetadataChangedError: A concurrent commit changed the metadata, too.
        """
        return operations.drop_columns(self.log, columns)

    def alter_column(
        self,
        column: str,
        *,
        type: pa.DataType | None = None,  # noqa: A002 - what it is called everywhere
        nullable: bool | None = None,
        default: str | None = None,
        comment: str | None = None,
    ) -> CommitResult:
        """Widen a column's type, change whether it may be null, its default or its comment.

        Args:
            column: As ``rename_column``.
            type: A wider type; needs ``delta.enableTypeWidening``.
            nullable: False looks at all rows first.
            default: SQL without columns, for data that leave the column out; "" for null.
            comment: "" for none.

        Raises:
            InvalidInputError: There is no such column, or its type can't be widened so.
            ConstraintViolationError: Rows have null where it is to be NOT NULL.
            CommitConflictError: A concurrent commit changed the metadata or, for NOT NULL, rows.
        """
        return operations.alter_column(
            self.log, column, type=type, nullable=nullable, default=default, comment=comment
        )

    def add_constraint(self, name: str, sql: str) -> CommitResult:
        """Add a CHECK constraint: SQL that must be true for every row, also for those there are.

        Raises:
            InvalidInputError: The name is taken, or it is no condition that can be computed here.
            ConstraintViolationError: A row of the table does not satisfy it.
            CommitConflictError: A concurrent commit added rows or changed the metadata.
        """
        return operations.add_constraint(self.log, name, sql)

    def drop_constraint(self, name: str, *, missing_ok: bool = False) -> CommitResult:
        """Drop a CHECK constraint.

        Raises:
            InvalidInputError: There is none of that name (unless ``missing_ok``).
            MetadataChangedError: A concurrent commit changed the metadata.
        """
        return operations.drop_constraint(self.log, name, missing_ok=missing_ok)

    def domain_metadata(self) -> Mapping[str, str]:
        """The configuration of each metadata domain now: one request when nothing is new."""
        domains = self.log.refresh().domains
        return {name: each.configuration for name, each in domains.items() if not each.removed}

    def set_domain_metadata(self, domain: str, configuration: str) -> CommitResult:
        """Set the configuration of a metadata domain of your own.

        Raises:
            InvalidInputError: A domain under ``delta.``, which is Delta's.
            CommitConflictError: A concurrent commit set the same domain.
        """
        return operations.set_domain_metadata(self.log, domain, configuration)

    def remove_domain_metadata(self, domain: str) -> CommitResult:
        """Remove a metadata domain of your own; no commit where it is not there.

        Raises:
            InvalidInputError: A domain under ``delta.``, which is Delta's.
            CommitConflictError: A concurrent commit set the same domain.
        """
        return operations.remove_domain_metadata(self.log, domain)
