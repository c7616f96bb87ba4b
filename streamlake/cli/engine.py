"""Which engine a bridge runs on: Spark where it can, else this process alone."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from streamlake import InvalidInputError

OLDEST_JAVA = 17
ANSWER_TIMEOUT_S = 30


class Engine(StrEnum):
    """Who carries the rows."""

    SPARK = "spark"
    LOCAL = "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """An engine, and why it is not the other."""

    engine: Engine
    reason: str
    """Empty where it is what was asked for."""


def choose_engine(asked: Engine | None) -> Choice:
    """The engine asked for; Spark if nothing was and it can run here, else the local one.

    Raises:
        InvalidInputError: Spark was asked for and can't run here.
    """
    if asked is Engine.LOCAL:
        return Choice(engine=Engine.LOCAL, reason="")
    missing = missing_for_spark()
    if not missing:
        return Choice(engine=Engine.SPARK, reason="")
    if asked is Engine.SPARK:
        raise InvalidInputError(
            "Spark can't run here.",
            found=missing,
            remedy="Install what is missing, or take --engine local, which needs no JVM.",
        )
    return Choice(engine=Engine.LOCAL, reason=missing)


def missing_for_spark() -> str:
    """What Spark would need; empty where it has all."""
    if importlib.util.find_spec("pyspark") is None:
        return "PySpark is missing: pip install 'streamlake[spark]'"
    version = java_version()
    if version is None:
        return f"Java is missing: install Java {OLDEST_JAVA} or newer, or set JAVA_HOME"
    if version < OLDEST_JAVA:
        return f"Java {version} is too old: install Java {OLDEST_JAVA} or newer, or set JAVA_HOME"
    return ""


def java_version() -> int | None:
    """The feature version of the Java of ``JAVA_HOME``, else of ``PATH``; None without one."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    if java is None:
        return None
    try:
        told = subprocess.run(  # noqa: S603 - the user's own Java
            [java, "-version"],
            capture_output=True,
            text=True,
            timeout=ANSWER_TIMEOUT_S,
            check=False,
        ).stderr
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', told)
    return int(match[1]) if match else None
