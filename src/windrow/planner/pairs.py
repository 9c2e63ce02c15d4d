"""Groups by both times of a join as a stage."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import cast

import polars as pl
from sqlglot import exp

from windrow.logical.expressions import translate
from windrow.logical.nodes import LATER, Join, PairAggregate, Side
from windrow.operators import PairAggregate as Operator
from windrow.operators import Pairs
from windrow.operators.state.chunks import CHUNKS_PER_WINDOW
from windrow.operators.state.late import LATE_ROWS
from windrow.operators.windows.pair_aggregate import On
from windrow.operators.windows.pairs import Truncated
from windrow.planner.partition import ByKeys
from windrow.planner.plan import Arm, Pipeline, Stage, Step
from windrow.planner.prepare import prepared, without_row
from windrow.spec.time import physical

SECOND = 1_000_000  # chunks are not shorter, or there would be too many


def pair_stage(number: int, node: PairAggregate, inputs: Sequence[Pipeline], of: str | None, joint: bool) -> Stage:
    """``of``: the time that the input progresses on, and so do the results. ``joint``: the consumer groups by both
    times, too.
    """
    on = cast("On", (of or LATER).removeprefix("@"))
    keys = tuple(n for n, _ in node.keys)
    prepare, aggregates, lifts = prepared(node)
    pairs = partial(Pairs, keys, aggregates, on, (_truncated(node, node.left), _truncated(node, node.right)))
    low = Step("pairs", pairs, "one partial per pair of times and group")
    dropped = [without_row()] if lifts else []
    left, right = (physical(pl.col(c), node.schema[c]) for c in (node.left, node.right))
    alone: tuple[Side, ...] = tuple(side for side in (0, 1) if not _always(node, 1 - side))
    high = partial(Operator, (left, right), keys, aggregates, on, _width(node), alone, joint)
    step = Step("pair-aggregate", high, "groups by both times, released by joint promises")
    late = (*((n, node.schema[n]) for n in keys), (LATE_ROWS, pl.Int64()))
    arm = Arm(tuple(p.then(prepare, *lifts, *dropped, low) for p in inputs), ByKeys(keys))
    return Stage(number, node, (arm,), (step,), "pair-aggregate", late, spread=keys)


def _truncated(node: PairAggregate, key: str) -> Truncated | None:
    """What a key makes of a time, unless it is the time itself."""
    tree, given = dict(node.keys)[key], node.input.schema
    if isinstance(tree, exp.Column):
        return None
    column = node.column(key)
    return Truncated(column, given[column], translate(tree, given), node.schema[key])


def _always(node: PairAggregate, side: int) -> bool:
    """Whether every result has the time of a side."""
    return (node.left, node.right)[side] in node.times


def _width(node: PairAggregate) -> int:
    """The slice of the left time that a chunk holds: a part of the window of the join."""
    dtype, origin = node.schema[node.left], node.input.origin
    while isinstance(origin, PairAggregate):
        origin = origin.input.origin
    assert isinstance(origin, Join)
    least = SECOND if isinstance(dtype, pl.Datetime) else 1
    same = dtype == origin.left.schema[origin.left.progress or ""]
    return max(least, origin.window.width // CHUNKS_PER_WINDOW if same else 1)
