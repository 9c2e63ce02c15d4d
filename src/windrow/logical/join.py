"""The node of a join: pairs of rows of two streams."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Self

import polars as pl
from sqlglot import exp

from windrow.logical.node import Node, Time, Times, columns_in

# What the results of a join can progress on. No column of a source has such a name.
LEFT, RIGHT, LATER, EARLIER = "@left", "@right", "@later", "@earlier"
Side = Literal[0, 1]


@dataclass(frozen=True)
class Join(Node):
    """Pairs of a left and a right row whose keys are equal and whose times are near (Li, chapter 7).

    ``on``: expressions over the left and over the right row that must be equal; NULL equals nothing. ``low`` and
    ``high``: the right time less the left time is in between, both included; in the unit of the progressing attribute.
    ``columns``: the name of each result column, the side it is from (0 left, 1 right), and its name there. ``where``:
    what else must be true, over the result columns.
    """

    left: Node
    right: Node
    on: tuple[tuple[exp.Expr, exp.Expr], ...]
    low: int
    high: int
    columns: tuple[tuple[str, Side, str], ...]
    where: exp.Expr | None = None

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
        """The times of both rows, if they are selected; ``greatest`` and ``least`` of both progress, too."""
        named = ((name, side) for name, side, column in self.columns if column == self.inputs[side].progress)
        return {name: Time(0, (LEFT, RIGHT)[side]) for name, side in named}

    def columns_used(self, wanted: set[str]) -> tuple[set[str], ...]:
        wanted = wanted | columns_in([self.where])
        used: list[set[str]] = []
        for side, node in enumerate(self.inputs):
            own = {column for name, from_side, column in self.columns if from_side == side and name in wanted}
            assert node.progress is not None
            used.append(own | columns_in(pair[side] for pair in self.on) | {node.progress})
        return tuple(used)
