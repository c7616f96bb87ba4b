"""Rewrite many small files as few large ones, without a change of data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from streamlake.arguments import check_callable, check_integer
from streamlake.data import KeptIds, Stager, TableColumns, read_file, table_columns
from streamlake.log import Log, Snapshot, Transaction, canonical_key, removal
from streamlake.protocol import AddFile, keeps_row_ids

DEFAULT_TARGET_BYTES = 128 * 2**20
FEWEST_FILES_PER_BIN = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizeResult:
    """What an optimize did."""

    version: int
    """The newest version that it committed, or read where there was nothing to do."""
    commits: int
    files_removed: int
    files_added: int
    bytes_removed: int
    bytes_added: int


def optimize(
    log: Log,
    *,
    target_file_size_bytes: int = DEFAULT_TARGET_BYTES,
    on_progress: Callable[[int, int], None] | None = None,
) -> OptimizeResult:
    """Pack small files of a partition into larger ones: one commit a bin.

    Rows keep their order within a bin, and the actions say ``dataChange=false``, so that nobody who
    follows the table sees them again. Appends go on meanwhile.

    Args:
        log: The table's log.
        target_file_size_bytes: Files of at least half of it are left alone.
        on_progress: Called after each bin with the bins done and the bins in all.

    Raises:
        InvalidInputError: No size above 0, or no function.
        ConcurrentDeleteDeleteError: A file was removed meanwhile; bins committed before stay.
    """
    check_integer("target_file_size_bytes", target_file_size_bytes, least=1)
    check_callable("on_progress", on_progress)
    snapshot = log.snapshot()
    bins = _bins(snapshot.files(), target_file_size_bytes)
    added: list[AddFile] = []
    version = read_version = snapshot.version
    waiting = {canonical_key(add.key, root_url=log.url) for chosen in bins for add in chosen}
    for done, chosen in enumerate(bins, start=1):
        written, version = rewrite(
            log, snapshot, chosen, target_file_size_bytes, read_version=read_version
        )
        added += written
        waiting -= {canonical_key(add.key, root_url=log.url) for add in chosen}
        read_version = log.untouched_since(read_version, waiting)
        if on_progress is not None:
            on_progress(done, len(bins))
    removed = [add for chosen in bins for add in chosen]
    return OptimizeResult(
        version=version,
        commits=len(bins),
        files_removed=len(removed),
        files_added=len(added),
        bytes_removed=sum(add.size for add in removed),
        bytes_added=sum(add.size for add in added),
    )


def _bins(files: Iterable[AddFile], target_bytes: int) -> list[list[AddFile]]:
    """Neighbouring small files of one partition, as many as make one file of the target size."""
    partitions: dict[tuple[tuple[str, str | None], ...], list[AddFile]] = {}
    for add in files:
        if add.size < target_bytes // 2:
            partitions.setdefault(tuple(sorted(add.partition_values.items())), []).append(add)
    bins: list[list[AddFile]] = []
    for small in partitions.values():
        current: list[AddFile] = []
        size = 0
        for add in small:
            if current and size + add.size > target_bytes:
                bins.append(current)
                current, size = [], 0
            current.append(add)
            size += add.size
        bins.append(current)
    return [chosen for chosen in bins if len(chosen) >= FEWEST_FILES_PER_BIN]


def rewrite(
    log: Log,
    snapshot: Snapshot,
    chosen: Sequence[AddFile],
    target_bytes: int,
    *,
    read_version: int,
) -> tuple[tuple[AddFile, ...], int]:
    """Rewrite one bin in one commit; returns the new files and the version.

    ``read_version`` is the snapshot's, or a later one at which the files are known to be there.
    """
    table = table_columns(snapshot.protocol, snapshot.metadata, where=log.url)
    kept = None
    if keeps_row_ids(snapshot.protocol, snapshot.metadata):
        kept = KeptIds.of(table, snapshot.metadata.configuration, where=log.url)
    reader = pa.RecordBatchReader.from_batches(
        kept.columns.schema if kept else snapshot.schema,
        (batch for add in chosen for batch in _rows(log, add, table, kept).to_batches()),
    )
    stager = Stager.over(
        log.store,
        snapshot.protocol,
        snapshot.metadata,
        domains=log.head.domains,
        clock=log.clock,
        target_file_size_bytes=target_bytes,
    )
    if kept:
        stager = kept.stager(stager)
    written = tuple(stager.stage(reader, data_change=False))
    now_ms = log.clock.now_ms()
    result = log.commit(
        Transaction(
            operation="OPTIMIZE",
            operation_parameters={"predicate": "[]", "targetSize": str(target_bytes)},
            adds=written,
            removes=tuple(removal(add, now_ms=now_ms, data_change=False) for add in chosen),
            read_version=read_version,
            staged_schema=snapshot.metadata.schema_string,
            staged_partitions=snapshot.metadata.partition_columns,
            staged_configuration=snapshot.metadata.configuration,
            staged_table_id=snapshot.metadata.id,
            keeps_row_ids=kept is not None,
        )
    )
    return written, result.version


def _rows(log: Log, add: AddFile, table: TableColumns, kept: KeptIds | None) -> pa.Table:
    """The rows of a file, with the ids that they keep where the table has them kept."""
    return read_file(log.store, add, table) if kept is None else kept.read(log.store, add)
