"""SQL expressions over a table's columns: conditions of readers, constraints of tables.

``parse`` turns text into a ``tree`` by the rules of ``build``; ``evaluate`` computes a tree over
rows with ``functions``, ``casts`` and ``compare``; ``skipping`` computes it over what
``statistics`` and partition values tell of files (``facts``), so that ``selection`` can
leave out those without a match. ``predicate`` is what the rest of streamlake uses.
"""

from streamlake.data.predicates.evaluate import evaluate
from streamlake.data.predicates.predicate import (
    SqlPredicate,
    cast_to,
    columns_read,
    condition,
    expression,
    matching_files,
    matching_rows,
    read_predicate,
    same_as_column,
)
from streamlake.data.predicates.tree import Expression

__all__ = [
    "Expression",
    "SqlPredicate",
    "cast_to",
    "columns_read",
    "condition",
    "evaluate",
    "expression",
    "matching_files",
    "matching_rows",
    "read_predicate",
    "same_as_column",
]
