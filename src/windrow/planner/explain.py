"""A query in words: what it means, and where each part of it runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from windrow.logical.explain import text
from windrow.logical.scalar.types import type_name
from windrow.planner.partition import ByKeys
from windrow.planner.plan import MELD, Arm, Pipeline, Plan, Read, Stage

NATIVE = "  Spark's own groupBy: plain tumbling windows over a finite DataFrame, where it is faster and means the same"


def explain(
    plan: Plan, on_spark: bool, shards: int | None = None, files: Collection[str] = (), native: bool = False
) -> str:
    """The logical plan, then the physical one; ``files`` are the sources that we read ourselves.

    ``native``: Spark's own aggregation does it.
    """
    where = "on Spark" if on_spark else "in this process"
    physical = [NATIVE] if native else _physical(plan, on_spark, shards, files)
    return "\n".join(
        [
            "Logical plan",
            *_indent(text(plan.logical)),
            "",
            f"Physical plan, {where}",
            *physical,
        ]
    )


def _physical(plan: Plan, on_spark: bool, shards: int | None, files: Collection[str]) -> Iterator[str]:
    for stage in plan.stages():
        for pipeline in stage.inputs:
            yield from _pipeline(pipeline, on_spark, files)
        yield from _stage(stage, on_spark, shards)
    for pipeline in plan.outputs:
        yield from _pipeline(pipeline, on_spark, files)
    yield "  result: " + ", ".join(f"{c} {type_name(t)}" for c, t in plan.schema.items())


def _pipeline(pipeline: Pipeline, on_spark: bool, files: Collection[str]) -> Iterator[str]:
    source = pipeline.source
    if isinstance(source, Read):
        where = "inside the file reader" if source.scan.name in files else "mapInArrow"
        side = f"map side ({where}, on every partition, no state)" if on_spark else "rows"
        yield f"  {side} of {source.scan.name}"
    else:
        side = "shard, right after the stage" if on_spark else "results"
        yield f"  {side} {source.number}"
    for step in pipeline.whole:
        yield f"    {step.name}: {(step.split() if on_spark and isinstance(source, Read) else step).says}"


def _stage(stage: Stage, on_spark: bool, shards: int | None) -> Iterator[str]:
    for arm in stage.arms:
        if on_spark:
            count = f"{shards} shards" if shards else "the shards"
            to = f"to {count}, as Arrow blobs; promises go to every shard"
            yield f"  exchange{_of(arm, stage)} by {arm.partition} {to}"
        else:
            keys = ", ".join(arm.keys) or "nothing: one group, one shard"
            by = f"grouped by {keys}" if isinstance(arm.partition, ByKeys) else "of all rows"
            yield f"  stage {stage.number}{_of(arm, stage)}, {by}"
    if on_spark:
        yield f"  shard (transformWithState, RocksDB), stage {stage.number}"
    for arm in stage.arms:
        meeting = arm.meeting
        if len(arm.inputs) > 1 or meeting is not MELD:
            yield f"    {meeting.name}{_of(arm, stage)}: {_inputs(arm)}; {meeting.says}"
        if meeting.costs:
            yield f"      {meeting.costs}"
    for step in stage.steps:
        yield f"    {step.name}: {step.says}"
    if stage.choice is not None:
        yield from (f"    {line}" for line in stage.choice.lines())


def _of(arm: Arm, stage: Stage) -> str:
    """Which arm it is, where there are several."""
    return "" if len(stage.arms) == 1 else f" of arm {stage.arms.index(arm)}"


def _inputs(arm: Arm) -> str:
    return f"union of {len(arm.inputs)} inputs" if len(arm.inputs) > 1 else "one input"


def _indent(block: str) -> list[str]:
    return ["  " + line for line in block.split("\n")]
