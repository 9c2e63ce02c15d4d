"""Checked constructors of plans: SQL and Python both build with these, so both refuse the same things."""

from __future__ import annotations

import polars as pl
from sqlglot import exp

from windrow.aggregates import make
from windrow.errors import PlanError, QueryError, listing
from windrow.logical.expressions import dtype_of, fail, visible
from windrow.logical.nodes import (
    AggregateCall,
    Apply,
    Distinct,
    Filter,
    Node,
    Ordered,
    PairAggregate,
    Project,
    Scan,
    Shape,
    Split,
    Top,
    Union,
    WindowAggregate,
    window_time,
)
from windrow.spec.flush import FlushPolicy
from windrow.spec.functions import Function
from windrow.spec.names import (
    BRANCH,
    POSITION,
    STATUS,
    VERSION,
    WINDOW_END,
    WINDOW_START,
    WINDOW_TIME,
)
from windrow.spec.options import PLAIN, Options
from windrow.windows import Landmark, Partitioned, RowSliding, Session, SlideByTuple, Sliding

UNNUMBERED = (
    "On Spark the rows of a micro-batch are in parts without a common order, and would be numbered otherwise if it ran "
    "again. Name a column that numbers them: wr.stream(df, ..., row_num='offset'), or two, source partition and "
    "position in it: row_num=('partition', 'offset') for one topic of Kafka. These are not taken by their names alone: "
    "with several topics they do not say which row came first. wr.read_parquet and wr.read_arrow number rows by "
    "themselves"
)
KEPT = "A union of streams has no common order, and a query must select the column that numbers rows (row_num=..)"


def where(argument: exp.Expr | None, condition: exp.Expr) -> exp.Expr:
    """The argument of an aggregate with FILTER (WHERE condition): NULL, which aggregates skip, for the other rows."""
    counted = exp.Literal.number(1) if argument is None else argument
    return exp.Case(ifs=[exp.If(this=condition, true=counted)])


def filtered(node: Node, predicate: exp.Expr, sql: str | None = None) -> Filter:
    """A filter whose predicate is boolean."""
    if (dtype := dtype_of(predicate, node.schema, sql)) != pl.Boolean:
        kind = "always NULL" if dtype == pl.Null else f"of type {dtype}"
        raise fail(predicate, f"a condition must be true or false, and this is {kind}", sql)
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
        if other.lead != first.lead:
            raise QueryError(
                f"a union needs one progressing attribute: {first.progress} is the end of a window on one side, and "
                "the time of a row on the other. Select window_time under the name of the other"
            )
    flat = [n for node in nodes for n in (node.members if isinstance(node, Union) else (node,))]
    return first if len(flat) == 1 else Union(tuple(flat))


def applied(node: Node, column: str, function: Function) -> Apply:
    """A function of columns that exist."""
    if unknown := [c for c in function.columns if c not in node.schema]:
        raise QueryError(
            f"{function.name}: {listing(unknown)} is not a column; available: {listing(visible(node.schema))}"
        )
    if node.versioned:
        raise PlanError(
            "Python functions over results with versions are not supported: remove EMIT EARLY and LATE REVISE"
        )
    return Apply(node, column, function)


def split(node: Node, predicate: exp.Expr, yes: Node, no: Node, sql: str | None = None) -> Split:
    """Rows go through one of two branches, which meet again."""
    filtered(node, predicate, sql)
    for branch in (yes, no):
        inner = branch
        while isinstance(inner, (Filter, Project, Apply, Split)):
            inner = inner.input
        if not (isinstance(inner, Scan) and inner.name == BRANCH):
            raise QueryError("a branch of split() can only use where, select and apply, on the stream that it is given")
    united([yes, no])
    return Split(node, predicate, yes, no)


def on_value(node: Node, column: str) -> Node:
    """The same rows, progressing on the value of one of their progressing columns."""
    if column == node.progress and not node.lead:
        return node
    return Project(node, tuple((c, exp.column(c)) for c in node.schema), on=column)


def attribute(node: Node, name: str) -> str | None:
    """The progressing column that a window names; ``window_time`` is one wherever rows are the results of a window."""
    if name.lower() == WINDOW_TIME and WINDOW_TIME not in node.schema and window_time(node) is not None:
        return WINDOW_TIME
    return name if name in node.times else next((c for c in node.times if c.lower() == name.lower()), None)


def with_window_time(tree: exp.Expr, node: Node) -> exp.Expr:
    """An expression in which ``window_time`` is what it means over a node; it is no column unless it is selected."""
    meant = window_time(node) if WINDOW_TIME not in node.schema else None
    if meant is None:
        return tree

    def replaced(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, exp.Column) or part.name.lower() != WINDOW_TIME:
            return part
        found = meant.copy()
        for column in found.find_all(exp.Column):
            column.this.meta.update(part.this.meta)  # so that errors still underline the text
        return found if isinstance(found, exp.Column) else exp.Paren(this=found)

    found = tree.transform(replaced)
    return found.this if isinstance(tree, exp.Column) and isinstance(found, exp.Paren) else found


def distinct(node: Node) -> Distinct:
    """Each row once. Rows must contain the progressing column, or none could ever be forgotten."""
    if node.versioned:
        raise PlanError("DISTINCT over results with versions is not supported: remove EMIT EARLY and LATE REVISE")
    if node.progress is None:
        raise PlanError(
            "DISTINCT without the progressing attribute would have to remember every row forever: add that column to "
            "the SELECT list, or a window after the table for the different rows of each window"
        )
    if nested := [n for n, t in node.schema.items() if t.is_nested()]:
        raise PlanError(f"DISTINCT over lists and structs is not supported: leave out {listing(nested)}")
    return Distinct(node)


def ordered(node: Node, order: tuple[tuple[exp.Expr, bool], ...], sql: str | None = None) -> Ordered:
    """An order that a stream can have: its progressing attribute first, ascending."""
    if node.versioned:
        raise PlanError("ORDER BY over results with versions is not supported: remove EMIT EARLY and LATE REVISE")
    first, down = order[0]
    named = isinstance(first, exp.Column) and first.name in node.times
    if node.progress is None or not (named or first == window_time(node)):
        raise (
            fail(
                first,
                f"a stream without an end can only be ordered by what it progresses on: ORDER BY {node.progress} first",
                sql,
            )
            if node.progress is not None
            else PlanError("ORDER BY needs the progressing attribute: select it")
        )
    if down:
        raise fail(first, "the greatest value comes last, and a stream has no last: order ascending", sql)
    for tree, _ in order[1:]:
        dtype_of(tree, node.schema, sql)
    if isinstance(first, exp.Column) and first.name != node.progress and first.name in node.times:
        node = on_value(node, first.name)
    return Ordered(node, order[1:])


def ranked(node: Node, order: tuple[tuple[exp.Expr, bool], ...], limit: int) -> Top:
    """The first rows of each window; only over windows that end, once."""
    if node.versioned:
        raise PlanError(
            "ORDER BY .. LIMIT over results with versions is not supported: remove EMIT EARLY and LATE REVISE"
        )
    if node.progress is None or not {WINDOW_START, WINDOW_END} <= set(node.schema):
        raise PlanError("ORDER BY .. LIMIT needs windows that end in a common order: not PA, and with window_end kept")
    if limit < 1:
        raise QueryError(f"LIMIT must be positive, not {limit}")
    return Top(node, order, limit)


def aggregated(
    node: Node,
    window: Shape,
    keys: tuple[tuple[str, exp.Expr], ...],
    calls: tuple[AggregateCall, ...],
    using: str | None = None,
    sql: str | None = None,
    options: Options = PLAIN,
    parts: tuple[str, ...] = (),
    memory: int | None = None,
    flush: FlushPolicy | None = None,
) -> WindowAggregate:
    """A window aggregate whose parts all exist and fit."""
    _check_attribute(node, window)
    _check_options(node, window, options)
    taken = [WINDOW_START, WINDOW_END, *((VERSION, STATUS) if options.versioned else ())]
    _check_calls(node, [*(n for n, _ in keys), *taken], calls, sql)
    return WindowAggregate(node, window, keys, calls, using, options, parts, memory, flush)


def paired(
    node: Node,
    times: tuple[str, str],
    keys: tuple[tuple[str, exp.Expr], ...],
    calls: tuple[AggregateCall, ...],
    sql: str | None = None,
) -> PairAggregate:
    """Groups by both ``times`` of a join, which are two of the keys (``both_times``)."""
    _check_calls(node, [n for n, _ in keys], calls, sql)
    return PairAggregate(node, *times, keys, calls)


def _check_calls(node: Node, taken: list[str], calls: tuple[AggregateCall, ...], sql: str | None) -> None:
    """``taken``: the names of the other columns of the result."""
    if not calls:
        raise QueryError("a window needs at least one aggregate, such as count(*)")
    names = [*taken, *(c.name for c in calls)]
    if twice := {n for n in names if names.count(n) > 1}:
        raise QueryError(f"output columns need different names; given twice: {listing(twice)}")
    for call in calls:
        dtype = pl.Int64() if call.argument is None else dtype_of(call.argument, node.schema, sql)
        try:
            make(call.function, call.name, None if call.argument is None else "x", dtype, call.parameters, call.user)
        except QueryError as error:
            raise (fail(call.argument, str(error), sql) if call.argument is not None else error) from None


def _check_attribute(node: Node, window: Shape) -> None:
    by_number = isinstance(window, SlideByTuple) and window.by == "row_num" and window.slide > 1
    if isinstance(window, (RowSliding, Partitioned)) or by_number:
        numbered = node.arrival
        if not numbered:
            raise PlanError(_unnumbered(node))
        if len(numbered) > 1 and not isinstance(window, Partitioned):
            raise PlanError(
                f"rows are numbered by {' and '.join(numbered)}: rows of different partitions have no common order. "
                "Use a window of ROWS with PA and a key whose rows are in one partition, or one column for all rows"
            )
    if not isinstance(window, (RowSliding, Partitioned)) and node.progress is None:
        raise PlanError(
            "the progressing column does not reach the window: keep it in the SELECT list; "
            "results with PA, EMIT EARLY or LATE REVISE have none"
        )
    if isinstance(window, Landmark) and isinstance(node.origin, (WindowAggregate, PairAggregate)):
        raise PlanError(
            "a landmark window over the results of another window is not supported: use a window with an end"
        )


def _unnumbered(node: Node) -> str:
    """Why windows of rows are not possible over a stream, and what to do."""
    first = "windows of rows need to know which row came first, and nothing numbers the rows of this stream. "
    scan = node.scans[0] if len(node.scans) == 1 else None
    if scan is None or scan.source.row_num or POSITION in scan.offers:
        if scan is not None and POSITION in scan.schema and not scan.source.row_num:
            return f"{first}Its data has a column row_num: if that is what numbers them, declare row_num='row_num'"
        return f"{first}{KEPT}"
    return f"{first}{UNNUMBERED}. {KEPT}"


def _check_options(node: Node, window: Shape, options: Options) -> None:
    sliding = isinstance(window, (Sliding, RowSliding))
    kind = type(window).__name__
    for wanted, what in ((options.versioned, "EMIT EARLY and LATE REVISE"), (options.empty, "WITH EMPTY")):
        if wanted and not sliding:
            raise PlanError(
                f"{what}: only supported for sliding, tumbling and hopping windows and windows of rows, not for {kind}"
            )
    if options.late == "revise" and options.keep is None:
        raise PlanError(
            "LATE REVISE needs to know how long results can be revised, or state would never be freed: "
            "LATE REVISE FOR 1 HOUR, or late('revise', keep='1 hour')"
        )
    if options.keep is not None and options.late != "revise":
        raise PlanError("a time to keep windows belongs to LATE REVISE only")
    if options.empty and options.versioned:
        raise PlanError("WITH EMPTY together with EMIT EARLY or LATE REVISE is not supported: use one of them")
    if options.generous and isinstance(window, (Session, Partitioned)):
        raise PlanError(
            f"GENEROUS is not supported for windows of type {kind}: a late row would change released results"
        )
    _check_partial(node, window, options)
    if options.zone is not None and not (
        isinstance(window, (Sliding, Landmark))
        and isinstance(dtype := node.schema[node.progress or ""], pl.Datetime)
        and dtype.time_zone is not None
    ):
        raise PlanError(
            "TIME ZONE: only supported for sliding, tumbling, hopping and landmark windows over a TIMESTAMP"
        )


def _check_partial(node: Node, window: Shape, options: Options) -> None:
    """Rows are counted from 0, and integers begin there unless an origin says more; time has no such beginning."""
    if options.partial or isinstance(window, (RowSliding, Partitioned)):
        return
    if not isinstance(window, Sliding):
        kind = type(window).__name__
        raise PlanError(
            "WITHOUT PARTIAL: only supported for sliding, tumbling and hopping windows and windows of rows, not for "
            f"{kind}"
        )
    if not window.origin and not node.schema[node.progress or ""].is_integer():
        raise PlanError("WITHOUT PARTIAL needs a beginning later than the start of 1970: give the window an ORIGIN")
