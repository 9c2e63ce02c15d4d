"""Logical plans: what a query means. Fields, schema and questions; hosts and optimizers visit them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Self

import polars as pl
from sqlglot import exp

from windrow.aggregates import UserAggregate, make
from windrow.aggregates.aggregate import Parameter
from windrow.logical.expressions import dtype_of
from windrow.logical.monotone import monotone
from windrow.logical.node import Node, Time, Times, columns_in, progressing
from windrow.logical.source import Progress, Scan, Statistics
from windrow.spec.flush import FlushPolicy
from windrow.spec.functions import Function
from windrow.spec.names import BRANCH, STATUS, VERSION, WINDOW_END, WINDOW_START
from windrow.spec.options import PLAIN, Options
from windrow.windows import Landmark, Partitioned, RowSliding, Session, SlideByTuple, Sliding

__all__ = [
    "AggregateCall",
    "Apply",
    "Distinct",
    "Filter",
    "Join",
    "Node",
    "Ordered",
    "Progress",
    "Project",
    "Scan",
    "Shape",
    "Split",
    "Statistics",
    "Together",
    "Top",
    "Union",
    "WindowAggregate",
    "progressing",
    "window_time",
]

Shape = Sliding | Landmark | RowSliding | Partitioned | SlideByTuple | Session
PROGRESSING = "a timestamp, date or integer"
# Shares of all rows; with a second parameter, which FILTER gives them, of the values that are not NULL.
OF_ROWS = ("heavy_hitters", "approx_heavy_hitters")


class Single(Node):
    """A node with one input."""

    input: Node

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def rebuild(self, *inputs: Node) -> Self:
        (node,) = inputs
        return replace(self, input=node)  # type: ignore[type-var]


class OnRows(Single):
    """A node that changes rows one by one: whatever it says of its input holds for columns that it passes on."""

    def passed_on(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        """The names that columns of the input have in the output; none if one of them is not kept as it is."""
        return columns

    @property
    def arrival(self) -> tuple[str, ...]:
        return self.passed_on(self.input.arrival)

    @property
    def promised_by(self) -> tuple[str, ...]:
        return self.passed_on(self.input.promised_by)

    @property
    def versioned(self) -> bool:
        return self.input.versioned

    @property
    def scans(self) -> list[Scan]:
        return self.input.scans

    @property
    def origin(self) -> Node:
        return self.input.origin


class SameRows(Single):
    """A node whose rows are rows of its input, as they were."""

    @property
    def schema(self) -> dict[str, pl.DataType]:
        return self.input.schema

    @property
    def times(self) -> Times:
        return self.input.times

    @property
    def origin(self) -> Node:
        return self.input.origin


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

    def _time(self, tree: exp.Expr) -> Time | None:
        """What a column progresses by, if it does: it is one of the input, just before one, or the later of two."""
        given = self.input.times
        if isinstance(tree, exp.Column):
            return given.get(tree.name)
        if isinstance(tree, (exp.Greatest, exp.Least)):
            return _of_both(tree, given)
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


def _of_both(tree: exp.Expr, given: Times) -> Time | None:
    """``greatest(l, r)`` and ``least(l, r)`` of the two times of a join progress, too."""
    columns = [tree.this, *tree.expressions]
    times = [given.get(c.name) for c in columns if isinstance(c, exp.Column)]
    if len(times) != len(columns) or sorted(t.of for t in times if t is not None) != [LEFT, RIGHT]:
        return None
    return Time(0, LATER if isinstance(tree, exp.Greatest) else EARLIER)


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


def columns_read(node: Node, wanted: set[str]) -> dict[str, set[str]]:
    """By the name of a source, the columns that are read from it so that these columns of a node can be computed."""
    asked, found = columns_asked(node, wanted), dict[str, set[str]]()
    for each in node.walk():
        if isinstance(each, Scan):
            found.setdefault(each.name, set()).update(asked[id(each)], each.source.columns)
    return found


def columns_asked(node: Node, wanted: set[str]) -> dict[int, set[str]]:
    """By the identity of each node of a tree, the columns of it that others use."""
    asked: dict[int, set[str]] = {id(node): set(wanted)}
    for each in reversed(list(node.walk())):  # consumers first
        for given, used in zip(each.inputs, each.columns_used(asked[id(each)]), strict=True):
            asked.setdefault(id(given), set()).update(used)
    return asked


def aggregate_type(call: AggregateCall, schema: dict[str, pl.DataType]) -> pl.DataType:
    """The type of an aggregate's result."""
    dtype = pl.Int64() if call.argument is None else dtype_of(call.argument, schema)
    return make(
        call.function, call.name, None if call.argument is None else "x", dtype, call.parameters, call.user
    ).result


def before(column: str, dtype: pl.DataType) -> exp.Expr:
    """The value just before that of a column: the last instant of a window that ends there.

    >>> before("window_end", pl.Date()).sql("spark"), before("window_end", pl.Int64()).sql("spark")
    ("window_end - INTERVAL '1' DAY", 'window_end - 1')
    """
    unit = "DAY" if dtype == pl.Date else "MICROSECOND"
    step = (
        exp.Literal.number(1) if dtype.is_integer() else exp.Interval(this=exp.Literal.string("1"), unit=exp.var(unit))
    )
    return exp.Sub(this=exp.column(column), expression=step)


def window_time(node: Node) -> exp.Expr | None:
    """The last instant of the window whose result a row is, as an expression of its columns; None for other rows."""
    window, results = node.origin, node
    while isinstance(results, SameRows):
        results = results.input
    if not isinstance(window, WindowAggregate) or (results is not window and WINDOW_END not in node.times):
        return None
    return exp.column(WINDOW_END) if window.window.inclusive else before(WINDOW_END, node.schema[WINDOW_END])
