"""Joins with limits as steps: one operator in a process, and one with its part of the limits in each shard."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import polars as pl

from windrow.logical.explain import join_text
from windrow.logical.nodes import Join
from windrow.operators import LimitedJoin, Operator, WindowJoin
from windrow.planner.plan import Step
from windrow.spec.joining import Limits

WAIT = "rows wait until both sides have promised past their stretch of progress, so that arrival does not matter"
Make = Callable[[], WindowJoin]


def limited_step(node: Join, join: Make, time: str) -> Step:
    """``time``: which one of a result is its progress. Without keys all rows are in one shard, which has all."""
    assert node.limits is not None
    says = f"{join_text(node).split(': ')[0]}; {WAIT}; progress on the {time} time"
    whole = partial(_limited, node, join, node.limits)
    if not node.on:
        return Step("join", whole, says)
    return Step(
        "join", whole, f"{says}; each shard has its part of the limits", in_shard=partial(_in_shard, node, join)
    )


def _in_shard(node: Join, join: Make, shards: int) -> Operator:
    assert node.limits is not None
    return _limited(node, join, node.limits.of_shard(shards))


def _limited(node: Join, join: Make, limits: Limits) -> Operator:
    return LimitedJoin(join(), limits, (rows_of(node, 0), rows_of(node, 1)), unit_of(node))


def rows_of(node: Join, side: int) -> list[str]:
    """The columns of a side by which its rows are picked."""
    return [name for name, of, _ in node.columns if of == side and not node.pairs[name].is_nested()]


def unit_of(node: Join) -> int:
    """The smallest units of progress in the one that rates are about: a second, a day, or 1."""
    return 1_000_000 if isinstance(node.left.schema[node.left.progress or ""], pl.Datetime) else 1
