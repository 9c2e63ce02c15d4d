"""Where finite streams end: what windows without rows, and those that never close by themselves, depend on."""

from __future__ import annotations

from typing import Any

import polars as pl

from windrow.errors import ResultError
from windrow.logical.nodes import (
    Apply,
    Filter,
    Join,
    Node,
    Project,
    Scan,
    Split,
    Together,
    Union,
    WindowAggregate,
)
from windrow.progress import FARTHEST
from windrow.spec.names import WINDOW_END
from windrow.testing.oracle.clock import first_shown, least_shown
from windrow.testing.oracle.expressions.evaluate import evaluate
from windrow.testing.oracle.given import Given
from windrow.testing.oracle.values import column, values_of
from windrow.windows import RowSliding, Session, Sliding


def end_of(node: Node, given: Given) -> int | None:
    """The greatest progress value of any row that was read, whatever was kept of them; None if there was none.

    Results of windows end where they would if the end of their input were promised, or with the last of them.
    """
    match node:
        case Scan():
            attribute = node.source.row_num[-1] if given.by_rows else node.progress
            reached = [row[attribute] for row in given.rows_of(node, given)]
            return max(reached) + given.by_rows if reached else None
        case Union() | Join():
            return _furthest(end_of(each, given) for each in node.inputs)
        case WindowAggregate():
            return _end_of_results(node, given)
        case Split():
            end = end_of(node.input, given)
            return _furthest(_along(branch, end, given.by_rows) for branch in (node.yes, node.no))
        case Together():
            return None
    (before,) = node.inputs
    return _moved(node, end_of(before, given), given.by_rows)


def _furthest(ends: Any) -> int | None:
    return max((e for e in ends if e is not None), default=None)


def _along(node: Node, end: int | None, by_rows: bool) -> int | None:
    """Where a branch of a split ends, if its input ends at ``end``."""
    if isinstance(node, (Filter, Project, Apply)):
        return _moved(node, _along(node.input, end, by_rows), by_rows)
    if isinstance(node, Split):
        inner = _along(node.input, end, by_rows)
        return _furthest(_along(branch, inner, by_rows) for branch in (node.yes, node.no))
    return end


def _moved(node: Node, end: int | None, by_rows: bool) -> int | None:
    """Behind a step on rows, which may have them progress on something else."""
    if end is None or by_rows or not isinstance(node, (Project, Apply)) or node.input.progress is None:
        return end
    before = node.input
    if isinstance(node, Project) and node.on is not None:
        return end + before.times[node.on].lead
    assert before.progress is not None
    row = {before.progress: end + before.lead}
    if isinstance(node, Apply) and node.moves:
        at = column("", row.values(), before.schema[before.progress])
        found = node.function.call(at if node.function.vectorized else at.to_list()[0])
        returned = found if node.function.vectorized else [found]
        return int(values_of(pl.Series(returned, dtype=node.function.returns))[0])
    if isinstance(node, Project) and node.retimes is not None:
        return _retimed(node, row)
    return end


def _retimed(node: Project, row: dict[str, Any]) -> int | None:
    """None where the expression has no value: such an end says nothing."""
    assert node.retimes is not None
    try:
        found: int | None = evaluate(node.retimes, node.input.schema).of(row)
    except ResultError:
        return None
    return None if found is None or abs(found) >= FARTHEST else found


def _end_of_results(node: WindowAggregate, given: Given) -> int | None:
    end = end_of(node.input, given.over(node.by_rows))
    if end is None or node.progress is None:
        return None
    window, zone = node.window, node.options.zone
    ends: list[int] = [row[WINDOW_END] for row in given.rows_of(node, given)]
    promised = end
    if isinstance(window, (Sliding, RowSliding)):
        shape = window.over_rows if isinstance(window, RowSliding) else window
        closed = shape.end(shape.closed_below(end if zone is None else least_shown(end, zone)))
        promised = closed if zone is None else first_shown(closed, zone)
    elif isinstance(window, Session):
        promised = min([end + window.gap, *(e for e in ends if e > end)])
    return max([promised, *ends]) - node.lead
