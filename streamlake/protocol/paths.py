"""Paths in the log: how they are written, and how they are read safely.

``add.path`` and its like are URI references (RFC 2396): URL-encoded, relative to the table's root
or absolute. They are decoded exactly once and may not leave the root, whatever they say.
"""

from __future__ import annotations

import re
from typing import NamedTuple, NoReturn
from urllib.parse import quote, unquote_to_bytes

from streamlake.errors import CorruptTableError, InvalidInputError, UnsafePathError

_UNQUOTED = "/-_.!~*'();@&=+$,"
"""Legal in a path by RFC 2396. ":" is left out, since a scheme may end with it."""
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):")
_ALIASES = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "gcs": "gs"}
_PLAIN = re.compile(r"(?![/])(?!.*//)[^%:\\\x00]+", re.DOTALL)
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_MAX_DECODINGS = 8
"""How often a name is decoded while it is looked for dots that hide behind layers of encoding."""


class _Location(NamedTuple):
    """An absolute URI, decoded and in its parts."""

    scheme: str
    authority: str
    segments: tuple[str, ...]


def encode_path(path: str) -> str:
    """The URI reference that ``add.path`` holds for a file.

    Args:
        path: Where the file is in the store, relative to the table's root, not encoded.

    Raises:
        InvalidInputError: The path has no UTF-8 form (half a surrogate pair).
    """
    try:
        return quote(path, safe=_UNQUOTED)
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            "The path can't be written as UTF-8.",
            found=repr(path),
            remedy="Use names of whole Unicode characters.",
        ) from error


def resolve_path(uri: str, *, root_url: str) -> str:
    """Where the file that a path in the log names is in the store, relative to the table's root.

    Decoded once. Absolute URIs inside of the root become relative; ``s3a`` is ``s3``, and a path
    that begins with "/" is one of the root's own file system or bucket. Single dots and doubled
    slashes go, as Hadoop drops them.

    Args:
        uri: As the log spells it.
        root_url: The table's root as its store gives it: percent-encoded.

    Raises:
        UnsafePathError: It leaves the root or could: "..", also encoded once or more often, a
            backslash, NUL, another scheme or bucket, or a folder beside the root.
        CorruptTableError: It is no URI reference: a "%" that encodes nothing, no UTF-8, no name.
    """
    if _PLAIN.fullmatch(uri):
        segments = uri.split("/")
        if not any(segment in {"", ".", ".."} for segment in segments):
            return uri
    location = _parse(uri, root_url)
    segments = list(location.segments)
    _check_segments(segments, uri, root_url)
    if _is_absolute(uri):
        root = _root(root_url)
        depth = len(root.segments)
        if location[:2] != root[:2] or tuple(segments[:depth]) != root.segments:
            _refuse("it lies outside of the table", uri, root_url)
        segments = segments[depth:]
    if not segments:
        _corrupt("it names no file", uri, root_url)
    return "/".join(segments)


def canonical_path(uri: str, *, root_url: str) -> str:
    """One spelling for all that name the same file, safe or not; for comparing, never for opening.

    What lies in the table is spelt as ``resolve_path`` gives it, what doesn't as an absolute URI
    without encoding; what is no URI reference stays as it is. Never raises.
    """
    try:
        return resolve_path(uri, root_url=root_url)
    except (UnsafePathError, CorruptTableError):
        pass
    try:
        location = _parse(uri, root_url)
    except CorruptTableError:
        return uri
    path = "/".join(location.segments)
    return f"{location.scheme}://{location.authority}/{path}" if _is_absolute(uri) else path


def _parse(uri: str, root_url: str) -> _Location:
    """The parts of a URI reference, decoded; what it leaves out is the root's."""
    match = _SCHEME.match(uri)
    if match is None:
        root = _root(root_url)
        return _Location(root.scheme, root.authority, _segments(uri, uri, root_url))
    scheme = match[1].lower()
    rest = uri[match.end() :]
    authority = ""
    if rest.startswith("//"):
        authority, _, rest = rest[2:].partition("/")
    if scheme == "file" and authority == "localhost":
        authority = ""
    segments = _segments(rest, uri, root_url)
    return _Location(_ALIASES.get(scheme, scheme), authority, segments)


def _root(root_url: str) -> _Location:
    return _parse(root_url if _SCHEME.match(root_url) else f"file://{root_url}", "file:///")


def _segments(path: str, uri: str, root_url: str) -> tuple[str, ...]:
    if _BROKEN_ESCAPE.search(path):
        _corrupt('a "%" in it encodes nothing', uri, root_url)
    try:
        decoded = unquote_to_bytes(path).decode()
    except UnicodeError:
        _corrupt("it is not UTF-8", uri, root_url)
    return tuple(segment for segment in decoded.split("/") if segment not in {"", "."})


def _is_absolute(uri: str) -> bool:
    return uri.startswith("/") or _SCHEME.match(uri) is not None


def _check_segments(segments: list[str], uri: str, root_url: str) -> None:
    for segment in segments:
        if segment == ".." or "\\" in segment or "\x00" in segment:
            _refuse('it holds "..", a backslash or NUL', uri, root_url)
        # A partition's folder ("a=b") may well hold an encoded slash: the value does.
        if "%" in segment and "=" not in segment and _hides_dots(segment):
            _refuse("dots or slashes hide in it behind more than one encoding", uri, root_url)


def _hides_dots(segment: str) -> bool:
    for _ in range(_MAX_DECODINGS):
        decoded = unquote_to_bytes(segment).decode(errors="replace")
        if decoded == segment:
            return False
        segment = decoded
        parts = segment.replace("\\", "/").split("/")
        if ".." in parts or "." in parts or "\x00" in segment:
            return True
    return True


def _refuse(why: str, uri: str, root_url: str) -> NoReturn:
    raise UnsafePathError(
        f"A path in the log is unsafe: {why}.",
        where=root_url,
        found=uri[:200],
        remedy="Files of a table must lie below its root. Find out who wrote this path; "
        "copy a shallow clone's files into the table.",
    )


def _corrupt(why: str, uri: str, root_url: str) -> NoReturn:
    raise CorruptTableError(
        f"A path in the log can't be understood: {why}.",
        where=root_url,
        found=uri[:200],
        remedy="The log was garbled or written by a faulty writer; restore the file that holds it.",
    )
