"""Apache Kafka's jars, fetched once per machine from Maven Central.

The Ivy that the PySpark wheel carries fetches them into
``${STREAMLAKE_CACHE:-<repository>/.cache}/kafka-<version>``; Java must be there beforehand.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

KAFKA_VERSION = "4.1.0"
KAFKA_MODULE = ("org.apache.kafka", "kafka_2.13", KAFKA_VERSION)
FETCH_TIMEOUT_S = 600


class BrokerError(RuntimeError):
    """The broker can't be had or did not start; the message says why."""


class JavaMissingError(BrokerError):
    """There is no Java on this machine."""


def find_java() -> str:
    """The ``java`` to run: of ``JAVA_HOME``, else of ``PATH``."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home, "bin"))) if home else None
    found = found or shutil.which("java")
    if found is None:
        raise JavaMissingError("no java on PATH or under JAVA_HOME; Java 17 or newer is needed")
    return found


def spark_jars() -> Path:
    """The folder of jars in the installed PySpark: its Ivy, and a logger for the broker."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise BrokerError(
            "PySpark, whose Ivy fetches the broker, is missing: pip install streamlake[spark]"
        )
    return Path(spec.origin).parent / "jars"


def one_jar(folder: Path, pattern: str) -> str:
    """The jar in ``folder`` that matches ``pattern``."""
    found = sorted(folder.glob(pattern))
    if not found:
        raise BrokerError(f"no {pattern} in {folder}")
    return str(found[-1])


def cache_folder() -> Path:
    """Where what was fetched is kept between runs."""
    return Path(
        os.environ.get("STREAMLAKE_CACHE") or Path(__file__).resolve().parents[1] / ".cache"
    )


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """One process at a time; freed by the system when its holder dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def kafka_jars() -> Path:
    """The folder with the broker's jars; fetched at a machine's first call (30 s, 43 MB)."""
    folder = cache_folder() / f"kafka-{KAFKA_VERSION}"
    if folder.is_dir():
        return folder
    with file_lock(folder.with_suffix(".lock")):
        if not folder.is_dir():
            fetch_jars(folder, KAFKA_MODULE, ivy=one_jar(spark_jars(), "ivy-*.jar"))
    return folder


def fetch_jars(folder: Path, module: tuple[str, str, str], *, ivy: str) -> None:
    """Let Ivy resolve a module into a folder of its own, and rename that when it is whole."""
    _, artifact, version = module
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="fetch-") as fresh:
        command = [find_java(), "-jar", ivy]
        command += ["-cache", f"{fresh}/ivy", "-dependency", *module, "-confs", "default"]
        command += ["-retrieve", f"{fresh}/libs/[artifact]-[revision].[ext]"]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise BrokerError(f"Ivy did not fetch {artifact} within {FETCH_TIMEOUT_S} s") from error
        if done.returncode != 0 or not list(Path(fresh, "libs").glob(f"{artifact}-*.jar")):
            raise BrokerError(
                f"Ivy could not fetch {artifact} {version}:\n{(done.stdout + done.stderr)[-3000:]}"
            )
        Path(fresh, "libs").rename(folder)
