"""Outline: what a report has to know of a query that does not change while it runs. It goes where the query goes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import polars as pl

from windrow.logical.explain import promises_text
from windrow.logical.nodes import Scan, WindowAggregate
from windrow.planner import Plan, Read, Stage
from windrow.planner.origins import Entries, entries, key_of
from windrow.spec.rules import BySource

FILTER, KEEPS = "select", "keep rows where "  # a step of WHERE, and what it says
ROWS, INTEGER, DATE, TIME, ZONED = "row number", "integer", "date", "timestamp", "timestamp in UTC"


def kind_of(dtype: pl.DataType) -> str:
    """How values of a progressing attribute are shown."""
    if isinstance(dtype, pl.Datetime):
        return TIME if dtype.time_zone is None else ZONED
    return DATE if dtype == pl.Date else INTEGER


@dataclass(frozen=True)
class SourceOutline:
    """A source as it is read. ``key`` tells several ways of reading it apart; ``promises``: where they come from."""

    key: str
    name: str
    attribute: str
    kind: str
    promises: str
    slack: int | None = None
    markers: bool = False
    marker_by: tuple[str, ...] = ()
    parts_by: str | None = None  # the column of its partitions, where each promises for itself
    parts: int = 0  # how many of them must be there before all are promised anything
    asked: bool = False  # whether it can be asked how far it has come
    filters: tuple[str, ...] = ()  # the conditions that its rows are tested with first
    ordered: bool = False  # whether a slack of zero is known to be right


@dataclass(frozen=True)
class StageOutline:
    """A stage. ``kind``: of what it says that it waits for; ``length`` and ``slide`` are those of its windows."""

    number: int
    says: str
    algorithm: str
    kind: str
    sources: tuple[str, ...]
    length: int | None = None
    slide: int | None = None
    origin: int = 0
    keys: tuple[str, ...] = ()
    arms: int = 1  # how many inputs it has whose rows meet, as in a join


@dataclass(frozen=True)
class Outline:
    """``ways``: how promises come from the sources to the stages. ``reads``: the keys of sources in the order in which
    a graph numbers its inputs. Both are not part of what is stored.
    """

    sources: tuple[SourceOutline, ...]
    stages: tuple[StageOutline, ...]
    ways: Mapping[int, Entries] = field(default_factory=dict, compare=False, repr=False)
    reads: tuple[str, ...] = field(default=(), compare=False, repr=False)

    def to_json(self) -> dict[str, Any]:
        return {"sources": [asdict(s) for s in self.sources], "stages": [asdict(s) for s in self.stages]}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Outline:
        return cls(
            tuple(SourceOutline(**_tuples(s)) for s in given["sources"]),
            tuple(StageOutline(**_tuples(s)) for s in given["stages"]),
        )

    @cached_property
    def kinds(self) -> dict[str, str]:
        """By the key of a source how its progress values are shown."""
        return {source.key: source.kind for source in self.sources}


def _tuples(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}


NOTHING = Outline((), ())


def outline_of(plan: Plan) -> Outline:
    """The outline of a plan."""
    ways = entries(plan)
    sources = {key_of(read): replace(_source(read), filters=_filters(plan, read)) for read in plan.reads()}
    stages = tuple(_stage(stage, ways[stage.number]) for stage in plan.stages())
    return Outline(tuple(sources.values()), stages, ways, tuple(key_of(read) for read in plan.reads()))


def _filters(plan: Plan, read: Read) -> tuple[str, ...]:
    steps = [step for pipeline in plan.pipelines() if pipeline.source is read for step in pipeline.steps]
    return tuple(dict.fromkeys(step.says.removeprefix(KEEPS) for step in steps if step.name == FILTER))


def _source(read: Read) -> SourceOutline:
    scan, source = read.scan, read.scan.source
    if read.by_rows:
        return SourceOutline(key_of(read), scan.name, "row number", ROWS, "rows are numbered as they arrive")
    kind = kind_of(scan.schema[read.attribute])
    if not read.on_its_progress:
        slack = dict(source.also)[read.attribute]
        return SourceOutline(key_of(read), scan.name, read.attribute, kind, f"slack on {read.attribute}", slack)
    parts = source.rule if isinstance(source.rule, BySource) else None
    return SourceOutline(
        key_of(read),
        scan.name,
        read.attribute,
        kind,
        promises_text(scan),
        source.slack if parts is None else parts.slack,
        source.marker is not None,
        source.marker_by,
        None if parts is None else parts.column,
        0 if parts is None else parts.count,
        asked=source.delay is not None or source.idle_after is not None,
        ordered=source.ordered or scan.progress in scan.stamps,
    )


def _stage(stage: Stage, ways: Entries) -> StageOutline:
    steps, node = stage.steps, stage.node
    says = steps[0].says if steps else stage.arms[0].meeting.says
    sources = tuple(dict.fromkeys(origin.source for arm in ways.arms for origin in arm.origins))
    if not isinstance(node, WindowAggregate):
        kind, arms = _kind_of_inputs(stage), len(stage.arms)
        return StageOutline(stage.number, says, stage.algorithm, kind, sources, arms=arms)
    kind = ROWS if node.by_rows else kind_of(node.bound)
    keys = tuple(name for name, _ in node.keys)
    shape = node.window.sliding
    if shape is None:
        return StageOutline(stage.number, says, stage.algorithm, kind, sources, keys=keys)
    sizes = (shape.range, shape.slide, shape.origin)
    return StageOutline(stage.number, says, stage.algorithm, kind, sources, *sizes, keys)


def _kind_of_inputs(stage: Stage) -> str:
    """Of the first input that progresses."""
    for node in (*stage.node.inputs, *(n for n in stage.node.walk() if isinstance(n, Scan))):
        if node.progress is not None and node.progress in node.schema:
            return kind_of(node.schema[node.progress])
    return INTEGER
