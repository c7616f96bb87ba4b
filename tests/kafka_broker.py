"""A real Apache Kafka for the tests: one KRaft node on 127.0.0.1, on free ports.

All that must be there beforehand is Java 17 or newer; see kafka_jars.
``python tests/kafka_broker.py`` runs one until Ctrl-C.
"""

from __future__ import annotations

import base64
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kafka_jars import (
    KAFKA_VERSION,
    BrokerError,
    find_java,
    kafka_jars,
    one_jar,
    spark_jars,
)

if TYPE_CHECKING:
    from testcontainers.core.container import DockerContainer

MakeTopic = Callable[..., str]

START_TIMEOUT_S = 90
STOP_TIMEOUT_S = 20
START_ATTEMPTS = 3
JVM_OPTIONS = ("-Xmx512m", "-Xms128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")

LOG4J = """\
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %p %c{1}: %m%n
rootLogger.level = WARN
rootLogger.appenderRef.out.ref = out
"""

SERVER = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
log.dirs={data}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
group.consumer.min.session.timeout.ms=1000
group.consumer.session.timeout.ms=3000
group.consumer.min.heartbeat.interval.ms=200
group.consumer.heartbeat.interval.ms=500
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=400
transaction.abort.timed.out.transaction.cleanup.interval.ms=1000
log.cleaner.dedupe.buffer.size=16777216
log.cleaner.backoff.ms=500
num.network.threads=2
num.io.threads=4
"""


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that nobody listens on."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [server.getsockname()[1] for server in sockets]
    for server in sockets:
        server.close()
    return ports


class KafkaBroker:
    """A broker of its own, in a child process, with its data in a folder of its own.

    ``kill`` and ``restart`` keep ports and data, and so stand for a broker that is away; ``pause``
    and ``resume`` for one that hangs.
    """

    def __init__(self) -> None:
        self.bootstrap_servers = ""
        self._folder: Path | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None

    def start(self) -> Self:
        """Start on free ports, and wait until it answers."""
        for attempt in range(START_ATTEMPTS):
            self._folder = Path(tempfile.mkdtemp(prefix="streamlake-kafka-"))
            try:
                self._configure()
                self.restart()
            except BrokerError as error:
                self.stop()
                if "Address already in use" not in str(error) or attempt + 1 == START_ATTEMPTS:
                    raise
            else:
                break
        return self

    def stop(self) -> None:
        """End the broker and remove its data. Idempotent."""
        if self._child is not None and self._child.poll() is None:
            self.resume()
            self._child.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._child.wait(STOP_TIMEOUT_S)
        self.kill()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def kill(self) -> None:
        """End the broker as kill -9 does; its data stay."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            self._child = None
        if self._log is not None:
            self._log.close()
            self._log = None

    def restart(self) -> None:
        """Start again on the same ports and data, and wait until it answers."""
        self.kill()
        folder = self._own_folder()
        self._log = (folder / "broker.log").open("ab")
        self._child = subprocess.Popen(
            [*die_with_parent(), *self._java(), "kafka.Kafka", str(folder / "server.properties")],
            stdout=self._log,
            stderr=subprocess.STDOUT,
            cwd=folder,
        )
        self._wait()

    def pause(self) -> None:
        """Let it hang: connections stay, nothing is answered."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def log_tail(self) -> str:
        """The end of what the broker printed."""
        return (self._own_folder() / "broker.log").read_text(errors="replace")[-4000:]

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _own_folder(self) -> Path:
        assert self._folder is not None, "the broker was not started"
        return self._folder

    def _signal(self, number: signal.Signals) -> None:
        assert self._child is not None, "the broker was not started"
        self._child.send_signal(number)

    def _java(self) -> list[str]:
        """The command up to the main class. The logger is PySpark's: Kafka's jars bring none."""
        jars = spark_jars()
        logger = [one_jar(jars, name) for name in ("slf4j-api-*.jar", "log4j-slf4j2-impl-*.jar")]
        logger += [one_jar(jars, name) for name in ("log4j-api-2*.jar", "log4j-core-2*.jar")]
        config = f"-Dlog4j2.configurationFile={self._own_folder() / 'log4j2.properties'}"
        class_path = os.pathsep.join([*logger, f"{kafka_jars()}/*"])
        return [find_java(), *JVM_OPTIONS, config, "-cp", class_path]

    def _configure(self) -> None:
        folder = self._own_folder()
        port, controller_port = free_ports(2)
        self.bootstrap_servers = f"127.0.0.1:{port}"
        (folder / "log4j2.properties").write_text(LOG4J)
        (folder / "server.properties").write_text(
            SERVER.format(port=port, controller_port=controller_port, data=folder / "data")
        )
        cluster = (
            base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "a")
        )
        command = [*self._java(), "kafka.tools.StorageTool", "format", "-t", cluster]
        command += ["-c", str(folder / "server.properties")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0:
            raise BrokerError(
                f"Kafka's storage could not be formatted:\n{done.stdout}{done.stderr}"
            )

    def _wait(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not answers(self.bootstrap_servers):
            child = self._child
            if child is None or child.poll() is not None:
                raise BrokerError(f"the broker ended while it started:\n{self.log_tail()}")
            if time.monotonic() > deadline:
                raise BrokerError(
                    f"the broker did not answer in {START_TIMEOUT_S} s:\n{self.log_tail()}"
                )
            time.sleep(0.1)


def die_with_parent() -> list[str]:
    """A prefix, where the system has it, by which the broker ends when the tests are killed.

    The broker ends with the thread that started it: start it from the main one.
    """
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL"] if setpriv else []


def answers(bootstrap_servers: str) -> bool:
    """Whether a broker there answers a request for metadata."""
    host, _, port = bootstrap_servers.split(",", maxsplit=1)[0].rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
        admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
        return bool(admin.list_topics(timeout=5).brokers)
    except (OSError, KafkaException):
        return False


class ExternalBroker:
    """A broker that runs already, named by ``STREAMLAKE_KAFKA_BOOTSTRAP``; not ours to stop."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers

    def start(self) -> Self:
        """See that it answers."""
        if not answers(self.bootstrap_servers):
            raise BrokerError(
                f"no Kafka answers at {self.bootstrap_servers} (STREAMLAKE_KAFKA_BOOTSTRAP)"
            )
        return self

    def stop(self) -> None:
        """Leave it running."""


class ContainerBroker:
    """The same Kafka from its official image, where a Docker engine answers."""

    def __init__(self) -> None:
        self.bootstrap_servers = ""
        self._container: DockerContainer | None = None

    def start(self) -> Self:
        """Start the container, and wait until the broker in it answers."""
        from testcontainers.core.container import (  # noqa: PLC0415 (slow, and of use with Docker only)
            DockerContainer,
        )

        (port,) = free_ports(1)
        container = DockerContainer(f"apache/kafka:{KAFKA_VERSION}").with_bind_ports(9092, port)
        settings = SERVER.format(port=9092, controller_port=9093, data="/tmp/kafka")  # noqa: S108
        for line in settings.splitlines():
            name, _, value = line.partition("=")
            container = container.with_env("KAFKA_" + name.upper().replace(".", "_"), value)
        container = container.with_env(
            "KAFKA_LISTENERS", "PLAINTEXT://:9092,CONTROLLER://127.0.0.1:9093"
        ).with_env("KAFKA_ADVERTISED_LISTENERS", f"PLAINTEXT://127.0.0.1:{port}")
        self._container = container
        container.start()
        self.bootstrap_servers = f"127.0.0.1:{port}"
        deadline = time.monotonic() + START_TIMEOUT_S
        while not answers(self.bootstrap_servers):
            if time.monotonic() > deadline:
                out, err = container.get_logs()
                self.stop()
                raise BrokerError(
                    f"Kafka in Docker did not answer:\n{(out + err).decode()[-4000:]}"
                )
            time.sleep(0.2)
        return self

    def stop(self) -> None:
        """Remove the container. Idempotent."""
        if self._container is not None:
            self._container.stop()
            self._container = None


def create_topic(bootstrap_servers: str, name: str, *, partitions: int = 1, **config: str) -> None:
    """Create a topic and wait for it; ``max_message_bytes`` stands for max.message.bytes."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    settings = {key.replace("_", "."): value for key, value in config.items()}
    new = NewTopic(name, num_partitions=partitions, replication_factor=1, config=settings)
    admin.create_topics([new])[name].result(30)


def docker_answers() -> bool:
    """Whether a Docker engine (not merely its command) is there, told within two seconds."""
    docker = shutil.which("docker")
    if docker is None:
        return False
    try:
        done = subprocess.run(
            [docker, "version", "--format", "{{.Server.Version}}"],
            capture_output=True,
            timeout=2,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and bool(done.stdout.strip())


def shared_broker() -> KafkaBroker | ContainerBroker | ExternalBroker:
    """Start what this machine can: one that runs already, else in Docker, else from the jars."""
    servers = os.environ.get("STREAMLAKE_KAFKA_BOOTSTRAP")
    if servers:
        return ExternalBroker(servers).start()
    if docker_answers():
        with suppress(Exception):  # an engine that can't pull the image: the jars are as good
            return ContainerBroker().start()
    return KafkaBroker().start()


if __name__ == "__main__":
    with KafkaBroker() as broker:
        print(broker.bootstrap_servers, flush=True)  # noqa: T201
        with suppress(KeyboardInterrupt):
            signal.pause()
