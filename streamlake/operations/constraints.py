"""CHECK constraints come and go (PROTOCOL.md, "CHECK Constraints")."""

from __future__ import annotations

import msgspec

from streamlake.data import Rule, check_rule, read_file, table_columns
from streamlake.data.predicates import columns_read
from streamlake.errors import ConstraintViolationError, InvalidInputError
from streamlake.log import CommitResult, Head, Log
from streamlake.operations.alter import change_metadata
from streamlake.protocol import schema_from_json
from streamlake.protocol.properties import CONSTRAINT_PREFIX


def add_constraint(log: Log, name: str, sql: str) -> CommitResult:
    """Add a condition that every row must satisfy from now on; those that are there are checked.

    Args:
        log: The table's log.
        name: What it is called; kept in small letters.
        sql: Over the table's columns; null is not enough.

    Raises:
        InvalidInputError: The name is taken, or it is no condition that can be computed here.
        ConstraintViolationError: A row does not satisfy it.
        CommitConflictError: A concurrent commit added rows or changed the metadata.
    """
    head = log.refresh()
    if not isinstance(name, str) or not name.strip():
        raise InvalidInputError(
            "A constraint needs a name.",
            where=log.url,
            found=repr(name),
            remedy='Name it by a string, as in add_constraint("positive", "id > 0").',
        )
    if _key(head, name) is not None:
        raise InvalidInputError(
            f"The table has a constraint {name!r} already.",
            where=log.url,
            found=head.metadata.configuration[_key(head, name) or ""],
            remedy="Choose another name, or drop the one that is there first.",
        )
    schema = schema_from_json(head.metadata.schema_string, where=log.url)
    _check_rows(log, head, check_rule(name, sql, schema))
    key = f"{CONSTRAINT_PREFIX}{name.lower()}"  # by which other engines look for it
    configuration = {**head.metadata.configuration, key: sql}
    return change_metadata(
        log,
        head,
        msgspec.structs.replace(head.metadata, configuration=configuration),
        operation="ADD CONSTRAINT",
        parameters={"name": name, "expr": sql},
        read_version=head.version,
    )


def drop_constraint(log: Log, name: str, *, missing_ok: bool = False) -> CommitResult:
    """Drop a CHECK constraint.

    Raises:
        InvalidInputError: There is none of that name (unless ``missing_ok``).
        MetadataChangedError: A concurrent commit changed the metadata.
    """
    head = log.refresh()
    key = _key(head, name)
    if key is None and not missing_ok:
        raise InvalidInputError(
            f"The table has no constraint {name!r}.",
            where=log.url,
            found=_names(head),
            remedy="Check the name, or pass missing_ok=True.",
        )
    configuration = {k: v for k, v in head.metadata.configuration.items() if k != key}
    return change_metadata(
        log,
        head,
        msgspec.structs.replace(head.metadata, configuration=configuration),
        operation="DROP CONSTRAINT",
        parameters={"name": name, "existed": str(key is not None).lower()},
    )


def _key(head: Head, name: str) -> str | None:
    """The property of a constraint, whatever the case of its name."""
    wanted = f"{CONSTRAINT_PREFIX}{name}".lower()
    return next((key for key in head.metadata.configuration if key.lower() == wanted), None)


def _names(head: Head) -> str:
    """The constraints that there are, for whoever asked for another one."""
    keys = [key for key in head.metadata.configuration if key.startswith(CONSTRAINT_PREFIX)]
    return ", ".join(key.removeprefix(CONSTRAINT_PREFIX) for key in keys) or "no constraints"


def _check_rows(log: Log, head: Head, rule: Rule) -> None:
    """Refuse a rule that a row of the table breaks; one file is in memory at a time."""
    table = table_columns(head.protocol, head.metadata, where=log.url)
    columns = columns_read(rule.condition)
    for add in log.snapshot(head.version).files():
        rows = read_file(log.store, add, table, columns=columns)
        try:
            rule.check(rows)
        except ConstraintViolationError as error:
            raise ConstraintViolationError(
                f"The {rule.name} can't be added: rows of the table break it.",
                where=log.url,
                found=error.found,
                remedy="Correct or remove those rows first; the table stays as it is.",
            ) from error
