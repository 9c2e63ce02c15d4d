"""The rows of every node of a query, from the rows of its inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from collections.abc import Sequence as Many
from typing import TYPE_CHECKING, Any

import polars as pl
from sqlglot import exp

from windrow.errors import PlanError
from windrow.logical.nodes import (
    Apply,
    AsOf,
    Distinct,
    Filter,
    Join,
    Lookup,
    MultiJoin,
    Node,
    Ordered,
    PairAggregate,
    Project,
    Scan,
    Sequence,
    Split,
    Together,
    Top,
    Union,
    WindowAggregate,
)
from windrow.spec.names import BRANCH, STATUS, VERSION, WINDOW_END, WINDOW_START
from windrow.testing.mismatch import Mismatch
from windrow.testing.oracle.admission import admitted, too_far
from windrow.testing.oracle.as_of import as_of_rows
from windrow.testing.oracle.ends import attribute, end_of
from windrow.testing.oracle.expressions.cells import Cell
from windrow.testing.oracle.expressions.evaluate import evaluate
from windrow.testing.oracle.functions import called, failure
from windrow.testing.oracle.given import Given
from windrow.testing.oracle.joins import joined_rows, looked_up_rows
from windrow.testing.oracle.multi_joins import multi_joined_rows
from windrow.testing.oracle.sequences import sequence_rows
from windrow.testing.oracle.values import Row, frame_of, key, order
from windrow.testing.oracle.windows import needed, pair_rows, window_rows

if TYPE_CHECKING:
    from windrow.api.stream import Stream

VERSIONS = (VERSION, STATUS)  # the further columns of results with versions


def oracle(query: Stream, sources: Mapping[str, pl.DataFrame] | None = None) -> pl.DataFrame:
    """All result rows over finite data, in no order. ``sources`` replaces the query's own data.

    Of results with versions it gives the last ones, without version and status.

    >>> from windrow import count, stream
    >>> rows = [{"t": 1}, {"t": 2}]
    >>> oracle(stream(rows, progress="t").window(range=2).agg(n=count())).sort("window_end").rows()
    [(0, 2, 1), (2, 4, 1)]
    """
    return meaning(query, sources)[0]


def bad_rows(query: Stream, sources: Mapping[str, pl.DataFrame] | None = None) -> Counter[str]:
    """How many rows of the sources are bad, by the reason.

    >>> from windrow import stream
    >>> bad_rows(stream([{"t": 1}, {"t": None}], progress="t"))
    Counter({'the progress value is NULL': 1})
    """
    given = _given(query, sources)
    rows_of(query.node, given)
    return given.bad


def meaning(query: Stream, sources: Mapping[str, pl.DataFrame] | None = None) -> tuple[pl.DataFrame, Counter[str]]:
    """The results of ``oracle`` and the counts of ``bad_rows``, found together."""
    given = _given(query, sources)
    rows = rows_of(query.node, given)
    return frame_of(rows, {n: t for n, t in query.node.schema.items() if n not in VERSIONS}), given.bad


def _given(query: Stream, sources: Mapping[str, pl.DataFrame] | None) -> Given:
    for scan in (node for node in query.node.walk() if isinstance(node, Scan) and node.stamps):
        raise PlanError(
            f"what rows mean by {' and '.join(scan.stamps)} is known only when they arrive: test the query over a "
            "stream that has it as a column"
        )
    return Given(sources if sources is not None else {n: s.data for n, s in query.sources.items()}, rows_of)


def rows_of(node: Node, given: Given) -> list[Row]:
    """The rows of a node, each found once, however often they are asked for."""
    at = (id(node), given.by_rows, given.needs)
    if at not in given.found:
        given.found[at] = list(_rows_of(node, given))
    return given.found[at]


def _rows_of(node: Node, given: Given) -> Iterable[Row]:
    match node:
        case Scan():
            return given.branch if node.name == BRANCH else _scanned(node, given)
        case Filter():
            test = evaluate(node.predicate, node.input.schema)
            return [row for row in rows_of(node.input, given) if test.of(row)]
        case Project():
            return _projected(node, given)
        case Apply():
            return _applied(node, given)
        case Split():
            return _split(node, given)
        case Distinct():
            rows = rows_of(node.input, given)
            return {tuple(key(row[n]) for n in node.schema): row for row in rows}.values()
        case Ordered():
            assert node.progress is not None
            return _in_order(rows_of(node.input, given), ((exp.column(node.progress), False), *node.order), node.input)
        case Union():
            return [row for each in node.inputs for row in rows_of(each, given)]
        case WindowAggregate():
            inner = given.over(node.by_rows, needed(node))
            end = end_of(node.input, inner, attribute(node))
            return window_rows(node, rows_of(node.input, inner), end, given.bad)
        case PairAggregate():
            return pair_rows(node, rows_of(node.input, given), given.bad)
        case Top():
            return _top(node, given)
        case Together():
            return _together(node, given)
        case Join():
            return joined_rows(node, given)
        case MultiJoin():
            return multi_joined_rows(node, given)
        case AsOf():
            return as_of_rows(node, given)
        case Sequence():
            return sequence_rows(node, given)
        case Lookup():
            return looked_up_rows(node, given)
    raise PlanError(f"{type(node).__name__} has no definition here")


def _scanned(node: Scan, given: Given) -> list[Row]:
    found = admitted(node, given.frames[node.name], given.by_rows, given.needs)
    given.bad.update(found.bad)
    return found.rows


def _projected(node: Project, given: Given) -> Iterable[Row]:
    cells = {name: evaluate(tree, node.input.schema) for name, tree in node.columns if tree.name not in VERSIONS}
    for name, cell in cells.items():
        if cell.dtype != node.schema[name]:
            raise Mismatch(f"{name} is of type {node.schema[name]}, and the oracle finds {cell.dtype}")
    moved = node.progress if node.retimes is not None and not given.by_rows else None
    for row in rows_of(node.input, given):
        found = {name: cell.of(row) for name, cell in cells.items()}
        if moved is None or _progresses(found[moved], node.schema[moved], "the progress value is NULL", given):
            yield found


def _progresses(value: Any, dtype: pl.DataType, missing: str, given: Given) -> bool:
    """Whether a row can take a new progress value; otherwise it is bad."""
    why = missing if value is None else too_far("progress value", value, dtype)
    given.bad.update([why] if why is not None else [])
    return why is None


def _applied(node: Apply, given: Given) -> Iterable[Row]:
    """Row by row; a row that the function fails for is bad."""
    function = node.function
    moved = node.moves and not given.by_rows
    for row in rows_of(node.input, given):
        try:
            value = called(function, node.input.schema, row)
        except Exception as error:  # whatever the user's function raises, the row is bad
            given.bad[failure(function, error)] += 1
            continue
        missing = f"{function.name} gave no progress value"
        if not moved or _progresses(value, function.returns, missing, given):
            yield {**row, node.column: value}


def _split(node: Split, given: Given) -> Iterable[Row]:
    test = evaluate(node.predicate, node.input.schema)
    rows = rows_of(node.input, given)
    for branch, truth in ((node.yes, True), (node.no, False)):
        yield from rows_of(branch, given.branching([row for row in rows if (test.of(row) is True) is truth]))


def _in_order(rows: Many[Row], by: Iterable[tuple[exp.Expr, bool]], node: Node) -> list[Row]:
    """NULL comes first, or last where the order is descending; rows that are equal stay as they were."""
    cells = [(evaluate(tree, node.schema), down) for tree, down in by]
    found = list(rows)
    for cell, down in reversed(cells):
        found.sort(key=lambda row: _place(cell, row), reverse=down)
    return found


def _place(cell: Cell, row: Row) -> tuple[Any, ...]:
    value = cell.of(row)
    return (False,) if value is None else (True, order(value))


def _top(node: Top, given: Given) -> Iterable[Row]:
    """The other columns decide between rows that are equal in the order."""
    rest = [(exp.column(c), False) for c, t in node.schema.items() if not t.is_nested()]
    windows: dict[Any, list[Row]] = {}
    for row in _in_order(rows_of(node.input, given), [*node.order, *rest], node.input):
        windows.setdefault((row[WINDOW_START], row[WINDOW_END]), []).append(row)
    return [row for rows in windows.values() for row in rows[: node.limit]]


def _together(node: Together, given: Given) -> Iterable[Row]:
    nothing = dict.fromkeys(node.schema)
    for name, query in node.queries:
        for row in rows_of(query, given):
            yield {**nothing, name: {c: row.get(c) for c in query.schema}}
