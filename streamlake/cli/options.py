"""Options that several commands share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated

import typer

from streamlake.errors import InvalidInputError

TableUrl = Annotated[
    str,
    typer.Argument(metavar="TABLE", help="A path, or a file:// or s3:// URL.", show_default=False),
]
StorageOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--storage-option",
        metavar="KEY=VALUE",
        help="What the store needs besides the URL, as endpoint or region; may be repeated. "
        "Keep secrets in the environment instead (AWS_SECRET_ACCESS_KEY, ...).",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, one value a line, for scripts.")]
_SHIFTS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


class Until(StrEnum):
    """Where a command that follows something ends."""

    LATEST = "latest"
    FOREVER = "forever"


def key_values(pairs: Iterable[str] | None, *, option: str) -> dict[str, str]:
    """What a repeated ``KEY=VALUE`` option says.

    Raises:
        InvalidInputError: One without "=", or with nothing before it.
    """
    found: dict[str, str] = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise InvalidInputError(
                f"{option} takes KEY=VALUE.",
                found=repr(key),  # what follows a key may be a secret
                remedy=f"Write {option} key=value, once for each.",
            )
        found[key] = value
    return found


def byte_size(text: str, *, option: str) -> int:
    """A number of bytes as people write it: ``1048576``, ``64mb``, ``1 GiB`` (powers of 1024).

    Raises:
        InvalidInputError: It is none, or not positive.
    """
    match = re.fullmatch(r"\s*(\d{1,15})\s*([kmgt]?)i?b?\s*", text.lower())
    size = int(match[1]) << _SHIFTS[match[2]] if match else 0
    if size <= 0:
        raise InvalidInputError(
            f"{option} takes a size.", found=repr(text), remedy="Write it as 64mb or 1gb."
        )
    return size


@contextmanager
def needing_extras() -> Iterator[None]:
    """For what needs Kafka's client or Spark, which not every installation has.

    Raises:
        InvalidInputError: One is not installed.
    """
    try:
        yield
    except ImportError as error:
        raise InvalidInputError(
            "This command needs a package that is not installed.",
            found=str(error),
            remedy="pip install 'streamlake[kafka]', or 'streamlake[all]' for Spark too.",
        ) from error
