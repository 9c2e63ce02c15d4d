"""Logical plans: what a query means. Fields and schema, nothing else; hosts and optimizers visit them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import polars as pl
from sqlglot import exp

from windrow.aggregates import UserAggregate, make
from windrow.aggregates.aggregate import Parameter
from windrow.logical.expressions import dtype_of
from windrow.logical.monotone import monotone
from windrow.spec.ahead import Ahead
from windrow.spec.flush import FlushPolicy
from windrow.spec.functions import Function
from windrow.spec.names import STATUS, VERSION, WINDOW_END, WINDOW_START
from windrow.spec.options import PLAIN, Options
from windrow.spec.rules import Rule
from windrow.windows import Landmark, Partitioned, RowSliding, Session, SlideByTuple, Sliding

Shape = Sliding | Landmark | RowSliding | Partitioned | SlideByTuple | Session
PROGRESSING = "a timestamp, date or integer"
# Shares of all rows; with a second parameter, which FILTER gives them, of the values that are not NULL.
OF_ROWS = ("heavy_hitters", "approx_heavy_hitters")
# The columns that progress with a stream, each with how far its value is ahead of the progress value of its row.
Times = dict[str, int]


class _Progressing:
    """What every node says about progress, from its ``times``."""

    times: Times

    @property
    def progress(self) -> str | None:
        """The progressing attribute: what windows are over where a query names none."""
        return next(iter(self.times), None)

    @property
    def lead(self) -> int:
        """How far the value of ``progress`` is ahead of the progress value: 1 for the end of a window, else 0."""
        return next(iter(self.times.values()), 0)


@dataclass(frozen=True)
class Progress:
    """How a source progresses. One of ``slack``, ``marker`` and ``rule`` makes promises; a finite source needs none."""

    attribute: str
    slack: int | None = None
    marker: str | None = None
    parse: str | None = None
    row_num: tuple[str, ...] = ()  # what numbers the rows by arrival: a column, or source partition and position
    row_slack: int = 0
    marker_by: tuple[str, ...] = ()  # the columns that say which group a marker is about
    rule: Rule | None = None  # how promises are made where slack and markers do not do it
    skew: int = 0  # markers are readings of a clock that can be so far ahead of rows that still come
    ahead: Ahead | None = None  # rows that are further ahead of their arrival are bad
    lead: int = 0  # how far the attribute is ahead of the progress value, in a branch of the results of windows

    @property
    def promises(self) -> bool:
        """Whether anything but its end says how far the source is."""
        return self.slack is not None or self.marker is not None or self.rule is not None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that tell how far the source is; the marker's is not one of the stream."""
        arrival = (self.ahead.arrival,) if self.ahead is not None else ()
        return (self.attribute, *self.marker_by, *(self.rule.columns if self.rule is not None else ()), *arrival)


@dataclass(frozen=True)
class Statistics:
    """What a user declares of a source, for the optimizer.

    ``rate``: rows per second of progress (per unit, where the progressing attribute is an integer, per day for dates).
    ``groups``: how many groups are active in a pane, for the queries that group this stream.
    """

    rate: float
    groups: float = 1.0


@dataclass(frozen=True)
class Scan(_Progressing):
    """A named source. ``columns`` are what a query sees: text progress values are already timestamps here."""

    name: str
    columns: tuple[tuple[str, pl.DataType], ...]
    source: Progress
    statistics: Statistics | None = None

    @cached_property
    def schema(self) -> dict[str, pl.DataType]:
        return dict(self.columns)

    @property
    def times(self) -> Times:  # type: ignore[override]
        return {self.source.attribute: self.source.lead}

    @property
    def progress(self) -> str:
        return self.source.attribute


class _Passing(_Progressing):
    """A node whose rows are rows of its input."""

    input: Node

    @property
    def schema(self) -> dict[str, pl.DataType]:
        return self.input.schema

    @property
    def times(self) -> Times:  # type: ignore[override]
        return self.input.times


@dataclass(frozen=True)
class Filter(_Passing):
    """The rows for which ``predicate`` is true."""

    input: Node
    predicate: exp.Expr


@dataclass(frozen=True)
class Project(_Progressing):
    """Named expressions. ``on``: the column that rows progress on from here, by its value, where a query names one."""

    input: Node
    columns: tuple[tuple[str, exp.Expr], ...]
    on: str | None = None

    @cached_property
    def schema(self) -> dict[str, pl.DataType]:
        return {name: dtype_of(e, self.input.schema) for name, e in self.columns}

    @cached_property
    def times(self) -> Times:  # type: ignore[override]
        """The columns that progress and are passed on; else one that is an expression of what progressed."""
        if self.on is not None:
            return {self.on: 0}
        kept = {n: lead for n, e in self.columns if (lead := self._lead(e)) is not None}
        return kept if kept or self._retimed is None else {self._retimed: 0}

    def _lead(self, tree: exp.Expr) -> int | None:
        given = self.input.times
        if isinstance(tree, exp.Column):
            return given.get(tree.name)
        found = (a - 1 for c, a in given.items() if a == 1 and tree == before(c, self.input.schema[c]))
        return next(found, None)

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
        return tree if self._lead(tree) is None else None


@dataclass(frozen=True)
class Union(_Progressing):
    """All rows of all inputs (a bag, as the thesis's union)."""

    inputs: tuple[Node, ...]

    @property
    def schema(self) -> dict[str, pl.DataType]:
        return self.inputs[0].schema

    @property
    def times(self) -> Times:  # type: ignore[override]
        return {c: a for c, a in self.inputs[0].times.items() if all(i.times.get(c) == a for i in self.inputs)}


@dataclass(frozen=True)
class AggregateCall:
    """``function(argument, parameters) AS name``; no argument means ``*``."""

    name: str
    function: str
    argument: exp.Expr | None = None
    parameters: tuple[Parameter, ...] = ()
    user: UserAggregate | None = None


@dataclass(frozen=True)
class WindowAggregate(_Progressing):
    """Aggregates of each window and group; ``using`` names a physical operator where the user forces one."""

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
        return isinstance(self.window, (RowSliding, Partitioned))

    @property
    def attribute(self) -> str:
        """The windowing attribute: the input's progressing attribute, or what numbers its rows."""
        if self.by_rows:
            return arrival(self.input)[-1]
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
    def times(self) -> Times:  # type: ignore[override]
        """A result progresses on the last instant of its window: the end itself is the first that is not in it, but for
        windows back from a row. Windows of partitions end in no common order; those with versions can come again.
        """
        if isinstance(self.window, Partitioned) or self.options.versioned:
            return {}
        return {WINDOW_END: 0 if isinstance(self.window, SlideByTuple) else 1}


@dataclass(frozen=True)
class Top(_Passing):
    """The first ``limit`` rows of each window in an order of expressions, each descending or not."""

    input: Node
    order: tuple[tuple[exp.Expr, bool], ...]
    limit: int


@dataclass(frozen=True)
class Apply(_Progressing):
    """One more column, by a Python function of others."""

    input: Node
    column: str
    function: Function

    @property
    def schema(self) -> dict[str, pl.DataType]:
        return {**self.input.schema, self.column: self.function.returns}

    @property
    def times(self) -> Times:  # type: ignore[override]
        """The input's, unless the function overwrites them and their order is not known to be the same."""
        kept = {c: a for c, a in self.input.times.items() if c != self.column}
        return {self.column: 0} if not kept and self.moves else kept

    @property
    def moves(self) -> bool:
        """Whether rows progress on what the function gives."""
        function = self.function
        same = function.monotone and function.columns == (self.input.progress,) and progressing(function.returns)
        return same and list(self.input.times) == [self.column]


@dataclass(frozen=True)
class Split(_Progressing):
    """Rows for which ``predicate`` is true go by ``yes``, the others by ``no``: both are over a scan of BRANCH."""

    input: Node
    predicate: exp.Expr
    yes: Node
    no: Node

    @property
    def schema(self) -> dict[str, pl.DataType]:
        return self.yes.schema

    @property
    def times(self) -> Times:  # type: ignore[override]
        return {c: a for c, a in self.yes.times.items() if self.no.times.get(c) == a}


@dataclass(frozen=True)
class Distinct(_Passing):
    """Each row once."""

    input: Node


@dataclass(frozen=True)
class Ordered(_Passing):
    """All rows in the order of the progressing attribute, and where that is the same, of more expressions."""

    input: Node
    order: tuple[tuple[exp.Expr, bool], ...] = ()


@dataclass(frozen=True)
class Together(_Progressing):
    """Several window queries over one stream that share their panes; each is a struct column of the result."""

    queries: tuple[tuple[str, Node], ...]

    @cached_property
    def schema(self) -> dict[str, pl.DataType]:
        return {name: pl.Struct(dict(query.schema)) for name, query in self.queries}

    @property
    def times(self) -> Times:  # type: ignore[override]
        return {}


Node = Scan | Filter | Project | Apply | Split | Union | Distinct | Ordered | WindowAggregate | Top | Together


def arrival(node: Node) -> tuple[str, ...]:
    """The columns that number a stream's rows by arrival; none if nothing does."""
    match node:
        case Scan():
            return node.source.row_num
        case Filter() | Project() | Apply() | Split():
            return _passed_on(node, arrival(node.input))
        case _:  # the rows of a union, and results, have no common order of arrival
            return ()


def promised_by(node: Node) -> tuple[str, ...]:
    """The columns by which a stream's promises can be about single groups; none if all are about everyone."""
    match node:
        case Scan():
            return node.source.marker_by or (node.source.rule.by if node.source.rule is not None else ())
        case Filter() | Project() | Apply() | Split():
            return _passed_on(node, promised_by(node.input))
        case Union():  # inputs whose promises are about everyone fit to any
            kinds = {by for each in node.inputs if (by := promised_by(each))}
            return kinds.pop() if len(kinds) == 1 else ()
        case WindowAggregate():
            return closed_by(node) if node.progress is not None else ()
        case _:
            return ()


def closed_by(node: WindowAggregate) -> tuple[str, ...]:
    """The keys by which promises about single groups close windows, in the order of ``promised_by`` of the input.

    None where groups are by other columns or by expressions, which a promise about a column says nothing about; and
    where windows are of the whole stream: over row numbers, or back from every n-th row of all groups.
    """
    named = {e.name: n for n, e in node.keys if isinstance(e, exp.Column)}
    columns = promised_by(node.input)
    if node.by_rows or not all(c in named for c in columns):
        return ()
    found = tuple(named[c] for c in columns)
    return () if isinstance(node.window, SlideByTuple) and not set(found) <= set(node.parts) else found


def _passed_on(node: Filter | Project | Apply | Split, columns: tuple[str, ...]) -> tuple[str, ...]:
    """The names that columns of the input have in the output; none if one of them is not kept as it is."""
    if isinstance(node, Filter):
        return columns
    if isinstance(node, Apply):
        return columns if node.column not in columns else ()
    if isinstance(node, Split):
        kept = {_along(node.yes, columns), _along(node.no, columns)}
        return kept.pop() if len(kept) == 1 else ()
    named = {e.name: n for n, e in node.columns if isinstance(e, exp.Column)}
    return tuple(named[c] for c in columns) if all(c in named for c in columns) else ()


def _along(node: Node, columns: tuple[str, ...]) -> tuple[str, ...]:
    """The same through a whole branch."""
    if isinstance(node, (Filter, Project, Apply, Split)):
        return _passed_on(node, _along(node.input, columns))
    return columns


def scans(node: Node) -> list[Scan]:
    """The sources whose rows come here; of results nothing is known before there are any."""
    match node:
        case Scan():
            return [node]
        case Filter() | Project() | Apply() | Split() | Distinct() | Ordered():
            return scans(node.input)
        case Union():
            return [s for each in node.inputs for s in scans(each)]
        case _:
            return []


def versioned(node: Node) -> bool:
    """Whether results can come in several versions."""
    match node:
        case WindowAggregate():
            return node.options.versioned
        case Filter() | Project() | Apply() | Split():
            return versioned(node.input)
        case _:
            return False


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
    window, results = under(node), node
    while isinstance(results, _Passing):
        results = results.input
    if not isinstance(window, WindowAggregate) or (results is not window and WINDOW_END not in node.times):
        return None
    inclusive = isinstance(window.window, SlideByTuple)
    return exp.column(WINDOW_END) if inclusive else before(WINDOW_END, node.schema[WINDOW_END])


def progressing(dtype: pl.DataType) -> bool:
    """Whether a column of this type can be a progressing attribute."""
    return dtype.is_integer() or isinstance(dtype, (pl.Datetime, pl.Date))


def under(node: Node) -> Node:
    """What a chain of steps on rows begins with: a source, a union, or windows."""
    while isinstance(node, (Filter, Project, Apply, Split, Distinct, Ordered, Top)):
        node = node.input
    return node
