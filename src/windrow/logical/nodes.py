"""Logical plans: what a query means. Fields and schema, nothing else; hosts and optimizers visit them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import polars as pl
from sqlglot import exp

from windrow.aggregates import make
from windrow.errors import PlanError, QueryError, listing
from windrow.logical.expressions import dtype_of, fail
from windrow.windows import Landmark, Partitioned, RowSliding, Session, SlideByTuple, Sliding

Shape = Sliding | Landmark | RowSliding | Partitioned | SlideByTuple | Session
WINDOW_START, WINDOW_END = "window_start", "window_end"
PROGRESSING = "a timestamp, date or integer"


@dataclass(frozen=True)
class Progress:
    """How a source progresses. Exactly one of ``slack`` and ``marker`` makes promises; a finite source needs none."""

    attribute: str
    slack: int | None = None
    marker: str | None = None
    parse: str | None = None


@dataclass(frozen=True)
class Scan:
    """A named source. ``columns`` are what a query sees: text progress values are already timestamps here."""

    name: str
    columns: tuple[tuple[str, pl.DataType], ...]
    source: Progress

    @cached_property
    def schema(self) -> dict[str, pl.DataType]:
        return dict(self.columns)

    @property
    def progress(self) -> str:
        return self.source.attribute


@dataclass(frozen=True)
class Filter:
    """The rows for which ``predicate`` is true."""

    input: Node
    predicate: exp.Expr

    @property
    def schema(self) -> dict[str, pl.DataType]:
        return self.input.schema

    @property
    def progress(self) -> str | None:
        return self.input.progress


@dataclass(frozen=True)
class Project:
    """Named expressions."""

    input: Node
    columns: tuple[tuple[str, exp.Expr], ...]

    @cached_property
    def schema(self) -> dict[str, pl.DataType]:
        return {name: dtype_of(e, self.input.schema) for name, e in self.columns}

    @property
    def progress(self) -> str | None:
        """The name under which the progressing attribute is passed on, if it is."""
        kept = (n for n, e in self.columns if isinstance(e, exp.Column) and e.name == self.input.progress)
        return next(kept, None)


@dataclass(frozen=True)
class Union:
    """All rows of all inputs (a bag, as the thesis's union)."""

    inputs: tuple[Node, ...]

    @property
    def schema(self) -> dict[str, pl.DataType]:
        return self.inputs[0].schema

    @property
    def progress(self) -> str | None:
        return self.inputs[0].progress


@dataclass(frozen=True)
class AggregateCall:
    """``function(argument) AS name``; no argument means ``*``."""

    name: str
    function: str
    argument: exp.Expr | None = None


@dataclass(frozen=True)
class WindowAggregate:
    """Aggregates of each window and group; ``using`` names a physical operator where the user forces one."""

    input: Node
    window: Shape
    keys: tuple[tuple[str, exp.Expr], ...]
    calls: tuple[AggregateCall, ...]
    using: str | None = None

    @property
    def attribute(self) -> str:
        """The windowing attribute: the input's progressing attribute."""
        assert self.input.progress is not None
        return self.input.progress

    @cached_property
    def schema(self) -> dict[str, pl.DataType]:
        given = self.input.schema
        bound = given[self.attribute]
        found = {name: dtype_of(e, given) for name, e in self.keys}
        found |= {WINDOW_START: bound, WINDOW_END: bound}
        return found | {c.name: aggregate_type(c, given) for c in self.calls}

    @property
    def progress(self) -> str:
        return WINDOW_END


Node = Scan | Filter | Project | Union | WindowAggregate


def aggregate_type(call: AggregateCall, schema: dict[str, pl.DataType]) -> pl.DataType:
    """The type of an aggregate's result."""
    dtype = pl.Int64() if call.argument is None else dtype_of(call.argument, schema)
    return make(call.function, call.name, None if call.argument is None else "x", dtype).result


def progressing(dtype: pl.DataType) -> bool:
    """Whether a column of this type can be a progressing attribute."""
    return dtype.is_integer() or isinstance(dtype, (pl.Datetime, pl.Date))


# -- checked constructors: SQL and Python both build plans with these, so both refuse the same things -----------------
def filtered(node: Node, predicate: exp.Expr, sql: str | None = None) -> Filter:
    """A filter whose predicate is boolean."""
    if (dtype := dtype_of(predicate, node.schema, sql)) not in (pl.Boolean, pl.Null):
        raise fail(predicate, f"a condition must be true or false, and this is of type {dtype}", sql)
    return Filter(node, predicate)


def united(nodes: list[Node]) -> Node:
    """A union of streams with the same columns that progress on the same attribute."""
    first = nodes[0]
    for other in nodes[1:]:
        if dict(other.schema) != dict(first.schema):
            differ = {c: (first.schema.get(c), other.schema.get(c)) for c in {*first.schema, *other.schema}}
            named = [f"{c} ({a} and {b})" for c, (a, b) in sorted(differ.items()) if a != b] or ["their order"]
            raise QueryError(f"a union needs the same columns on all sides; these differ: {', '.join(named)}")
        if other.progress != first.progress:
            raise QueryError(f"a union needs one progressing attribute, not {first.progress} and {other.progress}")
    flat = [n for node in nodes for n in (node.inputs if isinstance(node, Union) else (node,))]
    return first if len(flat) == 1 else Union(tuple(flat))


def aggregated(
    node: Node,
    window: Shape,
    keys: tuple[tuple[str, exp.Expr], ...],
    calls: tuple[AggregateCall, ...],
    using: str | None = None,
    sql: str | None = None,
) -> WindowAggregate:
    """A window aggregate whose parts all exist and fit."""
    if node.progress is None:
        raise PlanError(
            "the windowing attribute is lost before the window: keep the progressing column in the SELECT list"
        )
    if not calls:
        raise QueryError("a window needs at least one aggregate, such as count(*)")
    names = [n for n, _ in keys] + [WINDOW_START, WINDOW_END] + [c.name for c in calls]
    if twice := {n for n in names if names.count(n) > 1}:
        raise QueryError(f"output columns need different names; given twice: {listing(twice)}")
    for call in calls:
        if call.argument is None:
            continue
        dtype = dtype_of(call.argument, node.schema, sql)
        try:
            make(call.function, call.name, "x", dtype)
        except QueryError as error:
            raise fail(call.argument, str(error), sql) from None
    return WindowAggregate(node, window, keys, calls, using)
