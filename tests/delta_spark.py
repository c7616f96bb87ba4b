"""Delta on Spark, for tests: installed once per machine, one process a test session.

Its PySpark is another one than streamlake's, so it lives in a virtual environment of its own, under
``${STREAMLAKE_CACHE:-~/.cache/streamlake}``; pip and the Ivy that PySpark carries fetch it (550 MB,
a minute or two). Java must be there beforehand.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from kafka_jars import BrokerError, fetch_jars, file_lock, find_java, one_jar

DELTA_VERSION = "4.4.0"
PYSPARK_VERSION = "4.2.0"
DELTA_MODULE = ("io.delta", "delta-spark_4.2_2.13", DELTA_VERSION)
JARS = ("delta-*.jar", "unitycatalog-*.jar")
"""What PySpark does not bring itself."""
INSTALL_TIMEOUT_S = 900
STOP_TIMEOUT_S = 30
AT_ONCE = 16
"""Requests that are under way at a time: they must fit into a pipe."""
PROGRAM = Path(__file__).parent / "peers" / "spark_program.py"


class PeerMissingError(RuntimeError):
    """Delta on Spark can't be had on this machine; the message says why."""


class PeerError(RuntimeError):
    """Delta on Spark refused a request; the message is its own."""


def cache_folder() -> Path:
    """Where the environment is kept between runs and worktrees."""
    default = Path("~/.cache/streamlake").expanduser()
    return Path(os.environ.get("STREAMLAKE_CACHE") or default)


def environment() -> Path:
    """The folder with the environment (``venv``) and Delta's ``jars``; made at the first call.

    Raises:
        PeerMissingError: It can't be: no Java, no network, no space.
    """
    folder = cache_folder() / f"delta-spark-{DELTA_VERSION}-pyspark-{PYSPARK_VERSION}"
    whole = folder / "whole"
    try:
        find_java()
        with file_lock(folder.with_suffix(".lock")):
            if not whole.exists():
                install(folder)
                whole.touch()
    except (BrokerError, OSError, subprocess.SubprocessError) as error:
        output = getattr(error, "output", None) or ""
        raise PeerMissingError(f"{error}\n{output}"[-3000:]) from error
    return folder


def install(folder: Path) -> None:
    """Make the environment and fetch the jars."""
    venv = folder / "venv"
    run(sys.executable, "-m", "venv", "--clear", str(venv))
    python = str(venv / "bin" / "python")
    packages = [f"pyspark=={PYSPARK_VERSION}", f"pyarrow=={pa.__version__}"]
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages)
    shutil.rmtree(folder / "jars", ignore_errors=True)
    fetch_jars(folder / "jars", DELTA_MODULE, ivy=one_jar(spark_home(folder) / "jars", "ivy-*.jar"))


def run(*command: str) -> None:
    """Run a command of the installation to its end."""
    subprocess.run(
        command,
        check=True,
        timeout=INSTALL_TIMEOUT_S,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def spark_home(folder: Path) -> Path:
    """Where the environment's PySpark lies."""
    return next((folder / "venv").glob("lib/python3*/site-packages/pyspark"))


class DeltaSpark:
    """A process with one session, to be asked; see ``started``."""

    def __init__(self, process: subprocess.Popen[str], folder: Path, log: Path) -> None:
        self.process = process
        self.folder = folder
        self.log = log
        self._ids = count()
        assert process.stdin is not None
        assert process.stdout is not None
        self._requests: IO[str] = process.stdin
        self._answers: IO[str] = process.stdout
        self._answer()

    def sql(self, *statements: str) -> None:
        """Run statements in their order.

        Raises:
            PeerError: One of them failed.
        """
        self.sql_each([statements])

    def sql_each(self, scripts: Sequence[Sequence[str]]) -> None:
        """Run scripts side by side; the statements of each in their order."""
        for error in self._ask([{"sql": list(script)} for script in scripts]):
            if error is not None:
                raise PeerError(error)

    def read(self, path: str | Path, version: int | None = None) -> pa.Table:
        """A table's rows, at its newest version or another.

        Raises:
            PeerError: It can't be read there.
        """
        found = self.read_each([(path, version)])[0]
        if isinstance(found, PeerError):
            raise found
        return found

    def read_each(
        self, tables: Sequence[tuple[str | Path, int | None]]
    ) -> list[pa.Table | PeerError]:
        """The rows of many tables, or why they can't be read."""
        into = [str(self.folder / f"{next(self._ids)}.arrow") for _ in tables]
        requests = [
            {"read": str(path), "version": version, "into": file}
            for (path, version), file in zip(tables, into, strict=True)
        ]
        errors = self._ask(requests)
        return [
            rows_of(file) if error is None else PeerError(error)
            for file, error in zip(into, errors, strict=True)
        ]

    def _ask(self, requests: Sequence[Mapping[str, Any]]) -> list[str | None]:
        """What went wrong with each request; None where nothing did."""
        errors: list[str | None] = []
        for start in range(0, len(requests), AT_ONCE):
            part = requests[start : start + AT_ONCE]
            for number, request in enumerate(part):
                self._requests.write(json.dumps({"id": number, **request}) + "\n")
            self._requests.flush()
            answers = {answer["id"]: answer for answer in (self._answer() for _ in part)}
            errors += [answers[number].get("error") for number in range(len(part))]
        return errors

    def _answer(self) -> dict[str, Any]:
        line = self._answers.readline()
        if not line:
            raise AssertionError(f"Delta on Spark ended:\n{self.log.read_text()[-3000:]}")
        answer: dict[str, Any] = json.loads(line)
        return answer


def rows_of(file: str) -> pa.Table:
    """The rows in an Arrow file, which is removed."""
    with pa.memory_map(file) as opened, pa.ipc.open_file(opened) as reader:
        rows = reader.read_all()
    Path(file).unlink()
    return rows


@contextmanager
def started() -> Iterator[DeltaSpark]:
    """Delta on Spark, running; ended with all its processes at exit.

    Raises:
        PeerMissingError: It can't be had.
    """
    home = environment()
    jars = ",".join(str(jar) for pattern in JARS for jar in (home / "jars").glob(pattern))
    with tempfile.TemporaryDirectory(prefix="delta-spark-") as temporary:
        folder = Path(temporary)
        log = folder / "log.txt"
        with log.open("w") as errors:
            process = subprocess.Popen(
                [str(home / "venv" / "bin" / "python"), str(PROGRAM), jars],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=folder,
                env=peer_variables(),
                start_new_session=True,
            )
        try:
            yield DeltaSpark(process, folder, log)
        finally:
            stop(process)


def peer_variables() -> dict[str, str]:
    """The environment variables of the process: nothing of streamlake's own Python."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    for name in ("SPARK_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "VIRTUAL_ENV"):
        own.pop(name, None)
    return {**own, "SPARK_LOCAL_IP": "127.0.0.1", "TZ": "UTC"}


def stop(process: subprocess.Popen[str]) -> None:
    """Let the process end by itself, and see that nothing of it is left."""
    with suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=STOP_TIMEOUT_S)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=STOP_TIMEOUT_S)
