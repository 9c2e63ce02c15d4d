"""The node of a join: pairs of rows of two streams."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Self

import polars as pl
from sqlglot import exp

from windrow.logical.node import Node, Time, Times, columns_in
from windrow.spec.functions import Function
from windrow.spec.joining import Limits
from windrow.spec.options import Policy
from windrow.windows.pairing import Pairing, Side

# What the results of a join can progress on. No column of a source has such a name.
LEFT, RIGHT, LATER, EARLIER, FIRST = "@left", "@right", "@later", "@earlier", "@first"
How = Literal["inner", "left", "right", "full", "semi", "anti"]
HOWS: tuple[How, ...] = ("inner", "left", "right", "full", "semi", "anti")
# The sides of which a row comes out without a partner, and those whose times every result row has.
UNMATCHED: dict[How, tuple[Side, ...]] = {
    "inner": (),
    "left": (0,),
    "right": (1,),
    "full": (0, 1),
    "semi": (),
    "anti": (0,),
}
TIMED: dict[How, tuple[Side, ...]] = {
    "inner": (0, 1),
    "left": (0,),
    "right": (1,),
    "full": (),
    "semi": (0,),
    "anti": (0,),
}


@dataclass(frozen=True)
class Join(Node):
    """Pairs of a left and a right row whose keys are equal and whose times are near (Li, chapter 7).

    ``on``: expressions over the left and over the right row that must be equal; NULL equals nothing. ``window``: how
    near the times must be, in the unit of the progressing attribute. ``columns``: the name of each result column, the
    side it is from (0 left, 1 right), and its name there. ``where``: what else must be true, over all columns of
    ``columns``; so does ``test``, a Python function. ``how``: which rows come out without a partner, with NULL for the
    columns of the other side; of a semi join the left rows that have a partner, of an anti join those that have none.
    ``late``: what happens to late rows of each side. ``by_rows``: the times are row numbers. ``using``: the physical
    join, if the query names one. ``alpha``: of an adaptive one, from which share of its time on it filters before it
    orders; ``cost``: the time to compare two rows, in the smallest unit of progress. ``limits``: what it may spend.
    """

    left: Node
    right: Node
    on: tuple[tuple[exp.Expr, exp.Expr], ...]
    window: Pairing
    columns: tuple[tuple[str, Side, str], ...]
    where: exp.Expr | None = None
    how: How = "inner"
    test: Function | None = None
    late: tuple[Policy, Policy] = ("drop", "drop")
    by_rows: bool = False
    using: str | None = None
    alpha: float | None = None
    limits: Limits | None = None
    cost: float | None = None

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    def rebuild(self, *inputs: Node) -> Self:
        left, right = inputs
        return replace(self, left=left, right=right)

    @cached_property
    def pairs(self) -> dict[str, pl.DataType]:
        """The columns of a pair, which conditions are over."""
        return {name: self.inputs[side].schema[column] for name, side, column in self.columns}

    @cached_property
    def schema(self) -> dict[str, pl.DataType]:
        """Of a semi or anti join only what is from the left."""
        kept = (0,) if self.how in ("semi", "anti") else (0, 1)
        return {name: self.pairs[name] for name, side, _ in self.columns if side in kept}

    @property
    def times(self) -> Times:
        """The times that every result has, if they are selected."""
        return {n: Time(0, of) for n, of in self.pair_times.items() if (LEFT, RIGHT).index(of) in TIMED[self.how]}

    @property
    def pair_times(self) -> dict[str, str]:
        if self.by_rows:  # results have row numbers, and no promises about times
            return {}
        times = [each.progress for each in self.inputs]
        return {n: (LEFT, RIGHT)[s] for n, s, c in self.columns if n in self.schema and c == times[s]}

    def columns_used(self, wanted: set[str]) -> tuple[set[str], ...]:
        wanted = wanted | self.tested
        if self.limits is not None:  # which rows are shed depends on all of their columns
            wanted = {name for name, _, _ in self.columns}
        used: list[set[str]] = []
        for side, node in enumerate(self.inputs):
            own = {column for name, from_side, column in self.columns if from_side == side and name in wanted}
            time = node.arrival[-1:] if self.by_rows else (node.progress or "",)
            used.append(own | columns_in(pair[side] for pair in self.on) | {*time})
        return tuple(used)

    @property
    def tested(self) -> set[str]:
        """The columns that its conditions are over."""
        return columns_in([self.where]) | {*(self.test.columns if self.test is not None else ())}
