"""The node of an as-of join: each left row beside the nearest right row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Self, get_args

import polars as pl
from sqlglot import exp

from windrow.logical.join import LEFT
from windrow.logical.node import Node, Time, Times, columns_in
from windrow.spec.options import Policy
from windrow.windows.pairing import Side

Strategy = Literal["backward", "forward", "nearest"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
AsOfHow = Literal["inner", "left"]
AS_OF_HOWS: tuple[AsOfHow, ...] = get_args(AsOfHow)


@dataclass(frozen=True)
class AsOf(Node):
    """Each left row with the right row that is nearest in time, of those with equal keys (``B FOLLOWING RECENT A`` of
    Bai et al., section 5; ``ASOF JOIN`` of Spark).

    ``strategy``: the latest right row that is not after the left one ("backward"), the earliest that is not before it
    ("forward"), or the nearer of both, the later if they are equally near. ``exact``: whether times may be equal.
    ``shift``: what is added to right times before they are compared. ``tolerance``: the greatest distance, included.
    Of right rows with equal times, "backward" and "nearest" take the last and "forward" the first, in the order of all
    columns of the right side; that is what Spark does with rows in that order. ``where``: what else must be true of a
    pair; the nearest of those for which it is true is taken. ``how``: whether left rows without a partner come out.
    ``most_keys``: how many keys the query may hold in one shard. ``late``: what happens to late rows of each side.
    ``columns`` are as those of a Join.
    """

    left: Node
    right: Node
    on: tuple[tuple[exp.Expr, exp.Expr], ...]
    columns: tuple[tuple[str, Side, str], ...]
    strategy: Strategy = "backward"
    exact: bool = True
    shift: int = 0
    tolerance: int | None = None
    how: AsOfHow = "inner"
    where: exp.Expr | None = None
    most_keys: int | None = None
    late: tuple[Policy, Policy] = ("drop", "drop")

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    def rebuild(self, *inputs: Node) -> Self:
        left, right = inputs
        return replace(self, left=left, right=right)

    @cached_property
    def schema(self) -> dict[str, pl.DataType]:
        return {name: self.inputs[side].schema[column] for name, side, column in self.columns}

    @property
    def times(self) -> Times:
        """A result comes with the time of its left row."""
        return {n: Time(0, LEFT) for n, side, column in self.columns if side == 0 and column == self.left.progress}

    def columns_used(self, wanted: set[str]) -> tuple[set[str], ...]:
        """All columns of the right side: they decide between rows with equal times, whatever is selected."""
        wanted = wanted | self.tested
        own = {column for name, side, column in self.columns if side == 0 and name in wanted}
        keys = columns_in(pair[0] for pair in self.on)
        return own | keys | {self.left.progress or ""}, set(self.right.schema)

    @property
    def tested(self) -> set[str]:
        """The columns that its condition is over."""
        return columns_in([self.where])

    def bounds(self) -> list[str]:
        """What bounds its state; nothing bounds it if there is none."""
        found = ["the greatest distance"] if self.tolerance is not None else []
        mine, others = (names_keys(node, [pair[side] for pair in self.on]) for side, node in enumerate(self.inputs))
        looking_back = ["keys that the left stream finishes"] if mine else []
        if self.most_keys is not None:
            looking_back.append(f"at most {self.most_keys} keys in a shard")
        looking_back += [] if self.on else ["one row: there are no keys"]
        ahead = ["keys that the right stream finishes"] if others else []
        match self.strategy:
            case "backward":
                return found + looking_back
            case "forward":
                return found + ahead
        return found + (looking_back + ahead if looking_back and ahead else [])


def names_keys(node: Node, keys: Sequence[exp.Expr]) -> bool:
    """Whether promises of a stream can be about single keys."""
    by = set(node.promised_by)
    return bool(by) and all(isinstance(key, exp.Column) for key in keys) and by == {key.name for key in keys}
