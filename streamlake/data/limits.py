"""The bounds of reading data files."""

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
    whole_file_bytes: int = 8 * 2**20
    """Files up to this size are fetched in one request; of larger ones only the columns that are
    asked for, in several. No error."""
    batch_rows: int = 65_536
    """The most rows that are decoded in one step and given at once by ``iter_file``. No error."""


DEFAULT_READ_LIMITS = ReadLimits()
