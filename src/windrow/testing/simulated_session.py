"""A session as Spark runs it, on the simulated Spark: one micro-batch at a time, with restarts and deaths between."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from windrow.hosts.spark.standing import StandingQueries
from windrow.testing.mismatch import Mismatch
from windrow.testing.simulated import Checkpoint, Frame, Rows, Run, SimulatedSpark, Source, without_jvm
from windrow.testing.state_store import StateStore


class SimulatedQueries(StandingQueries):
    """``checkpoint`` is what survives: another one over the same folder and checkpoint is a session that goes on."""

    def __init__(
        self, spark: SimulatedSpark, folder: Path, sources: Mapping[str, Source], checkpoint: Checkpoint, **options: Any
    ) -> None:
        self.simulated, self.kept = spark, checkpoint
        self._waiting: list[Callable[[], None]] = []
        super().__init__(folder, sources, **options)

    def push(self, rows: Mapping[str, Rows], commit: bool = True) -> None:
        """One micro-batch over new rows. Without ``commit`` it dies after its results were written."""
        drafts = [store.draft() for store in self.kept.stores]
        given: dict[Any, Rows] = {self.sources[name]: part for name, part in rows.items()}
        assert self.query is not None
        frame: Frame = self.query.frame
        self._run = Run(self.simulated, given, dict(zip(frame.stateful(), drafts, strict=True)))
        self.query.take(frame, self.kept.batch)
        if commit:
            self.kept.stores, self.kept.batch = drafts, self.kept.batch + 1
            waiting, self._waiting = self._waiting, []
            for action in waiting:
                action()

    # -- what Spark does otherwise -------------------------------------------------------------------------------
    def _compiled(self, *running: Any) -> Any:
        with without_jvm():
            return super()._compiled(*running)

    def _started(self, rows: Any, take: Any) -> Any:
        operators = list(rows.stateful())
        if not self.kept.batch:
            self.kept.stores = [StateStore() for _ in operators]
        if len(self.kept.stores) != len(operators):
            raise Mismatch(f"the checkpoint has {len(self.kept.stores)} stateful operators, now {len(operators)}")
        return SimpleNamespace(frame=rows, take=take, isActive=False, stop=lambda: None, awaitTermination=lambda: None)

    def _collected(self, frame: Any) -> list[tuple[Any, ...]]:
        return self._run.rows(frame).rows()

    def _carry(self, depth: int, tasks: int) -> None:  # noqa: ARG002
        self.kept.stores = [*self.kept.stores, *(StateStore() for _ in range(depth - len(self.kept.stores)))]
        self.kept.batch = 1  # number 0 of the new checkpoint carries the state

    def _soon(self, action: Callable[[], None]) -> None:
        self._waiting.append(action)

    def _next_batch(self) -> int:
        return self.kept.batch + self.record.earlier
