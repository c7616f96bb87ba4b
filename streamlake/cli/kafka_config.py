"""Settings of Kafka's client from options, a file and the environment; secrets not from options."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from streamlake import InvalidInputError
from streamlake.cli.options import key_values

SECRETS = frozenset(
    {
        "sasl.password",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.config",
        "ssl.key.password",
        "ssl.key.pem",
        "ssl.keystore.password",
    }
)
"""Settings that every user of a machine could read on a command line."""
_VARIABLE = re.compile(r"\$\{(\w+)\}")


def kafka_settings(
    servers: str,
    pairs: Iterable[str] | None,
    file: Path | None,
    *,
    environ: Mapping[str, str] = os.environ,
) -> dict[str, str]:
    """All settings; an option goes before the file, ``${NAME}`` is from the environment.

    Args:
        servers: ``bootstrap.servers``.
        pairs: ``--kafka-config KEY=VALUE`` each.
        file: Lines ``key=value``; empty ones and those that begin with ``#`` mean nothing.
        environ: The environment.

    Raises:
        InvalidInputError: A line or option without "=", a variable that is not set, or a secret
            on the command line.
    """
    options = key_values(pairs, option="--kafka-config")
    for key, value in options.items():
        if key in SECRETS and not _VARIABLE.fullmatch(value):
            raise InvalidInputError(
                f"{key} is a secret, and everybody on this machine can read a command line.",
                remedy="Put it into --kafka-config-file, or write "
                f"--kafka-config '{key}=${{NAME}}' and set the environment variable NAME.",
            )
    found = {**_file_settings(file), **options}
    expanded = {key: _expand(key, value, environ) for key, value in found.items()}
    return {**expanded, "bootstrap.servers": servers}


def _file_settings(file: Path | None) -> dict[str, str]:
    if file is None:
        return {}
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(
            "Kafka's settings can't be read.",
            where=str(file),
            found=str(error),
            remedy="Give --kafka-config-file a text file of lines key=value.",
        ) from error
    stripped = (line.strip() for line in lines)
    given = [line for line in stripped if line and not line.startswith("#")]
    pairs = key_values(given, option="--kafka-config-file")
    return {key.strip(): value.strip() for key, value in pairs.items()}


def _expand(key: str, value: str, environ: Mapping[str, str]) -> str:
    missing = [name for name in _VARIABLE.findall(value) if name not in environ]
    if missing:
        raise InvalidInputError(
            f"The environment variable {missing[0]} of {key} is not set.",
            remedy=f"Set {missing[0]} before the command is started.",
        )
    return _VARIABLE.sub(lambda match: environ[match[1]], value)
