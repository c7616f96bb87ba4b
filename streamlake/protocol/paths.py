"""Paths of data files as the log spells them (PROTOCOL.md, "Add File and Remove File").

``add.path`` is a URI reference: decoded once, it must stay inside of the table's root.
"""

from __future__ import annotations

import posixpath
from urllib.parse import quote, unquote, urlsplit

from streamlake.errors import UnsafePathError

_SAFE = "/!$&'()*+,;=@-._~"


def encode_path(path: str) -> str:
    """The URI reference of a path relative to the table's root."""
    return quote(path, safe=_SAFE)


def resolve_path(uri: str, *, root_url: str) -> str:
    """The path relative to the table's root that ``uri`` names, decoded once.

    Raises:
        UnsafePathError: It leaves the root, or is no path that a file could have.
    """
    if "%" not in uri and ":" not in uri and not uri.startswith("/"):
        path = uri
    else:
        path = _inside(uri, root_url)
    parts = path.split("/")
    if not path or ".." in parts or "." in parts or "\\" in path or "\0" in path:
        raise _unsafe(uri, root_url)
    return path


def _inside(uri: str, root_url: str) -> str:
    split = urlsplit(uri)
    decoded = unquote(uri, errors="strict")
    if not split.scheme and not uri.startswith("/"):
        return decoded
    root_split = urlsplit(root_url)
    root = unquote(root_split.path or "/").rstrip("/") + "/"
    path = unquote(split.path)
    scheme = split.scheme or root_split.scheme or "file"
    if (
        scheme != (root_split.scheme or "file")
        or (split.netloc or root_split.netloc) != root_split.netloc
    ):
        raise _unsafe(uri, root_url)
    path = "/" + path.lstrip("/")
    if not path.startswith(root) or posixpath.normpath(path) != path:
        raise _unsafe(uri, root_url)
    return path[len(root) :]


def _unsafe(uri: str, root_url: str) -> UnsafePathError:
    return UnsafePathError(
        f"The log names a file outside of the table: {uri!r}.",
        where=root_url,
        remedy="Only files inside of the table's folder are read. Do not trust this log.",
    )
