"""By which columns a table is clustered (PROTOCOL.md, "Clustered Table")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from streamlake.errors import CorruptTableError
from streamlake.protocol.actions import DomainMetadata, Protocol
from streamlake.protocol.features import supports_writer_feature

CLUSTERING_DOMAIN = "delta.clustering"


class _Clustering(msgspec.Struct, rename="camel"):
    clustering_columns: list[str | Annotated[list[str], msgspec.Meta(min_length=1)]]


def clustering_columns(
    protocol: Protocol, domains: Mapping[str, DomainMetadata]
) -> tuple[tuple[str, ...], ...]:
    """The paths of the columns, by their physical names; none of a table that is not clustered.

    The protocol's example has names; Delta on Spark writes paths as lists of names.

    Raises:
        CorruptTableError: The domain can't be read.
    """
    domain = domains.get(CLUSTERING_DOMAIN)
    if domain is None or domain.removed or not supports_writer_feature(protocol, "clustering"):
        return ()
    try:
        found = msgspec.json.decode(domain.configuration, type=_Clustering).clustering_columns
    except msgspec.DecodeError as error:
        raise CorruptTableError(
            f"The domain metadata {CLUSTERING_DOMAIN} can't be read, so the table can't be written "
            "with the statistics that it needs.",
            found=f"{error}: {domain.configuration[:80]!r}",
            remedy="A faulty writer made it; have it repaired before going on.",
        ) from error
    return tuple((path,) if isinstance(path, str) else tuple(path) for path in found)
