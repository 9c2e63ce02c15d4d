"""A query in words: what it means, and where each part of it runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

import polars as pl

from windrow.logical.explain import text
from windrow.logical.scalar.types import type_name
from windrow.planner.choose.estimates import Estimates, estimated
from windrow.planner.choose.statistics import Seen
from windrow.planner.levels import Levels
from windrow.planner.partition import ByKeys
from windrow.planner.plan import MELD, Arm, Pipeline, Plan, Read, Stage

MANY = 2  # the number of shards where it is not known yet: more than one
NATIVE = "  Spark's own groupBy: plain tumbling windows over a finite DataFrame, where it is faster and means the same"


def explain(
    plan: Plan,
    on_spark: bool,
    shards: int | None = None,
    files: Collection[str] = (),
    native: bool = False,
    samples: Mapping[str, pl.DataFrame] | None = None,
    seen: Mapping[str, Seen] | None = None,
) -> str:
    """The logical plan, then the physical one; ``files`` are the sources that we read ourselves.

    ``native``: Spark's own aggregation runs it. ``samples`` and ``seen``: rows of sources, and what earlier
    micro-batches have shown of them, to estimate the cost from.
    """
    where = "on Spark" if on_spark else "in this process"
    shown = _Shown(Levels(plan, shards or MANY), on_spark, shards, files, estimated(plan, samples, on_spark, seen))
    physical = [NATIVE] if native else _physical(plan, shown)
    return "\n".join(
        [
            "Logical plan",
            *_indent(text(plan.logical)),
            "",
            f"Physical plan, {where}",
            *physical,
        ]
    )


def _physical(plan: Plan, shown: _Shown) -> Iterator[str]:
    for stage in plan.stages():
        for pipeline in stage.inputs:
            yield from shown.pipeline(pipeline)
        yield from shown.stage(stage)
    for pipeline in plan.outputs:
        yield from shown.pipeline(pipeline)
    yield "  result: " + ", ".join(f"{c} {type_name(t)}" for c, t in plan.schema.items())
    yield f"  {shown.costs.says}"


@dataclass
class _Shown:
    """What a physical plan has shown so far: a source that is used twice is read once."""

    levels: Levels
    on_spark: bool
    shards: int | None
    files: Collection[str]
    costs: Estimates
    read: set[Read] = field(default_factory=set)

    def pipeline(self, pipeline: Pipeline) -> Iterator[str]:
        source, steps = pipeline.source, pipeline.whole
        if isinstance(source, Stage):
            side = "shard, right after stage" if self.on_spark else "results"
            yield f"  {side} {source.number}"
        else:
            ours = "reader of the topic" if source.scan.source.messages is not None else "file reader"
            where = f"inside the {ours}" if source.scan.name in self.files else "mapInArrow"
            side = f"map side ({where}, on every partition, no state)" if self.on_spark else "rows"
            again = source in self.read
            yield f"  {side} of {source.scan.name}{', read and admitted above' if again else ''}"
            steps = pipeline.steps if again else steps
            self.read.add(source)
        in_task = self.on_spark and isinstance(source, Read)
        yield from (f"    {step.name}: {(step.split() if in_task else step).says}" for step in steps)

    def stage(self, stage: Stage) -> Iterator[str]:
        yield from self._entrances(stage)
        for arm in stage.arms:
            meeting = arm.meeting
            if len(arm.inputs) > 1 or meeting is not MELD:
                yield f"    {meeting.name}{_of(arm, stage)}: {_inputs(arm)}; {meeting.says}"
            if meeting.costs:
                yield f"      {meeting.costs}"
        yield from (f"    {step.name}: {step.says}" for step in stage.steps)
        if stage.choice is not None:
            yield from (f"    {line}" for line in stage.choice.lines())
        yield f"    cost: {self.costs.of(f'stage{stage.number}').says}"

    def _entrances(self, stage: Stage) -> Iterator[str]:
        """How rows come into a stage."""
        if not self.on_spark:
            for arm in stage.arms:
                spread = arm.partition
                keys = ", ".join(spread.keys) or "nothing: one group, one shard"
                by = f"grouped by {keys}" if spread.keys or isinstance(spread, ByKeys) else "of all rows"
                yield f"  stage {stage.number}{_of(arm, stage, ', arm')}, {by}"
            return
        if all(self.levels.inside(pipeline, stage) for pipeline in stage.inputs):
            yield f"  same shard, stage {stage.number}: no exchange, because rows that must meet are already together"
            return
        if stage.ring and self.shards != 1:
            yield "  exchange to the first node, as Arrow blobs; promises go to every node"
            yield f"  node (a task of a barrier stage, state in files beside the checkpoint), stage {stage.number}"
            return
        for arm in stage.arms:
            to = f"to {f'{self.shards} shards' if self.shards else 'the shards'}, as Arrow blobs"
            yield f"  exchange{_of(arm, stage)} by {arm.partition} {to}; promises go to every shard"
        beside = [s.number for s in self.levels.stages(self.levels.of[stage]) if s is not stage]
        also = f", in one stateful operator with stage {', '.join(map(str, beside))}" if beside else ""
        yield f"  shard (transformWithState, RocksDB), stage {stage.number}{also}"


def _of(arm: Arm, stage: Stage, before: str = " of arm") -> str:
    """Which arm it is, where there are several."""
    return "" if len(stage.arms) == 1 else f"{before} {stage.arms.index(arm)}"


def _inputs(arm: Arm) -> str:
    return f"union of {len(arm.inputs)} inputs" if len(arm.inputs) > 1 else "one input"


def _indent(block: str) -> list[str]:
    return ["  " + line for line in block.split("\n")]
