"""Object stores of clouds, through obstore: conditional puts, ordered listings, typed errors."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, takewhile
from typing import TYPE_CHECKING

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    NotModifiedError,
    NotSupportedError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)

from streamlake.errors import (
    ConditionalPutUnsupportedError,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
    WriteRefusedError,
)
from streamlake.storage.object_client import CLIENT_FAILURES, make_s3_clients, told
from streamlake.storage.paths import check_path, check_prefix, check_range
from streamlake.storage.store import ObjectMeta, check_whole

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Client

_LISTING_CHUNK = 1000
_NO_PARTS = frozenset({"", ".", ".."})
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_CONFLICT = re.compile("status code: 409")
_NO_BUCKET = re.compile("NoSuchBucket")
_processes: dict[str, int] = {}
"""The process in which the clients' threads run, since the first request."""


class ObstoreStore:
    """Objects in S3, or in what speaks its protocol.

    ``put_if_absent`` is one request with ``If-None-Match: *``, never repeated by the client: only a
    refusal on that condition is an ObjectExistsError; a 409, a 5xx, a time-out or a reset is a
    plain StorageError, the outcome unknown. All other requests are repeated by the client with
    backoff (10 times, 3 minutes at most).

    Safe between threads. The first request starts the client's own threads, which do not survive a
    fork: in a process that is forked after it every request is a StorageError.
    """

    __slots__ = ("_client", "_conditional", "_options", "_secrets", "_url")

    def __init__(self, client: Client, *, url: str, conditional: Client | None = None) -> None:
        """A store over a client of obstore.

        Args:
            client: Serves everything but ``put_if_absent``.
            url: The root, for messages; without secrets.
            conditional: Serves ``put_if_absent``, and must not repeat requests; ``client`` itself
                if None.
        """
        self._client = client
        self._conditional = client if conditional is None else conditional
        self._url = url.rstrip("/")
        self._options: Mapping[str, str] | None = None
        self._secrets: tuple[str, ...] = ()

    @classmethod
    def from_url(cls, url: str, options: Mapping[str, str] | None = None) -> ObstoreStore:
        """The store at ``s3://bucket/path``.

        Configured by ``options``, and by the ``AWS_*`` environment variables where they are silent.

        Args:
            url: Percent-decoded once.
            options: Names as in the environment, in any case, with or without ``AWS_``:
                ``access_key_id``, ``secret_access_key``, ``session_token``, ``region``,
                ``endpoint``, ``virtual_hosted_style_request``, ``skip_signature``, ...; of the HTTP
                client ``allow_http``, ``timeout`` ("30s"), ``connect_timeout``, ``proxy_url``,
                ``root_certificate``, ...

        Raises:
            InvalidInputError: The URL is malformed or carries a user, or an option is unknown or
                has a bad value.
        """
        clients = make_s3_clients(url, options or {})
        store = cls(clients.plain, url=clients.url, conditional=clients.once)
        store._options, store._secrets = dict(options or {}), clients.secrets
        return store

    def __repr__(self) -> str:
        return f"ObstoreStore({self._url!r})"

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        if self._options is not None:
            return ObstoreStore.from_url, (self._url, self._options)
        return _rebuild, (self._client, self._url, self._conditional)

    @property
    def url(self) -> str:
        """The root, percent-encoded; holds no secret."""
        return self._url

    def get(self, path: str) -> bytes:
        """The whole object: one request."""
        check_path(path, url=self._url)
        try:
            found = obstore.get(_here(self._client), path)
            check_whole(found.meta["size"], where=f"{self._url}/{path}")
            return found.bytes().to_bytes()
        except CLIENT_FAILURES as error:
            raise self._failure(error, path) from None

    def get_range(self, path: str, start: int, length: int) -> bytes:
        """``length`` bytes from byte ``start``; fewer where the object ends before.

        One request; a second one where the range is empty or begins behind the end.
        """
        check_path(path, url=self._url)
        check_range(start, length, path=path)
        if length == 0:
            self.stat(path)
            return b""
        try:
            return obstore.get_range(
                _here(self._client), path, start=start, length=length
            ).to_bytes()
        except CLIENT_FAILURES as error:
            failure = self._failure(error, path)
        if not isinstance(failure, ObjectNotFoundError) and self.stat(path).size_bytes <= start:
            return b""
        raise failure

    def put(self, path: str, data: bytes | memoryview) -> None:
        """Write, or replace, an object; a large one in parts that appear together.

        Raises:
            WriteRefusedError: No permission, or no such bucket.
            StorageError: Anything else; it may have been written.
        """
        check_path(path, url=self._url)
        try:
            obstore.put(_here(self._client), path, _flat(data))
        except CLIENT_FAILURES as error:
            raise self._write_failure(error, path) from None

    def put_if_absent(self, path: str, data: bytes | memoryview) -> None:
        """Write an object that must not exist yet: one request, never repeated.

        Raises:
            ObjectExistsError: The store refused on the condition.
            WriteRefusedError: No permission, or no such bucket; certainly not written.
            ConditionalPutUnsupportedError: The client is configured without conditional puts.
            StorageError: Anything else, a 409 included. The outcome is unknown.
        """
        check_path(path, url=self._url)
        try:
            obstore.put(
                _here(self._conditional), path, _flat(data), mode="create", use_multipart=False
            )
        except (AlreadyExistsError, PreconditionError, NotModifiedError) as error:
            if _CONFLICT.search(told(error, ())):
                raise self._failure(error, path) from None
            raise ObjectExistsError("The name is taken.", where=self._where(path)) from None
        except (NotSupportedError, NotImplementedError) as error:
            raise ConditionalPutUnsupportedError(
                "The client is configured without conditional puts.",
                where=self._where(path),
                found=told(error, self._secrets),
                remedy='Leave the option conditional_put away, or set it to "etag".',
            ) from None
        except CLIENT_FAILURES as error:
            raise self._write_failure(error, path) from None

    def list_from(self, prefix: str, start_after: str = "") -> Iterator[ObjectMeta]:
        """Objects that begin with ``prefix`` and sort after ``start_after``, a page at a time.

        Raises:
            StorageError: The store failed, or does not list in the order of the names.
        """
        check_prefix(prefix, start_after, url=self._url)
        return self._list(prefix, start_after)

    def stat(self, path: str) -> ObjectMeta:
        """Size and time of one object; the time has whole seconds on most stores."""
        check_path(path, url=self._url)
        try:
            return _meta(obstore.head(_here(self._client), path))
        except CLIENT_FAILURES as error:
            raise self._failure(error, path) from None

    def delete(self, path: str) -> None:
        """Remove an object; removing one that is not there is no error."""
        check_path(path, url=self._url)
        try:
            obstore.delete(_here(self._client), path)
        except FileNotFoundError:
            return
        except CLIENT_FAILURES as error:
            raise self._failure(error, path) from None

    def _list(self, prefix: str, start_after: str) -> Iterator[ObjectMeta]:
        folder, _, name = prefix.rpartition("/")
        # Clients take whole folders as prefixes; the offset spares what sorts before the name.
        offset = _offset(max(start_after, prefix[:-1] if name else ""))
        try:
            pages = obstore.list(
                _here(self._client),
                folder or None,
                offset=offset or None,
                chunk_size=_LISTING_CHUNK,
            )
            for entry in self._in_order(chain.from_iterable(pages)):
                path = entry["path"]
                if path.startswith(prefix):
                    if path > start_after:
                        yield _meta(entry)
                elif path > prefix:
                    return
        except CLIENT_FAILURES as error:
            raise self._failure(error, prefix) from None

    def _in_order(self, entries: Iterable[obstore.ObjectMeta]) -> Iterator[obstore.ObjectMeta]:
        """The entries, each once; an error where they are not in the order of the names."""
        last = ""
        for entry in entries:
            path = entry["path"]
            if path > last:
                last = path
                yield entry
            elif path < last and f"{path}/" <= last:
                # Otherwise it is the marker object of a folder, "a/": clients cut its slash.
                raise self._out_of_order(last, path)

    def _where(self, path: str) -> str:
        return f"{self._url}/{path}"

    def _failure(self, error: Exception, path: str) -> StorageError:
        found = told(error, self._secrets)
        if isinstance(error, FileNotFoundError) and not _NO_BUCKET.search(found):
            return ObjectNotFoundError("There is no such object.", where=self._where(path))
        return StorageError(
            "The object store failed, or refused.",
            where=self._where(path),
            found=found,
            remedy="Check bucket, credentials and endpoint; if the store is failing, try again.",
        )

    def _write_failure(self, error: Exception, path: str) -> StorageError:
        found = told(error, self._secrets)
        if isinstance(error, (PermissionDeniedError, UnauthenticatedError)):
            remedy = "Give these credentials the right to put objects there."
        elif _NO_BUCKET.search(found):
            remedy = "Create the bucket, or correct its name."
        else:
            failure = self._failure(error, path)
            if isinstance(failure, ObjectNotFoundError):
                return StorageError(failure.what, where=failure.where, found=found)
            return failure
        return WriteRefusedError(
            "The object store refused the write; nothing was written.",
            where=self._where(path),
            found=found,
            remedy=remedy,
        )

    def _out_of_order(self, before: str, after: str) -> StorageError:
        return StorageError(
            "The object store does not list in the order of the names; a table needs that.",
            where=self._url,
            found=f"{after!r} after {before!r}",
            remedy="Use a general purpose bucket; directory buckets (S3 Express) have no order.",
        )


def _rebuild(client: Client, url: str, conditional: Client) -> ObstoreStore:
    return ObstoreStore(client, url=url, conditional=conditional)


def _here(client: Client) -> Client:
    """The client, if this process may use it.

    Its threads do not survive a fork: requests in the child would wait for ever.
    """
    process = os.getpid()
    owner = _processes.setdefault("client", process)
    if owner != process:
        raise StorageError(
            "Object stores can't be used in a process that was forked after their first use.",
            found=f"process {process}; the client runs in {owner}",
            remedy='Start processes with the method "spawn" or "forkserver".',
        )
    return client


def _offset(bound: str) -> str:
    """As much of ``bound`` as a client takes for a path; what it drops, the caller filters."""
    kept = takewhile(
        lambda part: part not in _NO_PARTS and not _CONTROL.search(part), bound.split("/")
    )
    return "/".join(kept)


def _flat(data: bytes | memoryview) -> bytes | memoryview:
    """As bytes, which is all that the client takes."""
    return data.cast("B") if isinstance(data, memoryview) else data


def _meta(entry: obstore.ObjectMeta) -> ObjectMeta:
    return ObjectMeta(
        path=entry["path"],
        size_bytes=entry["size"],
        modified_ms=int(entry["last_modified"].timestamp() * 1000),
    )
