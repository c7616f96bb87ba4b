"""A server that speaks S3 on loopback, for the tests of storage."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from itertools import count

import pytest

from streamlake.storage import ObjectStore, open_store

DEADLINE_S = 60.0
SECRET = "canary-secret-of-the-tests"  # noqa: S105 - opens nothing


@pytest.fixture(scope="session")
def s3_options() -> Iterator[dict[str, str]]:
    """Options that reach moto's server, a process of its own, with an empty bucket "bucket"."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", port],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        create_bucket(f"http://127.0.0.1:{port}/bucket", server)
        yield {
            "endpoint": f"http://127.0.0.1:{port}",
            "allow_http": "true",
            "region": "us-east-1",
            "access_key_id": "tester",
            "secret_access_key": SECRET,
        }
    finally:
        server.terminate()
        server.wait(10)


def put_over_http(url: str) -> None:
    """A bare PUT of nothing; moto asks for no signature."""
    request = urllib.request.Request(url, data=b"", method="PUT")  # noqa: S310 - loopback
    urllib.request.urlopen(request).close()  # noqa: S310


def create_bucket(url: str, server: subprocess.Popen[bytes]) -> None:
    """Create the bucket as soon as the server answers."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        try:
            put_over_http(url)
        except (urllib.error.URLError, ConnectionError):
            if server.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"moto's server did not start (exit code {server.poll()})")
            time.sleep(0.05)
        else:
            return


@pytest.fixture(scope="session")
def make_s3_store(s3_options: dict[str, str]) -> Callable[[], ObjectStore]:
    """Each call gives a store over an empty folder of the bucket."""
    numbers = count()
    return lambda: open_store(f"s3://bucket/a folder {next(numbers)}", s3_options)
