"""Joins as stages: two arms whose keys have one type, and the operator that takes one arm on each port."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import polars as pl
from sqlglot import exp

from windrow.logical.checked_join import common_type
from windrow.logical.explain import join_text
from windrow.logical.expressions import dtype_of, translate
from windrow.logical.nodes import LATER, UNMATCHED, Join, Side
from windrow.operators import Project as ProjectOperator
from windrow.operators import Select, WindowJoin
from windrow.operators.joins.window_join import On
from windrow.operators.state.late import late_schema
from windrow.planner.partition import ByKeys, BySlice, Partition
from windrow.planner.plan import Arm, Pipeline, Stage, Step
from windrow.spec.names import PROGRESS
from windrow.windows.pairing import SameWindow, Within

SIDES: tuple[Side, Side] = (0, 1)
SLICES = 8  # slices of time are so many times as long as the band, so that few rows lie near a border


def join_arms(node: Join, sides: Sequence[Sequence[Pipeline]]) -> tuple[Arm, ...]:
    """The two sides, ready to meet: keys of a common type, columns under their names in the result."""
    spread = _partitions(node)
    return tuple(
        Arm(tuple(p.then(*_prepared(node, side)) for p in pipelines), spread[side])
        for side, pipelines in zip(SIDES, sides, strict=True)
    )


def _partitions(node: Join) -> tuple[Partition, Partition]:
    """Pairs meet in one shard: by their keys and the time of one side, near which the other side is copied.

    A row of the copied side does not know in one slice whether it has a partner in another: so the other side is the
    one whose rows come out without a partner. If both do, rows are spread by their keys alone.
    """
    keys, window = key_columns(node), node.window
    if isinstance(window, SameWindow):  # slices that are windows need no copies
        whole = BySlice(window.length, window.origin, keys=keys)
        return whole, whole
    assert isinstance(window, Within)
    if node.how == "full":
        return ByKeys(keys), ByKeys(keys)
    length = SLICES * window.width
    here = BySlice(length, keys=keys)
    if node.how == "right":
        return BySlice(length, before=-window.low, after=window.high, keys=keys), here
    return here, BySlice(length, before=window.high, after=-window.low, keys=keys)


def key_columns(node: Join) -> tuple[str, ...]:
    """The columns of both arms that must be equal."""
    return tuple(f"@key{i}" for i in range(len(node.on)))


def _prepared(node: Join, side: Side) -> list[Step]:
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
    if keys and side not in UNMATCHED[node.how]:
        there = pl.all_horizontal([pl.col(name).is_not_null() for name in keys])
        steps.append(Step("select", partial(Select, there), "rows with a key: NULL equals nothing"))
    return steps


def _key_type(node: Join, pair: tuple[exp.Expr, exp.Expr]) -> pl.DataType:
    a, b = pair
    return common_type(a, dtype_of(a, node.left.schema), b, dtype_of(b, node.right.schema))


def join_stage(number: int, node: Join, arms: tuple[Arm, ...], on: str | None, joint: bool) -> Stage:
    """``on``: which time of a result its consumer wants to progress on; the later one if it does not say. ``joint``: it
    wants promises about both times, too.
    """
    time = cast("On", (on or LATER).removeprefix("@"))
    types = [{name: node.pairs[name] for name, from_side, _ in node.columns if from_side == side} for side in SIDES]
    make = partial(
        WindowJoin,
        key_columns(node),
        node.window,
        (types[0], types[1]),
        on=time,
        how=node.how,
        where=translate(node.where, node.pairs) if node.where is not None else None,
        test=node.test,
        late=node.late,
        joint=joint,
    )
    kept = "a row is kept until the other side has promised past its last partner"
    says = f"{join_text(node).split(': ')[0]}; {kept}; progress on the {time} time{', and on both' if joint else ''}"
    bound = pl.Int64() if node.by_rows else node.left.schema[node.left.progress or ""]
    late = tuple(late_schema(dict(node.pairs), bound).items())
    return Stage(number, node, arms, (Step("join", make, says),), "oa-join", late)
