"""What a marker may be (PROTOCOL.md, "Transaction Identifiers")."""

from __future__ import annotations

from streamlake.errors import InvalidInputError
from streamlake.protocol.actions import MAX_INT64, SetTransaction


def validate_marker(marker: SetTransaction) -> None:
    """Refuse a marker that the log can't hold.

    Raises:
        InvalidInputError: An app_id that is no string, empty, or without a UTF-8 form, or a version
            that is no whole number from 0 to 2**63 - 1.
    """
    if not _is_text(marker.app_id):
        raise InvalidInputError(
            "A marker needs an app_id.",
            found=repr(marker.app_id),
            remedy="Name the writer by a string that stays the same when it starts again.",
        )
    version = marker.version
    if isinstance(version, bool) or not isinstance(version, int) or not 0 <= version <= MAX_INT64:
        raise InvalidInputError(
            f"The marker {marker.app_id!r} has a version that is no int64 from 0.",
            found=repr(version),
            remedy="Use a whole number from 0 to 2**63 - 1 that rises, such as an offset.",
        )


def _is_text(app_id: object) -> bool:
    try:
        return isinstance(app_id, str) and bool(app_id.encode())
    except UnicodeEncodeError:
        return False
