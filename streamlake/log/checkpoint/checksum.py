"""Version checksum files: what a version comes to, by whom wrote it (PROTOCOL.md, that section)."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import msgspec

from streamlake.errors import (
    ConditionalPutUnsupportedError,
    CorruptTableError,
    ObjectExistsError,
    ObjectNotFoundError,
)
from streamlake.protocol import (
    DomainMetadata,
    Metadata,
    Protocol,
    SetTransaction,
    checksum_path,
)
from streamlake.storage import ObjectStore

logger = logging.getLogger(__name__)

MOST_CHECKSUM_BYTES = 64 * 2**20
"""A larger file is not read: some writers put every file of the table into it."""


class VersionChecksum(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True
):
    """The content of a version checksum file, less its histograms and its list of files."""

    table_size_bytes: int
    num_files: int
    num_metadata: int
    num_protocol: int
    metadata: Metadata | None = None
    """Required by the protocol; older writers left it out, as they did ``protocol``."""
    protocol: Protocol | None = None
    in_commit_timestamp_opt: int | None = None
    """Milliseconds since the Unix epoch; where in-commit timestamps are enabled."""
    set_transactions: tuple[SetTransaction, ...] | None = None
    domain_metadata: tuple[DomainMetadata, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StateTotals:
    """What is compared with a version checksum."""

    protocol: Protocol
    metadata: Metadata
    num_files: int
    size_bytes: int


def read_checksum(store: ObjectStore, version: int) -> VersionChecksum | None:
    """The checksum of a version: one request. None where it is missing or can't be decoded.

    The file only ever confirms: readers must go on without it.
    """
    path = checksum_path(version)
    try:
        data = store.get(path)
    except ObjectNotFoundError:
        return None
    if len(data) > MOST_CHECKSUM_BYTES:
        logger.warning("%s/%s is not used: %d bytes", store.url, path, len(data))
        return None
    try:
        return msgspec.json.decode(data, type=VersionChecksum)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        logger.warning("%s/%s is not used: %s", store.url, path, error)
        return None


def check_totals(found: VersionChecksum, state: StateTotals, *, where: str) -> None:
    """Refuse a state that its checksum contradicts.

    Raises:
        CorruptTableError: Naming each difference.
    """
    differences = [*_differences(found, state)]
    if differences:
        raise CorruptTableError(
            "The table is not what its version checksum says.",
            where=where,
            found="; ".join(differences),
            remedy="A file of the log was changed, lost or written by a faulty writer: restore it. "
            "If other engines agree with what the log says, the checksum file is wrong: delete it.",
        )


def _differences(found: VersionChecksum, state: StateTotals) -> Iterator[str]:
    if found.num_files != state.num_files:
        yield f"{state.num_files} files, where the checksum says {found.num_files}"
    if found.table_size_bytes != state.size_bytes:
        yield f"{state.size_bytes} bytes, where the checksum says {found.table_size_bytes}"
    if (found.num_metadata, found.num_protocol) != (1, 1):
        yield f"a checksum of {found.num_metadata} metaData and {found.num_protocol} protocols"
    if found.protocol is not None and _protocol(found.protocol) != _protocol(state.protocol):
        yield "another protocol"
    if found.metadata is not None and not _is_same(found.metadata, state.metadata):
        yield "another metaData"


def _protocol(protocol: Protocol) -> tuple[int, int, frozenset[str], frozenset[str]]:
    return (
        protocol.min_reader_version,
        protocol.min_writer_version,
        frozenset(protocol.reader_features or ()),
        frozenset(protocol.writer_features or ()),
    )


def _is_same(one: Metadata, other: Metadata) -> bool:
    """Whether they say the same of the table; a schema may be spelt in several ways."""
    said = [(m.id, m.partition_columns, m.configuration) for m in (one, other)]
    return said[0] == said[1] and _schema(one) == _schema(other)


def _schema(metadata: Metadata) -> object:
    try:
        decoded: object = msgspec.json.decode(metadata.schema_string)
    except msgspec.DecodeError:
        return metadata.schema_string
    return decoded


def write_checksum(store: ObjectStore, version: int, make: Callable[[], VersionChecksum]) -> None:
    """Write the checksum of a version unless it has one: one request, and no error if it fails.

    Written once and never replaced; on a store that can't tell whether it is there, not at all.
    """
    with contextlib.suppress(ObjectExistsError, ConditionalPutUnsupportedError):
        store.put_if_absent(checksum_path(version), msgspec.json.encode(make()))
