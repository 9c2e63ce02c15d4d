"""Levels: which stages run in the same shards, between two exchanges.

All stages of one depth share a level, as each level costs a host an exchange and a stateful operator. A stage whose
keys contain those of the stage before it is fused with it: rows that must meet are in the same shard already. With one
shard they always are.
"""

from __future__ import annotations

from windrow.errors import PlanError
from windrow.planner.plan import Pipeline, Plan, Read, Stage


class Levels:
    """The stages of a plan by level, for a number of shards."""

    def __init__(self, plan: Plan, shards: int) -> None:
        self.shards = shards
        self.of: dict[Stage, int] = {}
        for stage in plan.stages():
            self.of[stage] = max((self._after(pipeline, stage) for pipeline in stage.inputs), default=0)

    def _after(self, pipeline: Pipeline, stage: Stage) -> int:
        if isinstance(pipeline.source, Read):
            return 0
        return self.of[pipeline.source] + (not self.inside(pipeline, stage))

    def inside(self, pipeline: Pipeline, stage: Stage) -> bool:
        """Whether rows come from a stage to another one without leaving the shard."""
        return isinstance(pipeline.source, Stage) and (self.shards == 1 or _keeps_place(stage))

    @property
    def depth(self) -> int:
        """How many levels there are."""
        return 1 + max(self.of.values(), default=-1)

    def check(self, depth: int) -> None:
        """Refuse fewer levels than there are."""
        if self.depth > depth:
            raise PlanError(f"these queries need {self.depth} levels of state, and {depth} are given")

    def stages(self, level: int) -> list[Stage]:
        """The stages of one level, inner ones first."""
        return [stage for stage, at in self.of.items() if at == level]


def _keeps_place(stage: Stage) -> bool:
    """Whether rows that must meet in a stage are in the same shard after the one stage that it takes rows from."""
    if len(stage.inputs) != 1:  # two stages before it may have spread their rows differently
        return False
    [arm], [pipeline] = stage.arms, stage.inputs
    if isinstance(pipeline.source, Read) or pipeline.source.spread is None:
        return False
    return set(pipeline.source.spread) <= {pipeline.origin(key) for key in arm.keys}
