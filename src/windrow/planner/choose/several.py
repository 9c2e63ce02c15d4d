"""What a multi-way join gives and costs, estimated from what goes into it."""

from __future__ import annotations

from collections.abc import Sequence

from windrow.logical.nodes import MultiJoin
from windrow.planner.choose.costs.multiway import PAIR, PROBE, ROW, Streams, multi_cost, uniform
from windrow.planner.choose.flow import SELECTIVITY, Flow, weakest
from windrow.planner.plan import Stage
from windrow.spec.in_order import MODES


def results_of(stage: Stage, node: MultiJoin, given: Sequence[Flow]) -> Flow:
    """What comes out of one operator, or of the last join of a pipeline."""
    keys = _keys(stage, given)
    rate = _found(stage, node, given) * SELECTIVITY ** ((node.where is not None) + (node.test is not None))
    disorder = 0.0 if stage.algorithm in MODES else max(f.disorder for f in given)
    return Flow(rate, max(keys), disorder, max(f.wait for f in given))


def spent_on(stage: Stage, given: Sequence[Flow], _out: Flow) -> tuple[float, float]:
    """Nanoseconds for each smallest unit of progress, and bytes: a row is kept while it can be in a result to come."""
    node = stage.node
    assert isinstance(node, MultiJoin)
    if len(given) == len(node.members):
        micros = multi_cost(_streams(stage, node, given))
    else:
        micros = (ROW + PROBE) * sum(f.rate for f in given) + PAIR * _found(stage, node, given)
    wait = max(f.wait for f in given)
    held = sum(f.rate * f.width * (w + wait) for f, w in zip(given, _lengths(stage, node), strict=True) if f.rate)
    return micros * 1000, held


def _found(stage: Stage, node: MultiJoin, given: Sequence[Flow]) -> float:
    """Rows of all arms with equal keys that are near enough, before other conditions."""
    return _streams(stage, node, given).results(range(len(given)))


def _streams(stage: Stage, node: MultiJoin, given: Sequence[Flow]) -> Streams:
    rates = tuple(f.rate for f in given)
    return Streams(rates, _lengths(stage, node), uniform(_keys(stage, given)), weakest(f.basis for f in given))


def _keys(stage: Stage, given: Sequence[Flow]) -> list[float]:
    """How many different keys the rows of each arm have."""
    return [f.keys(arm.partition.keys) for f, arm in zip(given, stage.arms, strict=True)]


def _lengths(stage: Stage, node: MultiJoin) -> tuple[int, ...]:
    """How long the rows of each arm are held; those of a pipeline as long as the first of their rows."""
    lengths = node.ranges.lengths
    if len(stage.arms) == len(lengths):
        return lengths
    *before, last = (int(each) for each in stage.algorithm.split(" ")[1].split("-"))
    return min(lengths[each] for each in before), lengths[last]
