"""A table as a Source."""

from __future__ import annotations


class TableSource:
    """Rows of a table as they are committed."""
