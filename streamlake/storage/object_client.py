"""How a client for S3 is made of a URL and options, and how it is told of without secrets."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict, cast
from urllib.parse import quote, unquote, urlsplit

from obstore.exceptions import BaseError, UnknownConfigurationKeyError
from obstore.store import S3Store

from streamlake.errors import InvalidInputError, StorageError
from streamlake.storage.paths import check_path

if TYPE_CHECKING:
    from obstore.store import ClientConfig, S3Config

CLIENT_FAILURES = (BaseError, OSError, ValueError, NotImplementedError)
"""Whatever obstore raises: its own tree, and what Python has a name for."""
_CLIENT_OPTIONS = frozenset(
    {"allow_http", "allow_invalid_certificates", "connect_timeout", "http1_only", "http2_only"}
    | {"pool_idle_timeout", "pool_max_idle_per_host", "proxy_ca_certificate", "proxy_excludes"}
    | {"proxy_url", "randomize_addresses", "read_timeout", "root_certificate", "timeout"}
    | {"user_agent"}
)
"""Options of the HTTP client; all others are the store's."""
_LOCATION_OPTIONS = frozenset({"bucket", "bucket_name"})
"""What the URL says, and only the URL."""
_SECRET = re.compile("key|secret|token|password|proxy|credential", re.IGNORECASE)
_SHORTEST_SECRET = 4
_FOUND_CHARACTERS = 600
"""How much of the client's message an error repeats."""


class _S3Options(TypedDict):
    config: S3Config
    client_options: ClientConfig


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class S3Clients:
    """Two clients of one root."""

    url: str
    """The root, percent-encoded; holds no secret."""
    plain: S3Store
    """Repeats requests that fail."""
    once: S3Store
    """Makes each request once."""
    secrets: tuple[str, ...]
    """What must not show in messages."""


def make_s3_clients(url: str, options: Mapping[str, str]) -> S3Clients:
    """The clients for ``s3://bucket/path``, configured by ``options`` and the environment.

    Raises:
        InvalidInputError: The URL is malformed or carries a user, or an option is unknown or has a
            bad value.
    """
    bucket, path = _bucket_and_path(url)
    named = _s3_options(options)
    root = f"s3://{bucket}/{quote(path)}".rstrip("/")
    secrets = tuple(_secret_values(options))
    try:
        plain = S3Store.from_url(root, **named)
        once = S3Store.from_url(root, **named, retry_config={"max_retries": 0})
    except (*CLIENT_FAILURES, TypeError) as error:
        raise _bad_option(error, root, secrets) from None
    return S3Clients(url=root, plain=plain, once=once, secrets=secrets)


def told(error: BaseException, secrets: Iterable[str]) -> str:
    """What a client says of a failure: its first paragraph, shortened, without the secrets."""
    text = str(error).partition("\n\nDebug source")[0]
    for secret in secrets:
        text = text.replace(secret, "***")
    return text[:_FOUND_CHARACTERS]


def _bucket_and_path(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    path = unquote(parts.path).strip("/")
    unsafe = path and not _is_safe(path)
    if unsafe or "@" in parts.netloc or not parts.hostname or parts.query or parts.fragment:
        raise InvalidInputError(
            "The URL of an object store names a bucket and a path, and nothing else.",
            where=f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/{path}",
            remedy="Give s3://bucket/path; credentials and endpoint go into storage_options.",
        )
    return parts.netloc, path


def _is_safe(path: str) -> bool:
    try:
        check_path(path, url="")
    except StorageError:
        return False
    return True


def _s3_options(options: Mapping[str, str]) -> _S3Options:
    """The options, split between the store and its HTTP client."""
    config: dict[str, str] = {}
    client_options = _client_options_of_environment()
    for name, value in options.items():
        plain = name.lower().removeprefix("aws_")
        if plain in _LOCATION_OPTIONS:
            raise InvalidInputError(
                f"The option {name!r} contradicts the URL.",
                remedy="Leave it away; the URL names the bucket.",
            )
        (client_options if plain in _CLIENT_OPTIONS else config)[plain] = value
    return {
        "config": cast("S3Config", config),
        "client_options": cast("ClientConfig", client_options),
    }


def _client_options_of_environment() -> dict[str, str]:
    """What the client takes from ``AWS_ALLOW_HTTP`` and the like only while it is given nothing."""
    given = {name: os.environ.get(f"AWS_{name.upper()}") for name in _CLIENT_OPTIONS}
    return {name: value for name, value in given.items() if value is not None}


def _bad_option(error: Exception, url: str, secrets: Iterable[str]) -> InvalidInputError:
    if isinstance(error, UnknownConfigurationKeyError):
        what, remedy = (
            "An option of the object store is unknown.",
            "Correct its name, or leave it away.",
        )
    else:
        what, remedy = (
            "The options do not make a client of the object store.",
            "Correct the option.",
        )
    return InvalidInputError(what, where=url, found=told(error, secrets), remedy=remedy)


def _secret_values(options: Mapping[str, str]) -> Iterator[str]:
    for name, value in options.items():
        if _SECRET.search(name) and len(value) >= _SHORTEST_SECRET:
            yield value
