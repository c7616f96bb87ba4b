"""Data files written ahead of the commit that makes them visible."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from streamlake.clock import SYSTEM_CLOCK, Clock
from streamlake.data.conform import Tabular, conform_parts
from streamlake.data.defaults import defaults_of
from streamlake.data.limits import DEFAULT_WRITE_LIMITS, WriteLimits
from streamlake.data.partitions import FileLayout, file_layout
from streamlake.data.rules import has_rules, table_rules
from streamlake.data.staging import FileFormat, Staging
from streamlake.data.statistics import statistics_leaves
from streamlake.errors import InvalidInputError
from streamlake.protocol.actions import AddFile, DomainMetadata, Metadata, Protocol
from streamlake.protocol.clustering import clustering_columns
from streamlake.protocol.mapping import MappingMode, column_mapping
from streamlake.protocol.properties import (
    data_skipping_num_indexed_cols,
    data_skipping_stats_columns,
)
from streamlake.storage.store import ObjectStore

TARGET_FILE_SIZE_BYTES = 128 * 2**20
"""A file is finished when it has reached this size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stager:
    """Writes data files of a table, here or in another process, for one commit to come.

    Pickles where its store and clock do. Files get fresh names and are never visible before their
    AddFiles are committed; files that never are, are left for vacuum.

    Memory: on top of the data itself about ``limits.row_group_bytes`` plus the larger of
    ``limits.open_files_bytes`` and the target file size.
    """

    store: ObjectStore
    """Rooted at the table."""
    schema_json: str
    """``metaData.schemaString``."""
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)
    """The table's properties."""
    table_id: str | None = None
    """The table's own id; None for any."""
    mapping_mode: MappingMode = "none"
    """How the names of columns in data files differ from those of the schema."""
    clustered_by: tuple[tuple[str, ...], ...] = ()
    """Columns, by their physical names, that have statistics in any case."""
    without_statistics: tuple[str, ...] = ()
    """Columns, by their physical names, that have none."""
    clock: Clock = SYSTEM_CLOCK
    target_file_size_bytes: int = TARGET_FILE_SIZE_BYTES
    limits: WriteLimits = DEFAULT_WRITE_LIMITS

    @classmethod
    def over(
        cls,
        store: ObjectStore,
        protocol: Protocol,
        metadata: Metadata,
        *,
        domains: Mapping[str, DomainMetadata] | None = None,
        clock: Clock = SYSTEM_CLOCK,
        target_file_size_bytes: int = TARGET_FILE_SIZE_BYTES,
        limits: WriteLimits = DEFAULT_WRITE_LIMITS,
    ) -> Stager:
        """A stager for the table of that definition, at the root of ``store``."""
        return cls(
            store=store,
            schema_json=metadata.schema_string,
            partition_columns=metadata.partition_columns,
            configuration=metadata.configuration,
            table_id=metadata.id,
            mapping_mode=column_mapping(protocol, metadata).mode,
            clustered_by=clustering_columns(protocol, domains or {}),
            clock=clock,
            target_file_size_bytes=target_file_size_bytes,
            limits=limits,
        )

    @property
    def schema(self) -> pa.Schema:
        """What staged data is brought to."""
        return self._layout.table

    def stage(self, data: Tabular, *, data_change: bool = True) -> tuple[AddFile, ...]:
        """Write ``data`` into as few files as the target size allows, one or more a partition.

        One request a file. Rows keep their order within a partition. No rows, no files. Generated
        columns that the data does not bring are computed.

        Args:
            data: Anything that gives Arrow data; of a stream only a part is held at a time.
            data_change: What ``add.dataChange`` shall say: False for rows that the table has
                already.

        Returns:
            What a commit needs, with statistics. The files are durable in the store.

        Raises:
            SchemaMismatchError: The data does not fit the table's schema.
            ConstraintViolationError: A row breaks NOT NULL, a constraint, an invariant, or what a
                generated column is computed from.
            UnsupportedFeatureError: A constraint of the table can't be computed here; it is named.
            InvalidInputError: No Arrow data, a target size that is not positive, or a property of
                the table that can't be read.
            StorageError: The store failed. After any error the files that this call wrote are
                removed again, as far as the store lets us.
        """
        if self.target_file_size_bytes <= 0:
            raise InvalidInputError(
                "The target size of files must be positive.",
                found=f"{self.target_file_size_bytes} bytes",
                remedy="Give a size in bytes, or leave it out.",
            )
        layout = self._layout
        leaves = statistics_leaves(
            layout.file,
            num_indexed=data_skipping_num_indexed_cols(self.configuration),
            columns=self._statistics_columns,
            always=self.clustered_by,
        )
        staging = Staging(
            self.store,
            layout,
            tuple(leaf for leaf in leaves if leaf.path[0] not in self.without_statistics),
            form=FileFormat.of(self.configuration, mapped=layout.mapping.is_mapped),
            clock=self.clock,
            data_change=data_change,
            target_file_size_bytes=self.target_file_size_bytes,
            limits=self.limits,
        )
        try:
            for part in self.conformed(data, checked=data_change):
                staging.take(part)
            return staging.finish()
        except BaseException:
            staging.abandon()
            raise

    def conformed(self, data: Tabular, *, checked: bool = True) -> Iterator[pa.Table]:
        """Parts of exactly the table's schema, as they are to be stored; nothing is written.

        Args:
            data: As ``stage``.
            checked: Whether rows must keep the table's rules; those that it has already do.

        Raises:
            StreamlakeError: As ``stage``, but for the store.
        """
        fill = defaults_of(self.schema_json, self.clock).fill
        if checked and has_rules(self.schema_json, self.configuration):
            rules = table_rules(self.schema_json, self.configuration)
            return rules.conform_parts(data, fill=fill)
        return conform_parts(data, self._layout.table, fill=fill)

    @property
    def _layout(self) -> FileLayout:
        return file_layout(self.schema_json, self.partition_columns, self.mapping_mode)

    @property
    def _statistics_columns(self) -> tuple[tuple[str, ...], ...] | None:
        """The columns that the table names for statistics, as data files call them.

        A name that no column has counts for nothing; others may have dropped its column.
        """
        named = data_skipping_stats_columns(self.configuration)
        if named is None:
            return None
        found = []
        for path in named:
            with contextlib.suppress(InvalidInputError):
                found.append(self._layout.mapping.physical_path(path))
        return tuple(found)
