"""A Kafka broker of one process for tests and demos: started on free ports, stopped, killed, and started again."""

from __future__ import annotations

import base64
import os
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from windrow.errors import WindrowError
from windrow.hosts.spark import java
from windrow.spec.extras import kafka as client
from windrow.testing.jars import fetched

HOST = "127.0.0.1"
STARTS_IN = 120.0  # seconds; far more than it needs on a busy machine
STOPS_IN = 60.0
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
SETTINGS: dict[str, Any] = {
    "process.roles": "broker,controller",
    "node.id": 1,
    "controller.listener.names": "CONTROLLER",
    "offsets.topic.replication.factor": 1,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 1,
    "group.initial.rebalance.delay.ms": 0,
    "broker.session.timeout.ms": 1000,  # a broker that was killed may come back after that time
    "broker.heartbeat.interval.ms": 200,
    "auto.create.topics.enable": "false",
    "message.max.bytes": 20_971_520,
    "log.retention.ms": -1,  # messages can have any timestamp
    # retention and compaction at once, so that tests do not wait for them
    "log.initial.task.delay.ms": 50,
    "log.retention.check.interval.ms": 100,
    "log.cleaner.backoff.ms": 50,
    "log.cleaner.dedupe.buffer.size": 2_097_152,
    "file.delete.delay.ms": 50,
    "log.index.size.max.bytes": 1_048_576,
}


class Broker:
    """A broker in KRaft mode. Its data is in a folder, which is removed at the end unless it was given.

    ``with Broker() as broker:`` starts one; ``broker.brokers`` is what clients connect to. It stays the same when the
    broker is stopped, or killed, and started again.
    """

    def __init__(
        self, folder: str | Path | None = None, settings: Mapping[str, Any] | None = None, heap: str = "256m"
    ) -> None:
        client()
        self.own = folder is None
        self.folder = Path(folder or tempfile.mkdtemp(prefix="windrow-broker-"))
        self.settings = dict(settings or {})
        self.heap = heap
        self.port, self.control = _free_ports()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def brokers(self) -> str:
        return f"{HOST}:{self.port}"

    # -- its life ----------------------------------------------------------------------------------------------
    def start(self) -> Self:
        """Start it, and wait until it answers."""
        jars = fetched()
        self.folder.mkdir(parents=True, exist_ok=True)
        config = self.folder / "server.properties"
        if not config.exists():
            config.write_text("".join(f"{name}={value}\n" for name, value in self._settings().items()))
            cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
            made = self._java(jars, "kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "-c", str(config))
            if made.wait(STARTS_IN) != 0:
                raise WindrowError(f"the broker's folder cannot be made: {self._said()}")
        self._process = self._java(jars, "kafka.Kafka", str(config))
        self._await()
        return self

    def stop(self) -> None:
        """Stop it as its operator would, with all that was written."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(STOPS_IN)
            self._process = None

    def kill(self) -> None:
        """End it by SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(STOPS_IN)
            self._process = None

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self._end()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        self.kill()
        if self.own:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _settings(self) -> dict[str, Any]:
        own = {
            "controller.quorum.voters": f"1@{HOST}:{self.control}",
            "listeners": f"PLAINTEXT://{HOST}:{self.port},CONTROLLER://{HOST}:{self.control}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{self.port}",
            "log.dirs": self.folder / "data",
        }
        return {**SETTINGS, **own, **self.settings}

    def _java(self, jars: Path, *command: str) -> subprocess.Popen[bytes]:
        options = (f"-Xmx{self.heap}", *QUICK, "-cp", f"{jars}/*")
        with (self.folder / "log.txt").open("ab") as log:
            return subprocess.Popen(
                [java.ensure(), *options, *command],
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "CLASSPATH": ""},
            )

    def _await(self) -> None:
        """Until it answers; its topics have to be known, too, if it had some."""
        deadline = time.monotonic() + STARTS_IN
        admin = self.admin
        while True:
            assert self._process is not None
            if self._process.poll() is not None:
                raise WindrowError(f"the broker has ended with exit code {self._process.returncode}: {self._said()}")
            try:
                if admin.list_topics(timeout=1).brokers:
                    return
            except client().KafkaException:
                if time.monotonic() > deadline:
                    self.kill()
                    raise WindrowError(f"the broker has not answered for {STARTS_IN:.0f} s: {self._said()}") from None
            time.sleep(0.02)

    def _said(self) -> str:
        return (self.folder / "log.txt").read_text(errors="replace")[-2000:]

    # -- what tests do with it ---------------------------------------------------------------------------------
    @cached_property
    def admin(self) -> Any:
        """An AdminClient of it."""
        quiet = {"log_level": 0, "reconnect.backoff.max.ms": 100}
        return client().admin.AdminClient({"bootstrap.servers": self.brokers, **quiet})

    def producer(self, **settings: Any) -> Any:
        """A Producer to it; settings with underscores for dots."""
        given = {name.replace("_", "."): value for name, value in settings.items()}
        quiet = {"log_level": 0, "linger.ms": 5, "message.max.bytes": 20_000_000}
        return client().Producer({"bootstrap.servers": self.brokers, **quiet, **given})

    def make(self, topic: str, partitions: int = 1, **config: Any) -> None:
        """A new topic, there when this returns; settings with underscores for dots."""
        given = {name.replace("_", "."): str(value) for name, value in config.items()}
        new = client().admin.NewTopic(topic, num_partitions=partitions, config=given)
        self.admin.create_topics([new])[topic].result(STARTS_IN)

    def delete(self, topic: str) -> None:
        self.admin.delete_topics([topic])[topic].result(STARTS_IN)

    def widen(self, topic: str, partitions: int) -> None:
        """More partitions."""
        new = client().admin.NewPartitions(topic, partitions)
        self.admin.create_partitions([new])[topic].result(STARTS_IN)

    def forget(self, topic: str, partition: int, before: int) -> None:
        """Remove the messages before an offset, as retention does."""
        at = client().TopicPartition(topic, partition, before)
        self.admin.delete_records([at])[at].result(STARTS_IN)

    def put(self, topic: str, values: Any, partition: int = 0, **message: Any) -> None:
        """Messages with some values, in their order; there when this returns."""
        producer = self.producer()
        problems: list[Any] = []

        def delivered(error: Any, _message: Any) -> None:
            if error is not None:
                problems.append(error)

        for value in values:
            while True:
                try:
                    producer.produce(topic, value, partition=partition, on_delivery=delivered, **message)
                    break
                except BufferError:
                    producer.poll(0.1)
        producer.flush(STARTS_IN)
        if problems:
            raise WindrowError(f"{len(problems)} messages were not taken: {problems[0]}")


def _free_ports() -> tuple[int, int]:
    """Two ports that nobody listens on."""
    with socket.socket() as one, socket.socket() as other:
        one.bind((HOST, 0))
        other.bind((HOST, 0))
        return one.getsockname()[1], other.getsockname()[1]
