"""What a path of an object may look like, the same for every store."""

from __future__ import annotations

from streamlake.errors import StorageError

_REMEDY = 'Give a path relative to the root, its parts joined by single "/".'


def check_path(path: str, *, url: str) -> None:
    """Refuse a path that does not name an object below the root of the store at ``url``.

    Refused are: the empty path, an absolute one, empty parts ("a//b", "a/"), the parts "." and
    "..", NUL, and what has no bytes (half a surrogate pair; a byte of a file name that is no UTF-8
    may stand as Python escapes it).

    Raises:
        StorageError: It is one of these.
    """
    framed = f"/{path}/"
    if (
        "//" in framed
        or "/../" in framed
        or "/./" in framed
        or "\0" in framed
        or not (path.isascii() or _has_bytes(path))
    ):
        raise StorageError(
            "The path does not name an object below the store's root.",
            where=url,
            found=repr(path),
            remedy=_REMEDY,
        )


def check_prefix(prefix: str, start_after: str, *, url: str) -> None:
    """Refuse a prefix whose folders leave the root of the store at ``url``.

    Its last part is only the beginning of a name: ".." finds "..a". ``start_after`` is compared and
    never opened, so it may be any text.

    Raises:
        StorageError: A folder in the prefix is one that no path may have, or one of the two has no
            bytes.
    """
    folder, slash, name = prefix.rpartition("/")
    if slash:
        check_path(folder, url=url)
    check_path(f"_{name}", url=url)
    check_path(f"_{start_after.replace('/', '_')}", url=url)


def check_range(start: int, length: int, *, path: str) -> None:
    """Refuse a range with a negative bound.

    Raises:
        StorageError: ``start`` or ``length`` is negative.
    """
    if start < 0 or length < 0:
        raise StorageError(
            "A byte range needs a start and a length of at least 0.",
            where=path,
            found=f"start {start}, length {length}",
            remedy="Ask stat for the size first, if the end of the object is wanted.",
        )


def path_key(path: str) -> bytes:
    """The bytes that paths sort by."""
    return path.encode("utf-8", "surrogateescape")


def _has_bytes(path: str) -> bool:
    try:
        path_key(path)
    except UnicodeEncodeError:
        return False
    return True
