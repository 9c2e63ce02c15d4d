"""The node of groups by both times of a join."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import polars as pl
from sqlglot import exp

from windrow.logical.expressions import dtype_of
from windrow.logical.join import LEFT, RIGHT, Join
from windrow.logical.kinds import Single
from windrow.logical.lookup import Lookup
from windrow.logical.monotone import monotone
from windrow.logical.node import Node, Time, Times, columns_in, progressing
from windrow.logical.rows import Apply, Filter, Project
from windrow.logical.windowed import AggregateCall, aggregate_type
from windrow.spec.keeping import ALIKE


@dataclass(frozen=True)
class PairAggregate(Single):
    """Aggregates of each group by both times of a join (Li 7.2, Q7-1).

    ``keys``: what the groups are by. ``left`` and ``right`` are those of them that are the times of the pairs, or
    functions of them that never give less for more: a group is complete when no pair with such times can come.
    """

    input: Node
    left: str
    right: str
    keys: tuple[tuple[str, exp.Expr], ...]
    calls: tuple[AggregateCall, ...]

    @cached_property
    def schema(self) -> dict[str, pl.DataType]:
        given = self.input.schema
        found = {name: dtype_of(e, given) for name, e in self.keys}
        return found | {c.name: aggregate_type(c, given) for c in self.calls}

    @property
    def times(self) -> Times:
        """Those that every row of the input has."""
        return {key: Time(0, of) for key, of in self._both.items() if self.column(key) in self.input.times}

    @property
    def pair_times(self) -> dict[str, str]:
        """Of two functions of time there is no later one."""
        left, right = (_anonymous(dict(self.keys)[key]) for key in (self.left, self.right))
        return self._both if left == right else {}

    @property
    def _both(self) -> dict[str, str]:
        return {self.left: LEFT, self.right: RIGHT}

    def column(self, key: str) -> str:
        """The column of the input with the time that a key is a function of."""
        [column] = columns_in([dict(self.keys)[key]])
        return column

    def columns_used(self, wanted: set[str]) -> tuple[set[str], ...]:  # noqa: ARG002 (an aggregation computes all)
        used = columns_in([*(e for _, e in self.keys), *(c.argument for c in self.calls)])
        if any(c.user is not None for c in self.calls):
            used |= {c for c in self.input.schema if not c.startswith("@")}  # the whole row can be asked for
        return (used | {c for c in self.input.times if c in self.input.pair_times},)


def _anonymous(tree: exp.Expr) -> exp.Expr:
    """A function of one column, whatever the column is called."""
    return tree.transform(lambda part: exp.column("t") if isinstance(part, exp.Column) else part)


def both_times(node: Node, keys: Mapping[str, exp.Expr]) -> tuple[str, str] | None:
    """Of the keys of groups, those that are the left and the right time of the pairs of a join; None if not both are.

    What is between the join and the groups must let joint promises pass: conditions, expressions, functions and
    lookups in a table do. A join that puts its results in order makes none.
    """
    origin = node
    while isinstance(origin, (Filter, Project, Apply, Lookup)):
        if isinstance(origin, Project) and origin.on is not None:  # from there on rows progress on one time
            return None
        origin = origin.input
    unordered = isinstance(origin, Join) and origin.using in (None, *ALIKE)
    if not unordered and not isinstance(origin, PairAggregate):
        return None
    found: dict[str, str] = {}
    for key, tree in keys.items():
        for column, of in node.pair_times.items():
            if monotone(tree, column) and progressing(dtype_of(tree, node.schema)):
                found.setdefault(of, key)
    return (found[LEFT], found[RIGHT]) if {LEFT, RIGHT} <= set(found) else None
