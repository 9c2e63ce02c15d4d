"""Joins as stages: two arms whose keys have one type, and the operator that takes one arm on each port."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import polars as pl
from sqlglot import exp

from windrow.errors import PlanError
from windrow.logical.checked_join import common_type
from windrow.logical.explain import join_text
from windrow.logical.expressions import dtype_of, translate
from windrow.logical.nodes import LATER, Join
from windrow.operators import Project as ProjectOperator
from windrow.operators import Select, WindowJoin
from windrow.operators.joins.window_join import On
from windrow.operators.state.late import late_schema
from windrow.planner.partition import ByKeys, ByTime, Partition
from windrow.planner.plan import Arm, Pipeline, Stage, Step
from windrow.spec.names import PROGRESS
from windrow.windows.pairing import Within

SLICES = 8  # slices of time are so many times as long as the band, so that few rows lie near a border


def join_arms(node: Join, sides: Sequence[Sequence[Pipeline]]) -> tuple[Arm, ...]:
    """The two sides, ready to meet: keys of a common type, columns under their names in the result."""
    return tuple(
        Arm(tuple(p.then(*_prepared(node, side)) for p in pipelines), _partition(node, side))
        for side, pipelines in enumerate(sides)
    )


def _partition(node: Join, side: int) -> Partition:
    """Pairs meet in one shard: by their keys, or, if there are none, by the time of the left row."""
    if node.on:
        return ByKeys(key_columns(node))
    window = node.window
    assert isinstance(window, Within)
    length = SLICES * window.width
    return ByTime(length, window.high, -window.low) if side else ByTime(length)


def key_columns(node: Join) -> tuple[str, ...]:
    """The columns of both arms that must be equal."""
    return tuple(f"@key{i}" for i in range(len(node.on)))


def _prepared(node: Join, side: int) -> list[Step]:
    given = node.inputs[side].schema
    renames = {name: column for name, from_side, column in node.columns if from_side == side}
    columns: list[Any] = [pl.col(column).alias(name) for name, column in renames.items()]
    keys = dict(zip(key_columns(node), node.on, strict=True))
    for name, pair in keys.items():
        columns.append(translate(pair[side], given).cast(_key_type(node, pair)).alias(name))
        if isinstance(pair[side], exp.Column):
            renames[name] = pair[side].name
    kept = partial(ProjectOperator, [*columns, pl.col(PROGRESS)])
    steps = [Step("prepare", kept, "the keys, and the columns of the result", renames=renames)]
    if keys:
        there = pl.all_horizontal([pl.col(name).is_not_null() for name in keys])
        steps.append(Step("select", partial(Select, there), "rows with a key: NULL equals nothing"))
    return steps


def _key_type(node: Join, pair: tuple[exp.Expr, exp.Expr]) -> pl.DataType:
    a, b = pair
    return common_type(a, dtype_of(a, node.left.schema), b, dtype_of(b, node.right.schema))


def join_stage(number: int, node: Join, arms: tuple[Arm, ...], on: str | None) -> Stage:
    """``on``: which time of a pair its consumer wants to progress on; the later one if it does not say."""
    where = translate(node.where, node.schema) if node.where is not None else None
    time = (on or LATER).removeprefix("@")
    window = node.window
    if not isinstance(window, Within) or node.how != "inner" or node.test is not None:
        raise PlanError("not supported yet: this join")
    make = partial(WindowJoin, key_columns(node), window.low, window.high, cast("On", time), where)
    bound = node.left.schema[node.left.progress or ""]
    kept = "a row is kept until the other side has promised past its last partner"
    says = f"pairs {join_text(node).split(': ')[0]}; {kept}; progress on the {time} time"
    late = tuple(late_schema(dict(node.schema), bound).items())
    return Stage(number, node, arms, (Step("join", make, says),), "window-join", late, spread=_spread(node))


def _spread(node: Join) -> tuple[str, ...] | None:
    """The result columns that have the values of the keys, if there is one for each."""
    found = []
    for pair in node.on:
        sides = [(side, e.name) for side, e in enumerate(pair) if isinstance(e, exp.Column)]
        name = next((n for n, side, column in node.columns if (side, column) in sides), None)
        if name is None:
            return None
        found.append(name)
    return tuple(found) or None
