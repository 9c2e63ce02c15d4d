"""A query in words: what it means, and where each part of it runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from windrow.logical.explain import text
from windrow.logical.nodes import Scan
from windrow.logical.scalar.types import type_name
from windrow.planner import MELD, Pipeline, Plan, Stage

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
    if isinstance(pipeline.source, Scan):
        where = "inside the file reader" if pipeline.source.name in files else "mapInArrow"
        side = f"map side ({where}, on every partition, no state)" if on_spark else "rows"
        yield f"  {side} of {pipeline.source.name}"
    else:
        side = "shard, right after the stage" if on_spark else "results"
        yield f"  {side} {pipeline.source.number}"
    tasks = on_spark and isinstance(pipeline.source, Scan)
    for step in pipeline.steps:
        yield f"    {step.name}: {(step.split() if tasks else step).says}"


def _stage(stage: Stage, on_spark: bool, shards: int | None) -> Iterator[str]:
    keys = ", ".join(stage.keys) or "nothing: one group, one shard"
    if on_spark:
        count = f"{shards} shards" if shards else "the shards"
        yield f"  exchange by hash of {keys} to {count}, as Arrow blobs; promises go to every shard"
        yield f"  shard (transformWithState, RocksDB), stage {stage.number}"
    else:
        yield f"  stage {stage.number}, grouped by {keys}"
    if len(stage.inputs) > 1 or stage.meeting is not MELD:
        yield f"    {stage.meeting.name}: {_inputs(stage)}; {stage.meeting.says}"
    if stage.meeting.costs:
        yield f"      {stage.meeting.costs}"
    for step in stage.steps:
        yield f"    {step.name}: {step.says}"
    if stage.choice is not None:
        yield from (f"    {line}" for line in stage.choice.lines())


def _inputs(stage: Stage) -> str:
    return f"union of {len(stage.inputs)} inputs" if len(stage.inputs) > 1 else "one input"


def _indent(block: str) -> list[str]:
    return ["  " + line for line in block.split("\n")]
