"""Change what a table is without touching its rows: one commit of metadata."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from streamlake.arguments import names_of
from streamlake.errors import (
    ConcurrentTransactionError,
    InvalidInputError,
    UnsupportedFeatureError,
)
from streamlake.log import WHOLE_TABLE, CommitResult, Head, Log, Transaction
from streamlake.operations.anew import anew
from streamlake.operations.row_tracking import give_row_ids
from streamlake.protocol import (
    DomainMetadata,
    Metadata,
    Protocol,
    check_properties,
    check_writable,
    keeps_row_ids,
    requested_features,
    upgraded_protocol,
)
from streamlake.protocol import properties as props
from streamlake.protocol.assignment import (
    assigned,
    check_mapping_change,
    check_row_tracking,
    maps_columns,
)
from streamlake.protocol.features import features_in_use

MAX_DOMAIN_CHARACTERS = 2**20
"""How long the configuration of a domain may be: every writer keeps all of them in memory."""


def change_metadata(
    log: Log,
    head: Head,
    after: Metadata,
    *,
    operation: str,
    parameters: Mapping[str, Any],
    requested: frozenset[str] = frozenset(),
    read_version: int | None = None,
) -> CommitResult:
    """Commit ``after`` as the table's metadata, with the least protocol that it needs.

    Nothing is committed where nothing changes; then the result is that of a repeat.

    Args:
        log: The table's log.
        head: What the change is based on.
        after: The head's metadata, changed.
        operation: As the log shall name it.
        parameters: As the log shall show them.
        requested: Features that are asked for by name.
        read_version: The version whose rows were all looked at; None where none were.

    Raises:
        UnsupportedFeatureError: The table would need a feature that is not supported.
        MetadataChangedError: A concurrent commit changed the metadata, too.
    """
    before = head.metadata
    protocol = upgraded_protocol(head.protocol, before, after, requested=requested)
    after = assigned(
        protocol or head.protocol,
        after,
        new_id=log.clock.new_id,
        had_names=not maps_columns(head.protocol, before),
    )
    if after == before and protocol is None:
        return CommitResult(version=head.version, already_committed=True)
    _check_supported(log, head, protocol or head.protocol, after)
    return log.commit(
        Transaction(
            operation=operation,
            operation_parameters=parameters,
            protocol=protocol,
            metadata=after,
            read_version=head.version if read_version is None else read_version,
            reads=() if read_version is None else (WHOLE_TABLE,),
        )
    )


def _check_supported(log: Log, head: Head, protocol: Protocol, after: Metadata) -> None:
    try:
        check_writable(protocol, after, where=log.url)
    except UnsupportedFeatureError as error:
        check_writable(head.protocol, head.metadata, where=log.url)  # else the change brings it
        error.remedy = "Leave that out of the change, or make it by an engine that supports it."
        raise


def set_properties(log: Log, properties: Mapping[str, str]) -> CommitResult:
    """Set table properties by Delta's names, or of the user's own.

    ``delta.feature.<name> = supported`` adds a feature to the protocol. Setting
    ``delta.columnMapping.mode`` to "name" gives every column the physical name that it has. Setting
    ``delta.enableRowTracking`` on a table with rows takes commits before that give them ids.

    Raises:
        InvalidInputError: A name or value of Delta's that can't be, or a change that the table's
            files do not allow.
        UnsupportedFeatureError: A property asks for a feature that is not supported.
        MetadataChangedError: A concurrent commit changed the metadata, too.
    """
    head = log.refresh()
    asked = props.spelt(properties)
    before = head.metadata
    check_properties(asked)
    kept = props.kept_properties(asked)
    configuration = {**before.configuration, **kept}
    if any(map(props.is_constraint, asked)):
        raise InvalidInputError(
            "A constraint can't be set as a property: the rows must be checked first.",
            found=", ".join(asked),
            remedy="Add it with add_constraint(name, expression).",
        )
    check_mapping_change(before.configuration, configuration)
    check_row_tracking(configuration)
    read_version = None
    if not keeps_row_ids(head.protocol, before) and props.flag(kept, props.ENABLE_ROW_TRACKING):
        if log.snapshot(head.version).files():
            return _track_rows(log, head, asked)
        read_version = head.version
    return change_metadata(
        log,
        head,
        msgspec.structs.replace(before, configuration=_consistent(configuration)),
        operation="SET TBLPROPERTIES",
        parameters={"properties": as_json(asked)},
        requested=requested_features(asked) | features_in_use(kept, "{}"),
        read_version=read_version,
    )


def _track_rows(log: Log, head: Head, asked: Mapping[str, str]) -> CommitResult:
    """Enable row tracking on a table with rows: all else first, then ids, then the property."""
    kept = props.kept_properties(asked)
    others = {name: value for name, value in kept.items() if name != props.ENABLE_ROW_TRACKING}
    interim = {**head.metadata.configuration, **others}
    interim.pop(props.ENABLE_ROW_TRACKING, None)
    change_metadata(
        log,
        head,
        msgspec.structs.replace(head.metadata, configuration=_consistent(interim)),
        operation="UPGRADE PROTOCOL",
        parameters={"feature": "rowTracking", "properties": as_json(others)},
        requested=requested_features(asked) | {"rowTracking"},
    )
    give_row_ids(log)
    head = log.head
    before = head.metadata
    configuration = {**before.configuration, **kept}
    return change_metadata(
        log,
        head,
        msgspec.structs.replace(before, configuration=_consistent(configuration)),
        operation="SET TBLPROPERTIES",
        parameters={"properties": as_json(asked)},
    )


def unset_properties(log: Log, names: Iterable[str], *, missing_ok: bool = False) -> CommitResult:
    """Unset table properties, which have their defaults then.

    Raises:
        InvalidInputError: One that is not set (unless ``missing_ok``), that writers keep for
            themselves, or that the table's files depend on.
        MetadataChangedError: A concurrent commit changed the metadata, too.
    """
    head = log.refresh()
    names = names_of("names", names)
    before = head.metadata
    missing = [name for name in names if name not in before.configuration]
    if missing and not missing_ok:
        raise InvalidInputError(
            f"The table property {missing[0]} is not set.",
            where=log.url,
            found=", ".join(before.configuration) or "no properties",
            remedy="Leave it out, or pass missing_ok=True.",
        )
    kept_by_writers = [name for name in names if name in props.INTERNAL]
    if kept_by_writers:
        raise InvalidInputError(
            f"The table property {kept_by_writers[0]} is kept by writers and can't be unset.",
            where=log.url,
            remedy="Leave it out.",
        )
    constraints = [name for name in names if props.is_constraint(name)]
    if constraints:
        raise InvalidInputError(
            "A constraint can't be unset as a property.",
            found=constraints[0],
            remedy="Drop it with drop_constraint(name).",
        )
    configuration = {k: v for k, v in before.configuration.items() if k not in names}
    check_mapping_change(before.configuration, configuration)
    return change_metadata(
        log,
        head,
        msgspec.structs.replace(before, configuration=_consistent(configuration)),
        operation="UNSET TBLPROPERTIES",
        parameters={"properties": as_json(names), "ifExists": str(missing_ok).lower()},
    )


def _consistent(configuration: Mapping[str, str]) -> dict[str, str]:
    """Without the note since when commits tell their time, where they do so no longer."""
    if props.flag(configuration, props.ENABLE_IN_COMMIT_TIMESTAMPS):
        return dict(configuration)
    since = {
        props.IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP,
        props.IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION,
    }
    return {name: value for name, value in configuration.items() if name not in since}


# -------------------------------------------------------------------------------------------------
# Domain metadata


def set_domain_metadata(log: Log, domain: str, configuration: str) -> CommitResult:
    """Set the configuration of a domain of the user's own (PROTOCOL.md, "Domain Metadata").

    The protocol gets the feature ``domainMetadata`` where it lacks it.

    Raises:
        InvalidInputError: A domain under ``delta.``, which is Delta's, or too long a configuration.
        CommitConflictError: A concurrent commit set the same domain.
    """
    _check_domain(domain)
    if not isinstance(configuration, str) or len(configuration) > MAX_DOMAIN_CHARACTERS:
        raise InvalidInputError(
            f"The configuration of the domain {domain!r} must be a string, and not too long.",
            found=f"{type(configuration).__name__}; at most {MAX_DOMAIN_CHARACTERS} characters",
            remedy="Encode it, as JSON for example; keep what is large in a file.",
        )
    action = DomainMetadata(domain, configuration, removed=False)
    known = log.refresh().domains.get(domain)

    def commit() -> CommitResult:
        head = log.refresh()
        if head.domains.get(domain) != known:
            raise ConcurrentTransactionError(
                f"A concurrent commit set the domain metadata {domain!r}, as this one does.",
                where=log.url,
                remedy="Read the domain again and decide anew.",
            )
        return _commit_domain(log, head, action)

    return anew(commit)


def remove_domain_metadata(log: Log, domain: str) -> CommitResult:
    """Remove a domain of the user's own; one that is not there is left so, without a commit.

    Raises:
        InvalidInputError: A domain under ``delta.``, which is Delta's.
        CommitConflictError: A concurrent commit set the same domain.
    """
    _check_domain(domain)
    head = log.refresh()
    known = head.domains.get(domain)
    if known is None or known.removed:
        return CommitResult(version=head.version, already_committed=True)
    return _commit_domain(log, head, DomainMetadata(domain, known.configuration, removed=True))


def _commit_domain(log: Log, head: Head, action: DomainMetadata) -> CommitResult:
    requested = frozenset({"domainMetadata"})
    protocol = upgraded_protocol(head.protocol, head.metadata, head.metadata, requested=requested)
    check_writable(protocol or head.protocol, head.metadata, where=log.url)
    return log.commit(
        Transaction(
            operation="SET DOMAIN METADATA" if not action.removed else "REMOVE DOMAIN METADATA",
            operation_parameters={"domain": action.domain},
            protocol=protocol,
            domains=(action,),
            read_version=head.version,
        )
    )


def _check_domain(domain: str) -> None:
    if not isinstance(domain, str) or not domain or domain.lower().startswith(props.PREFIX):
        raise InvalidInputError(
            f"{domain!r} is no domain that a user may set.",
            found='names under "delta." are the table format\'s own',
            remedy='Give it a name of your own, such as "com.example.catalog".',
        )


def as_json(value: object) -> str:
    """A parameter of an operation as other engines write it into the log."""
    return msgspec.json.encode(value).decode()
