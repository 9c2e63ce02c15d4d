"""How many rows come out of a stage, and how they progress: estimated from what goes into it.

A join gives sigma * rate_a * rate_b * (T_a + T_b) pairs (Kang et al., Eq. 9). sigma is the share of pairs with equal
keys: of two samples that of their own keys, else 1 over the greater number of keys. Where rows of one stream are asked
for partners in another, arrivals are taken to be independent (Poisson): a row has none with probability exp(-m), if
it has m on average.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from windrow.logical.nodes import (
    AsOf,
    Distinct,
    Join,
    MultiJoin,
    Node,
    Ordered,
    PairAggregate,
    Together,
    Top,
    WindowAggregate,
)
from windrow.logical.nodes import Sequence as Sequenced
from windrow.planner.choose.flow import SELECTIVITY, Flow, together, weakest
from windrow.planner.choose.several import results_of
from windrow.planner.choose.statistics import WIDTH
from windrow.planner.limited import unit_of
from windrow.planner.plan import Stage
from windrow.spec.allocation import Allocation, allocate
from windrow.spec.joining import held_for
from windrow.spec.names import PROGRESS
from windrow.windows import Landmark, Partitioned, Session, SlideByTuple, Sliding


def out_of(stage: Stage, given: Sequence[Flow]) -> Flow:
    """What comes out of a stage that is given this."""
    node = stage.node
    flow = RESULTS.get(type(node), _as_many)(stage, node, given)
    return replace(
        flow, rate=max(flow.rate, 0.0), basis=weakest(f.basis for f in given), width=WIDTH * len(node.schema), rows=None
    )


def keys_of(stage: Stage, arm: int = 0) -> tuple[str, ...]:
    """The columns that make a group in an arm."""
    return stage.arms[arm].partition.keys


# -- windows -----------------------------------------------------------------------------------------------------------
def _windows(_stage: Stage, node: WindowAggregate, given: Sequence[Flow]) -> Flow:
    [flow] = given
    keys, window = tuple(name for name, _ in node.keys), node.window
    if (sliding := window.sliding) is not None:
        return _closed(flow.keys_in(keys, sliding.range) / sliding.slide, flow.keys(keys), sliding.slide)
    match window:
        case Landmark():
            groups = flow.keys(keys)
            return _closed(groups / window.slide, groups, window.slide)
        case Session():
            groups = flow.keys(keys)
            return _closed(flow.rate * _begins(flow, keys, window.gap), groups)
        case SlideByTuple() | Partitioned():
            return _closed(flow.rate / window.slide, flow.keys(keys))
    return _closed(flow.rate, flow.keys(keys))


def _closed(rate: float, groups: float, grain: int = 1) -> Flow:
    """Windows come out in order, and with the promise that they are over."""
    return Flow(rate, groups, grain=grain)


def _begins(flow: Flow, keys: tuple[str, ...], gap: int) -> float:
    """The share of the rows that begin a session: no row of their key is in the gap before them."""
    rows = flow.rows
    if rows is None or not rows.height or not set(keys) <= set(rows.columns):
        return math.exp(-flow.rate * gap / flow.keys(keys))
    ordered = rows.select(*keys, PROGRESS).sort(*keys, PROGRESS)
    near = pl.col(PROGRESS) - pl.col(PROGRESS).shift(1) < gap
    same = pl.all_horizontal([pl.col(k).eq_missing(pl.col(k).shift(1)) for k in keys]) if keys else pl.lit(True)
    return 1 - float(ordered.select((near & same).fill_null(False).mean()).item())


def _shared(stage: Stage, node: Together, given: Sequence[Flow]) -> Flow:
    """The windows of all queries over the same groups."""
    [flow] = given
    results = [flow.keys_in(keys_of(stage), w.range) / w.slide for w in windows_of(stage, node)]
    return _closed(sum(results), flow.keys(keys_of(stage)))


def windows_of(stage: Stage, node: Together) -> list[Sliding]:
    """The windows of the queries that share the panes of a stage."""
    found = [n for _, query in node.queries for n in query.walk() if isinstance(n, WindowAggregate)]
    mine = [n.window.sliding for n in found if tuple(k for k, _ in n.keys) == keys_of(stage)]
    return [window for window in mine if window is not None]


def _as_many(_stage: Stage, _node: Node, given: Sequence[Flow]) -> Flow:
    """Of a stage of which nothing is known."""
    return together(given)


# -- rows --------------------------------------------------------------------------------------------------------------
def _distinct(_stage: Stage, _node: Distinct, given: Sequence[Flow]) -> Flow:
    [flow] = given
    new = 1.0 if flow.rows is None or not flow.rows.height else flow.rows.n_unique() / flow.rows.height
    return replace(flow, rate=flow.rate * new)


def _ordered(_stage: Stage, _node: Ordered, given: Sequence[Flow]) -> Flow:
    return replace(given[0], disorder=0.0, wait=0.0)


def _top(_stage: Stage, node: Top, given: Sequence[Flow]) -> Flow:
    [flow] = given
    return replace(
        flow, rate=flow.rate * min(1.0, node.limit / max(1.0, flow.groups)), groups=min(node.limit, flow.groups)
    )


# -- pairs and sequences -----------------------------------------------------------------------------------------------
def selectivity(stage: Stage, given: Sequence[Flow]) -> float:
    """The share of all pairs of a left and a right row whose keys are equal: sigma."""
    left, right = given
    keys = keys_of(stage)
    if not keys:
        return 1.0
    if any(f.rows is None or not f.rows.height or not set(keys) <= set(f.rows.columns) for f in given):
        return 1 / max(left.keys(keys), right.keys(keys))
    counts = [f.rows.group_by(keys).len("@n") for f in given if f.rows is not None]
    both = counts[0].join(counts[1], on=list(keys), suffix="2")
    pairs = float(both.select((pl.col("@n").cast(pl.Float64) * pl.col("@n2")).sum()).item())
    rows = [float(c["@n"].sum()) for c in counts]
    return pairs / (rows[0] * rows[1])


def pairs_of(stage: Stage, given: Sequence[Flow]) -> float:
    """Pairs with equal keys that are near enough, before other conditions; with limits those that are found."""
    node, grain = stage.node, min(f.grain for f in given)
    assert isinstance(node, Join)
    length = ((node.window.width - 1) // grain + 1) * grain  # of windows, those that end in a stretch of time
    found = regulated(node, given)
    recall = 1.0 if found is None else found.recall((given[0].rate, given[1].rate), held_for(node.window))
    return selectivity(stage, given) * given[0].rate * given[1].rate * length * recall


def regulated(node: Join, given: Sequence[Flow]) -> Allocation | None:
    """What limits leave each side of a join; None without limits."""
    limits, rates = node.limits, (given[0].rate, given[1].rate)
    if limits is None or not all(rates):
        return None
    rate = None if limits.max_rate is None else limits.max_rate / unit_of(node)
    return allocate(rates, held_for(node.window), rate, limits.max_state, limits.policy)


def _join(stage: Stage, node: Join, given: Sequence[Flow]) -> Flow:
    left = given[0]
    pairs = pairs_of(stage, given)
    pairs *= SELECTIVITY ** ((node.where is not None) + (node.test is not None))
    alone = [f.rate * math.exp(-pairs / f.rate) if f.rate else 0.0 for f in given]
    rate = {
        "inner": pairs,
        "left": pairs + alone[0],
        "right": pairs + alone[1],
        "full": pairs + alone[0] + alone[1],
        "semi": left.rate - alone[0],
        "anti": alone[0],
    }[node.how]
    in_order = not stage.algorithm.endswith(("oa-join", "limited-join"))
    disorder = 0.0 if in_order else max(f.disorder for f in given)
    keys = [f.keys(keys_of(stage)) for f in given]
    of_side = {"inner": min(keys), "semi": min(keys), "right": keys[1], "full": max(keys)}
    groups = of_side.get(node.how, keys[0])
    return Flow(rate, groups, disorder, max(f.wait for f in given))


def _as_of(stage: Stage, node: AsOf, given: Sequence[Flow]) -> Flow:
    left, right = given
    found = 1.0
    if node.how == "inner":
        found = _chance(right, keys_of(stage), node.tolerance) * SELECTIVITY ** (node.where is not None)
    return Flow(left.rate * found, left.keys(keys_of(stage)), left.disorder, max(left.wait, right.wait))


def _sequence(stage: Stage, node: Sequenced, given: Sequence[Flow]) -> Flow:
    keys = keys_of(stage)
    last = node.taken[-1]
    taken = [f for f, step in zip(given, node.steps, strict=True) if not step.negated]
    rate = min(f.rate for f in taken) if node.matching == "chronicle" else given[last].rate
    for number, (flow, step) in enumerate(zip(given, node.steps, strict=True)):
        if number != last:
            some = _chance(flow, keys, node.within)
            rate *= _none(flow, keys, node.within) if step.negated else some
    rate *= SELECTIVITY ** len(node.conditions)
    return Flow(rate, max(f.keys(keys) for f in given), 0.0, max(f.wait for f in given))


def _chance(flow: Flow, keys: tuple[str, ...], within: float | None) -> float:
    """That a key has a row in some stretch of progress; sooner or later it has."""
    return 1.0 if within is None else 1 - math.exp(-flow.rate * within / flow.keys(keys))


def _none(flow: Flow, keys: tuple[str, ...], within: float | None) -> float:
    """That a key has no row between two others, which are half of WITHIN apart on average."""
    return SELECTIVITY if within is None else 1 - _chance(flow, keys, within / 2)


def _pair_groups(_stage: Stage, _node: PairAggregate, given: Sequence[Flow]) -> Flow:
    return replace(given[0], rate=given[0].rate * SELECTIVITY)


RESULTS: dict[type[Any], Callable[[Stage, Any, Sequence[Flow]], Flow]] = {
    WindowAggregate: _windows,
    Together: _shared,
    Distinct: _distinct,
    Ordered: _ordered,
    Top: _top,
    Join: _join,
    MultiJoin: results_of,
    AsOf: _as_of,
    Sequenced: _sequence,
    PairAggregate: _pair_groups,
}
