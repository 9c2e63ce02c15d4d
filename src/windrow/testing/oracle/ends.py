"""Where finite streams end: what windows without rows, and those that never close by themselves, depend on."""

from __future__ import annotations

from typing import Any

import polars as pl
from sqlglot import exp

from windrow.errors import ResultError
from windrow.logical.nodes import (
    EARLIER,
    LEFT,
    RIGHT,
    Apply,
    AsOf,
    Filter,
    Join,
    MultiJoin,
    Node,
    PairAggregate,
    Project,
    Scan,
    Sequence,
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
from windrow.windows.multiway import Moment


def end_of(node: Node, given: Given, of: str | None = None) -> int | None:
    """The greatest progress value of any row that was read, whatever was kept of them; None if there was none.

    Results of windows end where they would if the end of their input were promised, or with the last of them.
    ``of``: which of the attributes of its rows is meant, the first one if none is named.
    """
    match node:
        case Scan():
            at = node.source.row_num[-1] if given.by_rows else of or node.progress
            reached = [row[at] for row in given.rows_of(node, given) if row[at] is not None]
            return max(reached) + given.by_rows if reached else None
        case Union():
            return _furthest(end_of(each, given, _of_member(each, of)) for each in node.inputs)
        case Join():
            return _end_of_pairs(node, given, of)
        case MultiJoin():
            moment = Moment.read(of or _first(node) or "") or node.latest
            return moment.ends([end_of(each, given.over(by_rows=False), _first(each)) for each in node.members])
        case AsOf():  # results have the times of the left rows
            return end_of(node.left, given.over(by_rows=False), _first(node.left))
        case Sequence():  # and those of a sequence the times of the rows of its last step
            last = node.members[node.taken[-1]]
            return end_of(last, given.over(by_rows=False), _first(last))
        case WindowAggregate():
            return _end_of_results(node, given)
        case PairAggregate():
            return _end_of_groups(node, given, of)
        case Split():
            end = end_of(node.input, given, _first(node.input))
            return _furthest(_along(branch, end, given.by_rows) for branch in (node.yes, node.no))
        case Together():
            return None
    (before,) = node.inputs
    return _moved(node, end_of(before, given, _below(node, of)), given.by_rows)


def attribute(node: WindowAggregate) -> str | None:
    """Which attribute of its input the windows are over."""
    return None if node.by_rows else _first(node.input)


def _first(node: Node) -> str | None:
    return None if node.progress is None else node.times[node.progress].of


def _below(node: Node, of: str | None) -> str | None:
    """Which attribute of the input of a step on rows becomes this one."""
    if isinstance(node, Project) and node.on is not None:
        return node.input.times[node.on].of
    computed = node.retimes is not None if isinstance(node, Project) else isinstance(node, Apply) and node.moves
    return None if computed else of


def _of_member(node: Node, of: str | None) -> str | None:
    """A union calls an attribute by the name of its column."""
    return of if of is None or of not in node.times else node.times[of].of


def _end_of_pairs(node: Join, given: Given, of: str | None) -> int | None:
    """Where the side ends whose times are meant; of the earlier of two times where the first side ends."""
    ends = [end_of(each, given, _first(each)) for each in node.inputs]
    if of in (LEFT, RIGHT):
        return ends[(LEFT, RIGHT).index(of)]
    return min((e for e in ends if e is not None), default=None) if of == EARLIER else _furthest(ends)


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


def _end_of_groups(node: PairAggregate, given: Given, of: str | None) -> int | None:
    """Where the pairs end, as the groups have it."""
    of = of or _first(node)
    end, key = end_of(node.input, given, of), node.right if of == RIGHT else node.left
    return None if end is None else _value(dict(node.keys)[key], node.input, {node.column(key): end})


def _retimed(node: Project, row: dict[str, Any]) -> int | None:
    assert node.retimes is not None
    return _value(node.retimes, node.input, row)


def _value(tree: exp.Expr, node: Node, row: dict[str, Any]) -> int | None:
    """None where the expression has no value: such an end says nothing."""
    try:
        found: int | None = evaluate(tree, node.schema).of(row)
    except ResultError:
        return None
    return None if found is None or abs(found) >= FARTHEST else found


def _end_of_results(node: WindowAggregate, given: Given) -> int | None:
    end = end_of(node.input, given.over(node.by_rows), attribute(node))
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
