"""Barrier stages of the simulated Spark: all tasks of a stage at once, each in a thread, with real connections."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from unittest import mock

import pyarrow as pa
from pyspark.cloudpickle import loads

from windrow.hosts.ring.links import LostError
from windrow.hosts.spark import ring
from windrow.hosts.spark.desk import Desk, DeskAddress
from windrow.hosts.spark.live_graphs import LiveGraphs, Place
from windrow.hosts.spark.wiring import Wiring

_here = threading.local()
Partition = list[pa.RecordBatch]


@dataclass(frozen=True)
class BarrierTask:
    """What a task of a barrier stage knows. ``graphs``: what its Python worker keeps."""

    partition: int
    count: int
    stage: int
    properties: Mapping[str, str]
    graphs: LiveGraphs

    def partitionId(self) -> int:  # noqa: N802 (Spark's names, here and below)
        return self.partition

    def taskAttemptId(self) -> int:  # noqa: N802
        return self.stage * self.count + self.partition

    def stageId(self) -> int:  # noqa: N802
        return self.stage

    def getLocalProperty(self, name: str) -> str | None:  # noqa: N802
        return self.properties.get(name)

    def getTaskInfos(self) -> list[SimpleNamespace]:  # noqa: N802
        return [SimpleNamespace(address="localhost:0") for _ in range(self.count)]


def together(pickled: bytes, tasks: Sequence[BarrierTask], given: Sequence[Partition]) -> list[Partition]:
    """What a function makes of all partitions. A task that fails makes the others fail: its error is the one to see."""

    def run(task: BarrierTask, part: Partition) -> Partition:
        _here.task = task
        return list(loads(pickled)(iter(part)))

    with _running(), ThreadPoolExecutor(len(tasks)) as threads:
        futures = [threads.submit(run, task, part) for task, part in zip(tasks, given, strict=True)]
        errors = [error for future in futures if (error := future.exception()) is not None]
        if errors:
            raise min(errors, key=lambda error: isinstance(error, LostError))
        return [future.result() for future in futures]


def _task() -> BarrierTask:
    found: BarrierTask = _here.task
    return found


@contextmanager
def _running() -> Iterator[None]:
    with (
        mock.patch.object(ring, "barrier_task", _task),
        mock.patch.object(ring, "_live", _GraphsOfThread()),
    ):
        yield


class _GraphsOfThread:
    """The graphs of the worker that a thread is; another task may have the same one now."""

    lock = threading.Lock()

    def take(self, place: Place, version: str | None) -> Wiring | None:
        with self.lock:
            return _task().graphs.take(place, version)

    def put(self, place: Place, version: str, wired: Wiring, newest: Callable[[Place], str | None]) -> None:
        with self.lock:
            _task().graphs.put(place, version, wired, newest)


@contextmanager
def simulated_rings() -> Iterator[None]:
    """A query with a ring finds slots, and a place where its nodes meet."""
    with (
        mock.patch.object(ring, "slots", lambda spark: int(spark.sparkContext.defaultParallelism)),
        mock.patch.object(ring, "desk", return_value=_desk()),
        mock.patch.object(ring, "_is_local", return_value=True),
    ):
        yield


@cache
def _desk() -> DeskAddress:
    """The id of a simulated query is its folder."""
    return Desk("127.0.0.1", lambda query: query).address
