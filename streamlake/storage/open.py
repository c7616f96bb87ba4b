"""From a URL to the store that serves it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from streamlake.errors import InvalidInputError
from streamlake.storage.local import LocalStore
from streamlake.storage.memory import memory_store
from streamlake.storage.store import ObjectStore

_SUPPORTED = "a path, file:///path, memory://name, s3://bucket/path"


def open_store(
    url: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None
) -> ObjectStore:
    """The store at ``url``. Connects to nothing and creates nothing yet.

    Args:
        url: A path of this machine (taken literally, "%" included), ``file:///path``
            (percent-decoded once; Hadoop's ``file:/path`` too), ``memory://name`` (one store a name
            in this process), or ``s3://bucket/path``.
        storage_options: For ``s3://`` the options of ``ObstoreStore.from_url``; no other store
            takes any.

    Raises:
        InvalidInputError: The scheme is not supported, the URL is malformed, or an option is
            unknown.
    """
    if not isinstance(url, (str, os.PathLike)):
        raise InvalidInputError(
            "A location is a path or a URL.",
            found=repr(url),
            remedy=f"Give a str or a pathlib.Path; supported: {_SUPPORTED}.",
        )
    text = os.fspath(url)
    if storage_options is not None and not isinstance(storage_options, Mapping):
        raise InvalidInputError(
            "storage_options must be a mapping of names to values.",
            found=f"a {type(storage_options).__name__}",
            remedy='Give a dictionary, such as {"aws_region": "eu-central-1"}.',
        )
    options = dict(storage_options or {})
    scheme, separator, _ = text.partition(":")
    if isinstance(url, os.PathLike) or not separator or "/" in scheme:
        _refuse_options(options, text)
        return LocalStore(text)
    match scheme.lower():
        case "file":
            _refuse_options(options, text)
            return LocalStore(_file_path(text))
        case "memory":
            _refuse_options(options, text)
            return memory_store(_memory_name(text))
        case "s3" | "s3a":
            from streamlake.storage.object import ObstoreStore  # noqa: PLC0415 - loads a client

            return ObstoreStore.from_url(text, options)
    raise InvalidInputError(
        f"The scheme {scheme!r} is not supported.",
        where=_without_userinfo(text),
        found=f"supported: {_SUPPORTED}",
        remedy="Give one of these; a local path that holds a colon is given as file:///...",
    )


def _file_path(url: str) -> str:
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost") or parts.query or parts.fragment or not parts.path:
        raise InvalidInputError(
            "A file URL names an absolute path of this machine, and nothing else.",
            where=url,
            remedy='Give file:///path, with "?" as %3F and "#" as %23; or the plain path.',
        )
    return unquote(parts.path, errors="surrogateescape")


def _memory_name(url: str) -> str:
    name = url.partition("://")[2].rstrip("/")
    if not name:
        raise InvalidInputError(
            "A memory store needs a name.",
            where=url,
            remedy="Give memory://name; any text will do.",
        )
    return name


def _refuse_options(options: Mapping[str, str], url: str) -> None:
    if options:
        raise InvalidInputError(
            "This store takes no options.",
            where=url,
            found=f"unknown: {', '.join(sorted(options))}",
            remedy="Leave storage_options away.",
        )


def _without_userinfo(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}{separator}{authority.rpartition('@')[2]}{slash}{path.partition('?')[0]}"
