"""Where the parts of a plan run on Spark: sources on the map side, stages in levels, and the routes between them."""

from __future__ import annotations

from dataclasses import dataclass, field

from windrow.hosts.spark.exchange import shard_ids
from windrow.hosts.spark.map_side import Branch, Taken
from windrow.hosts.spark.outbox import Route
from windrow.hosts.spark.wiring import Entrance, Hosted, Inside, Outside
from windrow.planner import Pipeline, Plan, Read, Stage, Step
from windrow.planner.levels import Levels
from windrow.planner.origins import key_of


@dataclass(frozen=True)
class Placed:
    """By the name of a source, how it is read; and the stages of each level, in the plan and in a shard."""

    ids: tuple[int, ...]
    reads: dict[str, list[Taken]]
    levels: list[list[tuple[Stage, Hosted]]]


def placed_stages(plan: Plan, shards: int, streaming: bool) -> Placed:
    """A plan on a number of shards. Promises are only made from evidence in a stream: a finite input has its end."""
    ids = tuple(shard_ids(shards))
    build = _Placing(plan, ids, Levels(plan, shards), streaming)
    for stage in plan.stages():
        build.add(stage)
    for output, pipeline in enumerate(plan.outputs):
        build.exits[pipeline.source].append(Branch(_in_task(pipeline), Route(port=plan.number_of(output))))
    reads: dict[str, list[Taken]] = {}
    for read in plan.reads():
        asked = streaming and read.is_asked
        taken = Taken(tuple(step.split() for step in read.steps), tuple(build.exits[read]), asked, key_of(read))
        reads.setdefault(read.scan.name, []).append(taken)
    levels = [
        [(stage, build.hosted(stage)) for stage in build.levels.stages(level)] for level in range(build.levels.depth)
    ]
    return Placed(ids, reads, levels)


@dataclass
class _Placing:
    plan: Plan
    ids: tuple[int, ...]
    levels: Levels
    streaming: bool
    exits: dict[Read | Stage, list[Branch]] = field(init=False)
    arms: dict[Stage, tuple[Entrance, ...]] = field(default_factory=dict)
    heard: set[Read] = field(default_factory=set)  # sources whose promises some stage counts already

    def __post_init__(self) -> None:
        sources: list[Read | Stage] = [*self.plan.reads(), *self.plan.stages()]
        self.exits = {source: [] for source in sources}

    def hosted(self, stage: Stage) -> Hosted:
        owns = any(arm.named for arm in stage.arms)
        return Hosted(stage.number, self.arms[stage], stage.steps, tuple(self.exits[stage]), owns)

    def add(self, stage: Stage) -> None:
        """The entrances of a stage, and the routes of what comes in by them."""
        port = 0
        found = []
        for arm in stage.arms:
            inputs: list[Outside | Inside] = []
            for pipeline in arm.inputs:
                if self.levels.inside(pipeline, stage):
                    assert isinstance(pipeline.source, Stage)
                    inputs.append(Inside(pipeline.source.number, pipeline.steps))
                    continue
                outside = self._outside(pipeline)
                route = Route(stage.number, port, arm.partition, self.ids, arm.named)
                self.exits[pipeline.source].append(Branch(_in_task(pipeline), route))
                inputs.append(outside)
                port += outside.ports
            found.append(Entrance(tuple(inputs), arm.meeting))
        self.arms[stage] = tuple(found)

    def _outside(self, pipeline: Pipeline) -> Outside:
        source = pipeline.source
        if isinstance(source, Stage):
            return Outside(len(self.ids))
        again = source in self.heard
        self.heard.add(source)
        marked = source.scan.source.marker is not None and not source.by_rows
        return Outside(1, pipeline.judging() if self.streaming else (), marked, again, key_of(source))


def _in_task(pipeline: Pipeline) -> tuple[Step, ...]:
    """The steps after a source as they are in a task; those after a stage are in a shard, where they have state."""
    if isinstance(pipeline.source, Stage):
        return pipeline.steps
    return tuple(step.split() for step in pipeline.steps)
