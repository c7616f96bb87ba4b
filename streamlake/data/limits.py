"""The bounds of reading and writing data files."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimits:
    """Named bounds; passing one is a LimitExceededError, unless the field says otherwise."""

    footer_bytes: int = 64 * 2**20
    """The largest footer of a data file that is parsed, and the largest string inside of it."""
    footer_elements: int = 10_000_000
    """The most elements of any list in the footer."""
    decoded_bytes: int = 16 * 2**30
    """The most bytes of Arrow data that one file may become."""
    deletion_vector_bytes: int = 256 * 2**20
    """The most bytes of one deletion vector. It takes about as many in memory."""
    whole_file_bytes: int = 8 * 2**20
    """Files up to this size are fetched in one request; of larger ones only the columns that are
    asked for, in several. No error."""
    batch_rows: int = 65_536
    """The most rows that are decoded in one step and given at once by ``iter_file``. No error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteLimits:
    """Named bounds of what a Stager holds in memory; passing one writes, and is no error."""

    row_group_bytes: int = 64 * 2**20
    """Rows are gathered up to this size, as Arrow has them, and then encoded together."""
    row_group_rows: int = 1024 * 1024
    """The most rows that are encoded together."""
    open_files_bytes: int = 256 * 2**20
    """What the unfinished files of all partitions may take; past it the largest is finished."""
    open_files: int = 1024
    """How many partitions may have an unfinished file; past it the largest is finished."""


DEFAULT_READ_LIMITS = ReadLimits()
DEFAULT_WRITE_LIMITS = WriteLimits()
