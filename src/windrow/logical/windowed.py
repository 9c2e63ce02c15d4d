"""Nodes of windows: aggregation, the first rows of each window, and queries that run together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import polars as pl
from sqlglot import exp

from windrow.aggregates import UserAggregate, make
from windrow.aggregates.aggregate import Parameter
from windrow.logical.expressions import dtype_of
from windrow.logical.kinds import SameRows, Single
from windrow.logical.node import Node, Time, Times, before, columns_in
from windrow.spec.flush import FlushPolicy
from windrow.spec.names import STATUS, VERSION, WINDOW_END, WINDOW_START
from windrow.spec.options import PLAIN, Options
from windrow.windows import Landmark, Partitioned, RowSliding, Session, SlideByTuple, Sliding

Shape = Sliding | Landmark | RowSliding | Partitioned | SlideByTuple | Session
# Shares of all rows; with a second parameter, which FILTER gives them, of the values that are not NULL.
OF_ROWS = ("heavy_hitters", "approx_heavy_hitters")


@dataclass(frozen=True)
class AggregateCall:
    """``function(argument, parameters) AS name``; no argument means ``*``."""

    name: str
    function: str
    argument: exp.Expr | None = None
    parameters: tuple[Parameter, ...] = ()
    user: UserAggregate | None = None


@dataclass(frozen=True)
class WindowAggregate(Single):
    """Aggregates of each window and group; ``using`` names a physical operator where the user asks for one."""

    input: Node
    window: Shape
    keys: tuple[tuple[str, exp.Expr], ...]
    calls: tuple[AggregateCall, ...]
    using: str | None = None
    options: Options = PLAIN
    parts: tuple[str, ...] = ()  # the keys (PA) whose rows have windows of their own
    memory: int | None = None  # bytes that the state should not exceed, as far as the optimizer can tell
    flush: FlushPolicy | None = None  # of two-level aggregation: when entries of old windows leave the table

    @property
    def by_rows(self) -> bool:
        """Whether the windows are over row numbers."""
        return self.window.by_rows

    @property
    def attribute(self) -> str:
        """The windowing attribute: the input's progressing attribute, or what numbers its rows."""
        if self.by_rows:
            return self.input.arrival[-1]
        assert self.input.progress is not None
        return self.input.progress

    @property
    def bound(self) -> pl.DataType:
        """The type of a window's bounds: of integers the widest one, as a bound can lie beyond a narrow type."""
        dtype = self.input.schema[self.attribute]
        return pl.Int64() if dtype.is_integer() else dtype

    @cached_property
    def schema(self) -> dict[str, pl.DataType]:
        given = self.input.schema
        found = {name: dtype_of(e, given) for name, e in self.keys}
        found |= {WINDOW_START: self.bound, WINDOW_END: self.bound}
        found |= {c.name: aggregate_type(c, given) for c in self.calls}
        return found | ({VERSION: pl.Int64(), STATUS: pl.String()} if self.options.versioned else {})

    @property
    def times(self) -> Times:
        """A result progresses on the last instant of its window: the end itself is the first that is not in it, but for
        windows back from a row. Windows of partitions end in no common order; those with versions can come again.
        """
        if not self.window.ends_in_order or self.versioned:
            return {}
        return {WINDOW_END: Time(0 if self.window.inclusive else 1, WINDOW_END)}

    @property
    def versioned(self) -> bool:
        return self.options.versioned

    @property
    def promised_by(self) -> tuple[str, ...]:
        return self.closed_by if self.progress is not None else ()

    @property
    def closed_by(self) -> tuple[str, ...]:
        """The keys by which promises about single groups close windows, in the order of ``promised_by`` of the input.

        None where groups are by other columns or by expressions, which a promise about a column says nothing about; and
        where windows are of the whole stream: over row numbers, or back from every n-th row of all groups.
        """
        named = {e.name: n for n, e in self.keys if isinstance(e, exp.Column)}
        columns = self.input.promised_by
        if self.by_rows or not all(c in named for c in columns):
            return ()
        found = tuple(named[c] for c in columns)
        return () if self.window.inclusive and not set(found) <= set(self.parts) else found

    def columns_used(self, wanted: set[str]) -> tuple[set[str], ...]:  # noqa: ARG002 (an aggregation computes all)
        used = columns_in([*(e for _, e in self.keys), *(c.argument for c in self.calls)])
        used |= {self.attribute, *self.input.arrival}
        if self.options.late == "side" or any(c.user is not None for c in self.calls):
            used |= {c for c in self.input.schema if not c.startswith("@")}  # the whole row can be asked for
        return (used,)


@dataclass(frozen=True)
class Top(SameRows):
    """The first ``limit`` rows of each window in an order of expressions, each descending or not."""

    input: Node
    order: tuple[tuple[exp.Expr, bool], ...]
    limit: int

    def columns_used(self, wanted: set[str]) -> tuple[set[str], ...]:
        return (wanted | columns_in(e for e, _ in self.order),)


@dataclass(frozen=True)
class Together(Node):
    """Several queries that run as one; each is a struct column of the result."""

    queries: tuple[tuple[str, Node], ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        return tuple(query for _, query in self.queries)

    def rebuild(self, *inputs: Node) -> Self:
        names = [name for name, _ in self.queries]
        return replace(self, queries=tuple(zip(names, inputs, strict=True)))

    @cached_property
    def schema(self) -> dict[str, pl.DataType]:
        return {name: pl.Struct(dict(query.schema)) for name, query in self.queries}

    @property
    def times(self) -> Times:
        return {}

    def columns_used(self, wanted: set[str]) -> tuple[set[str], ...]:  # noqa: ARG002 (every query is a result)
        return tuple(set(query.schema) for query in self.inputs)


def aggregate_type(call: AggregateCall, schema: dict[str, pl.DataType]) -> pl.DataType:
    """The type of an aggregate's result."""
    dtype = pl.Int64() if call.argument is None else dtype_of(call.argument, schema)
    return make(
        call.function, call.name, None if call.argument is None else "x", dtype, call.parameters, call.user
    ).result


def window_time(node: Node) -> exp.Expr | None:
    """The last instant of the window whose result a row is, as an expression of its columns; None for other rows."""
    window, results = node.origin, node
    while isinstance(results, SameRows):
        results = results.input
    if not isinstance(window, WindowAggregate) or (results is not window and WINDOW_END not in node.times):
        return None
    return exp.column(WINDOW_END) if window.window.inclusive else before(WINDOW_END, node.schema[WINDOW_END])
