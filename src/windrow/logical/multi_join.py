"""The node of a multi-way join: results with one row of each of several streams."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import polars as pl
from sqlglot import exp

from windrow.logical.node import Node, Time, Times, columns_in
from windrow.spec.functions import Function, all_of
from windrow.spec.in_order import MODES
from windrow.spec.options import Policy
from windrow.spec.spread import RINGS, RingOptions
from windrow.windows.multiway import Moment, Ranges

MULTI, PIPELINE = "multi", "pipeline"  # one operator, or binary joins one after another
WAYS = (MULTI, PIPELINE, *MODES, *RINGS)  # with results in any order, in order from one operator, or spread over nodes


@dataclass(frozen=True)
class MultiJoin(Node):
    """One row of each member, with equal keys, each still held when the last of them comes.

    ``on``: for each member its key expressions; the n-th ones of all members must be equal, and NULL equals nothing.
    ``ranges``: how long the rows of each member are held. ``columns``: the name of each result column, the number of
    its member, and its name there. ``where`` and ``tests``: what else must be true, over columns of ``columns``.
    ``late``: what happens to late rows of each member. ``using``: one of ``WAYS``, if the query names one. ``alpha``:
    of an adaptive one, from which share of its time on it filters before it orders; ``cost``: the time to compare two
    rows, in the smallest unit of progress. ``nodes``: how many share the state of one that is spread over nodes, if
    the query says so, and ``options``: how.
    """

    members: tuple[Node, ...]
    on: tuple[tuple[exp.Expr, ...], ...]
    ranges: Ranges
    columns: tuple[tuple[str, int, str], ...]
    where: exp.Expr | None = None
    tests: tuple[Function, ...] = ()
    late: tuple[Policy, ...] = ()
    using: str | None = None
    alpha: float | None = None
    cost: float | None = None
    nodes: int | None = None
    options: RingOptions = field(default_factory=RingOptions)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.members

    def rebuild(self, *inputs: Node) -> Self:
        if len(inputs) != len(self.members):
            raise ValueError(f"a join of {len(self.members)} streams over {len(inputs)}")
        return replace(self, members=inputs)

    @cached_property
    def schema(self) -> dict[str, pl.DataType]:
        return {name: self.members[member].schema[column] for name, member, column in self.columns}

    @property
    def keys(self) -> list[tuple[exp.Expr, ...]]:
        """The keys, each with one expression for every member."""
        return list(zip(*self.on, strict=True))

    @property
    def times(self) -> Times:
        """The times of all rows, if they are selected."""
        return {name: Time(0, of) for name, of in self.pair_times.items()}

    @property
    def pair_times(self) -> dict[str, str]:
        own = [member.progress for member in self.members]
        return {name: Moment((member,)).name for name, member, column in self.columns if column == own[member]}

    @property
    def latest(self) -> Moment:
        """The result's own timestamp."""
        return Moment(tuple(range(len(self.members))))

    @cached_property
    def test(self) -> Function | None:
        """All users' conditions as one."""
        return all_of(self.tests)

    @property
    def by_rows(self) -> bool:
        """Whether the last rows of some stream are held, instead of those of a time."""
        return any(self.ranges.by_rows)

    @property
    def tested(self) -> set[str]:
        """The columns that its conditions are over."""
        return columns_in([self.where]) | {column for test in self.tests for column in test.columns}

    def columns_used(self, wanted: set[str]) -> tuple[set[str], ...]:
        wanted = wanted | self.tested
        return tuple(
            {column for name, of, column in self.columns if of == number and name in wanted}
            | columns_in(self.on[number])
            | {member.progress or ""}
            | ({*member.schema} if self.ranges.counts(number) else set())  # which rows are the last ones, if times tie
            for number, member in enumerate(self.members)
        )
