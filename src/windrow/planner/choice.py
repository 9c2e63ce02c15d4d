"""The algorithm of a window aggregation: statistics of its input, algorithms that cannot run it, and the choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from windrow.aggregates import Partials
from windrow.errors import PlanError, WindrowError
from windrow.logical.explain import text
from windrow.logical.nodes import WindowAggregate
from windrow.operators.windows.fixed_table import refusal
from windrow.operators.windows.panes import pane_length
from windrow.planner.choose import (
    Choice,
    Statistics,
    Workload,
    assumed,
    choose,
    declared,
    measured,
)
from windrow.planner.choose.costs.aggregation import TIME
from windrow.planner.choose.statistics import Seen
from windrow.planner.graphs import pipeline_graph
from windrow.planner.plan import Pipeline, Read
from windrow.planner.windows import (
    TWO_LEVEL,
    groups_promised,
    key_names,
    together,
)
from windrow.windows import Sliding

GOES_ON = "as at the first start: the checkpoint keeps it"
LEAST = 1000  # rows of a sample: fewer say little about rates


@dataclass(frozen=True)
class Given:
    """What a host knows when it plans: rows of its sources in order of arrival, whether state is elsewhere, and which
    algorithms a query that is restarted has used so far, by the text of the aggregation.

    ``seen``: what earlier micro-batches have shown of a source. No algorithm is chosen by it, only its cost estimated.
    ``spread``: whether shards can be nodes of a ring; those of a session on Spark cannot.
    """

    samples: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    exchanged: bool = False
    kept: Mapping[str, str] = field(default_factory=dict)
    seen: Mapping[str, Seen] = field(default_factory=dict)
    spread: bool = True


NOTHING = Given()


def chosen(node: WindowAggregate, aggregates: Partials, inputs: Sequence[Pipeline], given: Given) -> Choice:
    """The algorithm of a sliding window; ``inputs`` give what it aggregates."""
    window = node.window.sliding
    assert window is not None
    goes_on = node.using is None and text(node) in given.kept
    asked = given.kept[text(node)] if goes_on else node.using
    if asked == TWO_LEVEL:
        _check_two_levels(node, aggregates)
    refused = _refused(node)
    if asked in refused:
        raise PlanError(f"the algorithm {asked!r} cannot run this query: {refused[asked]}")
    if len(refused) == len(TIME):
        raise PlanError(f"no algorithm can run this query: {'; '.join(dict.fromkeys(refused.values()))}")
    known = given if goes_on else replace(given, seen={})
    workload = replace(_workload(node, window, aggregates, inputs, known), exchanged=given.exchanged)
    choice = choose(workload, refused, asked, node.memory)
    return replace(choice, reason=GOES_ON) if goes_on else choice


def _check_two_levels(node: WindowAggregate, aggregates: Partials) -> None:
    why = refusal(aggregates, {k: node.schema[k] for k in key_names(node)})
    if node.options.versioned or node.options.empty:
        why = "EMIT EARLY, LATE REVISE and WITH EMPTY need panes, so 'paned'"
    if by := groups_promised(node):
        why = f"{together(by)} 'paned'"
    if why:
        raise PlanError(f"the algorithm {TWO_LEVEL!r} cannot run this query: {why}")


def _refused(node: WindowAggregate) -> dict[str, str]:
    found: dict[str, str] = {}
    if node.options.versioned or node.options.empty:
        why = "EMIT EARLY, LATE REVISE and WITH EMPTY need panes, so 'paned'"
        found |= dict.fromkeys((a for a in TIME if a != "paned"), why)
    if whole := [c.function for c in node.calls if c.user is not None and c.user.combine is None]:
        why = f"the aggregate {whole[0]!r} cannot be merged (it has no combine), so rows must be kept: 'buffering'"
        found |= dict.fromkeys((a for a in TIME if a != "buffering" and a not in found), why)
    if by := groups_promised(node):
        why = f"{together(by)} 'paned'"
        found |= dict.fromkeys((a for a in TIME if a != "paned" and a not in found), why)
    return found


def _workload(
    node: WindowAggregate, window: Sliding, aggregates: Partials, inputs: Sequence[Pipeline], given: Given
) -> Workload:
    pane = pane_length(window, node.options)
    rows = sample_of(inputs, given)
    if rows is not None and rows.height >= LEAST:
        return measured(rows, window, pane, key_names(node), aggregates)
    keys = len(node.keys)
    widths = keys + 1 + len(node.calls), keys + 1 + len(aggregates.columns)
    disorder = max((s.source.slack or 0 for s in node.input.scans), default=0) if not node.by_rows else 0
    statistics = [s.statistics or given.seen.get(s.name) for s in node.input.scans]
    if statistics and all(s is not None for s in statistics):
        return declared(_together([s for s in statistics if s]), _unit(node), window, pane, disorder, widths)
    return assumed(window, pane, disorder, widths)


def _together(known: Sequence[Statistics]) -> Statistics:
    """Of a union."""
    rate, groups = sum(s.rate for s in known), max(s.groups for s in known)
    rows = sum(s.rows for s in known if isinstance(s, Seen))
    return Seen(rate, groups, rows) if all(isinstance(s, Seen) for s in known) else Statistics(rate, groups)


def _unit(node: WindowAggregate) -> int:
    return 1_000_000 if isinstance(node.bound, pl.Datetime) else 1


def sample_of(inputs: Sequence[Pipeline], given: Given) -> pl.DataFrame | None:
    """What the aggregation would get of the samples; None if not all of its inputs have one, all are too small, or a
    user's function comes before it, which may be expensive.
    """
    names = [p.source.scan.name for p in inputs if isinstance(p.source, Read)]
    samples = [given.samples[name] for name in names if name in given.samples]
    if len(samples) < len(inputs) or sum(s.height for s in samples) < LEAST:  # no step makes more rows of them
        return None
    if any(step.name in ("apply", "split") for pipeline in inputs for step in pipeline.whole):
        return None
    found: list[pl.DataFrame] = []
    for pipeline, sample in zip(inputs, samples, strict=True):
        try:
            items = pipeline_graph(pipeline).on_batch(0, sample)
        except WindrowError:  # the query itself will raise it, where it can say which row it was
            return None
        found += [i for i in items if isinstance(i, pl.DataFrame)]
    return pl.concat(found) if found else None
