"""What a commit did in numbers, under Delta's names: ``commitInfo.operationMetrics``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamlake.protocol import AddFile, RemoveFile


def operation_metrics(
    operation: str, adds: Sequence[AddFile], removes: Sequence[RemoveFile]
) -> Mapping[str, str]:
    """The metrics of an operation, as strings, as Delta on Spark has them.

    Rows are left out where a file does not say how many it has; nothing is told of a commit that
    touches no file.
    """
    if not (adds or removes):
        return {}
    removed = {
        "numRemovedFiles": len(removes),
        "numRemovedBytes": sum(r.size or 0 for r in removes),
    }
    added_bytes = sum(add.size for add in adds)
    if operation == "OPTIMIZE":
        found = removed | {"numAddedFiles": len(adds), "numAddedBytes": added_bytes}
    else:
        name = "numAddedFiles" if operation == "STREAMING UPDATE" else "numFiles"
        found = {name: len(adds), "numOutputBytes": added_bytes, **_rows(adds)}
        found |= removed if removes else {}
    return {name: str(count) for name, count in found.items()}


def _rows(adds: Sequence[AddFile]) -> Mapping[str, int]:
    counts = [add.num_records for add in adds]
    known = [count for count in counts if count is not None]
    return {"numOutputRows": sum(known)} if len(known) == len(counts) else {}
