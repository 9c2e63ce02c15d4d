"""Nodes on rows: conditions, expressions, functions, unions, order and duplicates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import polars as pl
from sqlglot import exp

from windrow.logical.asked import columns_read
from windrow.logical.expressions import dtype_of
from windrow.logical.join import EARLIER, FIRST, LATER, LEFT, RIGHT
from windrow.logical.kinds import OnRows, SameRows
from windrow.logical.monotone import monotone
from windrow.logical.node import Node, Time, Times, before, columns_in, progressing
from windrow.logical.source import Scan
from windrow.spec.functions import Function
from windrow.spec.names import BRANCH
from windrow.windows.multiway import Moment

OF_BOTH: dict[type[exp.Expr], str] = {exp.Greatest: LATER, exp.Least: EARLIER, exp.Coalesce: FIRST}


@dataclass(frozen=True)
class Filter(OnRows, SameRows):
    """The rows for which ``predicate`` is true."""

    input: Node
    predicate: exp.Expr

    def columns_used(self, wanted: set[str]) -> tuple[set[str], ...]:
        return (wanted | columns_in([self.predicate]),)


@dataclass(frozen=True)
class Project(OnRows):
    """Named expressions. ``on``: the column that rows progress on from here, by its value, where a query names one."""

    input: Node
    columns: tuple[tuple[str, exp.Expr], ...]
    on: str | None = None

    @cached_property
    def schema(self) -> dict[str, pl.DataType]:
        return {name: dtype_of(e, self.input.schema) for name, e in self.columns}

    @cached_property
    def times(self) -> Times:
        """The columns that progress and are passed on; else one that is an expression of what progressed."""
        if self.on is not None:
            return {self.on: self.input.times[self.on]._replace(lead=0)}
        kept = {n: time for n, e in self.columns if (time := self._time(e)) is not None}
        return kept if kept or self._retimed is None else {self._retimed: Time(0, self._retimed)}

    @property
    def hidden(self) -> tuple[str, ...]:
        return self.input.hidden if self.on is not None else ()

    @property
    def pair_times(self) -> dict[str, str]:
        given = self.input.pair_times
        return {n: given[e.name] for n, e in self.columns if isinstance(e, exp.Column) and e.name in given}

    def _time(self, tree: exp.Expr) -> Time | None:
        """What a column progresses by, if it does: it is one of the input, just before one, or the later of two."""
        given = self.input.times
        if isinstance(tree, exp.Column):
            return given.get(tree.name)
        if type(tree) in OF_BOTH:
            return _of_both(tree, self.input.pair_times)
        found = (t for c, t in given.items() if t.lead == 1 and tree == before(c, self.input.schema[c]))
        return next((t._replace(lead=0) for t in found), None)

    @cached_property
    def _retimed(self) -> str | None:
        schema = self.schema
        found = (n for n, e in self.columns if monotone(e, self.input.progress) and progressing(schema[n]))
        return next(found, None)

    @property
    def retimes(self) -> exp.Expr | None:
        """The expression that rows progress on from here, if it is another than before."""
        if self.on is not None or self.progress is None:
            return None
        tree = dict(self.columns)[self.progress]
        return tree if self._time(tree) is None else None

    def passed_on(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        named = {e.name: n for n, e in self.columns if isinstance(e, exp.Column)}
        return tuple(named[c] for c in columns) if all(c in named for c in columns) else ()

    def columns_used(self, wanted: set[str]) -> tuple[set[str], ...]:  # noqa: ARG002 (a projection computes all)
        return (columns_in(e for _, e in self.columns),)


def _of_both(tree: exp.Expr, given: Mapping[str, str]) -> Time | None:
    """``greatest(l, r)``, ``least(l, r)`` and ``coalesce(l, r)`` of the two times of a join progress, too."""
    columns = [tree.this, *tree.expressions]
    times = [given.get(c.name, "") for c in columns if isinstance(c, exp.Column)]
    if len(times) == len(columns) and (moment := _of_several(tree, times)) is not None:
        return Time(0, moment.name)
    both = len(times) == len(columns) and sorted(times) == [LEFT, RIGHT]
    if not both or (isinstance(tree, exp.Coalesce) and times[0] != LEFT):
        return None
    return Time(0, OF_BOTH[type(tree)])


def _of_several(tree: exp.Expr, times: Sequence[str]) -> Moment | None:
    """The same of some times of a multi-way join, which has no results without one of them."""
    found = [moment for time in times if (moment := Moment.read(time)) is not None]
    inputs = {each for moment in found for each in moment.inputs}
    if isinstance(tree, exp.Coalesce) or not found or len(found) < len(times):
        return None
    return Moment(tuple(sorted(inputs)), isinstance(tree, exp.Greatest))


@dataclass(frozen=True)
class Union(Node):
    """All rows of all inputs (a bag, as the thesis's union)."""

    members: tuple[Node, ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.members

    def rebuild(self, *inputs: Node) -> Self:
        return replace(self, members=inputs)

    @property
    def schema(self) -> dict[str, pl.DataType]:
        return self.members[0].schema

    @property
    def times(self) -> Times:
        """What all members progress on, under its name here."""
        shared = {c: t.lead for c, t in self.members[0].times.items()}
        for each in self.members[1:]:
            shared = {c: lead for c, lead in shared.items() if c in each.times and each.times[c].lead == lead}
        return {c: Time(lead, c) for c, lead in shared.items()}

    @property
    def hidden(self) -> tuple[str, ...]:
        return self.members[0].hidden

    @property
    def promised_by(self) -> tuple[str, ...]:
        """Members whose promises are about everyone fit to any."""
        kinds = {by for each in self.members if (by := each.promised_by)}
        return kinds.pop() if len(kinds) == 1 else ()

    @property
    def scans(self) -> list[Scan]:
        return [s for each in self.members for s in each.scans]

    def columns_used(self, wanted: set[str]) -> tuple[set[str], ...]:
        return tuple(set(wanted) for _ in self.members)


@dataclass(frozen=True)
class Apply(OnRows):
    """One more column, by a Python function of others."""

    input: Node
    column: str
    function: Function

    @property
    def schema(self) -> dict[str, pl.DataType]:
        return {**self.input.schema, self.column: self.function.returns}

    @property
    def times(self) -> Times:
        """The input's, unless the function overwrites them and their order is not known to be the same."""
        kept = {c: time for c, time in self.input.times.items() if c != self.column}
        return {self.column: Time(0, self.column)} if not kept and self.moves else kept

    @property
    def pair_times(self) -> dict[str, str]:
        return {c: of for c, of in self.input.pair_times.items() if c != self.column}

    @property
    def moves(self) -> bool:
        """Whether rows progress on what the function gives."""
        function = self.function
        same = function.monotone and function.columns == (self.input.progress,) and progressing(function.returns)
        return same and list(self.input.times) == [self.column]

    def passed_on(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        return columns if self.column not in columns else ()

    def columns_used(self, wanted: set[str]) -> tuple[set[str], ...]:
        return ((wanted - {self.column}) | {*self.function.columns},)


@dataclass(frozen=True)
class Split(OnRows):
    """Rows for which ``predicate`` is true go through ``yes``, the others through ``no``: both are over a scan of
    BRANCH.
    """

    input: Node
    predicate: exp.Expr
    yes: Node
    no: Node

    @property
    def schema(self) -> dict[str, pl.DataType]:
        return self.yes.schema

    @property
    def times(self) -> Times:
        """What both branches progress on; it is an attribute of the input only where both take the same one."""
        both = {c: (a, b) for c, a in self.yes.times.items() if (b := self.no.times.get(c)) and a.lead == b.lead}
        return {c: a if a == b else Time(a.lead, c) for c, (a, b) in both.items()}

    def passed_on(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        kept = {_along(self.yes, columns), _along(self.no, columns)}
        return kept.pop() if len(kept) == 1 else ()

    def columns_used(self, wanted: set[str]) -> tuple[set[str], ...]:
        used = columns_in([self.predicate])
        for branch in (self.yes, self.no):
            used |= columns_read(branch, wanted)[BRANCH]
        return (used,)


def _along(node: Node, columns: tuple[str, ...]) -> tuple[str, ...]:
    """The names that columns have behind a whole branch."""
    return node.passed_on(_along(node.input, columns)) if isinstance(node, OnRows) else columns


@dataclass(frozen=True)
class Distinct(SameRows):
    """Each row once."""

    input: Node

    @property
    def scans(self) -> list[Scan]:
        return self.input.scans

    def columns_used(self, wanted: set[str]) -> tuple[set[str], ...]:  # noqa: ARG002 (all columns make a row)
        return (set(self.schema),)


@dataclass(frozen=True)
class Ordered(SameRows):
    """All rows in the order of the progressing attribute, and where that is the same, of more expressions."""

    input: Node
    order: tuple[tuple[exp.Expr, bool], ...] = ()

    @property
    def scans(self) -> list[Scan]:
        return self.input.scans

    def columns_used(self, wanted: set[str]) -> tuple[set[str], ...]:
        assert self.progress is not None
        return (wanted | {self.progress} | columns_in(e for e, _ in self.order),)
