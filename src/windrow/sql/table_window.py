"""The window clauses of the tables of a join: for how long their rows are joined, and what happens to late ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from windrow.logical.expressions import fail
from windrow.logical.nodes import Node
from windrow.spec.lengths import policy
from windrow.spec.options import Policy
from windrow.sql.clause import Clause
from windrow.sql.trees import WindowClause

ALLOWED = {"range", "wa", "tumbling", "origin", "late", "keep"}
POSSIBLE = "[RANGE r, WA attr], [TUMBLING r, WA attr, ORIGIN o] and [RANGE n ROWS, WA row_num] are, each with LATE .."


@dataclass(frozen=True)
class TableWindow:
    """``length``: of RANGE, in the unit of the times or in rows, or of TUMBLING, which begins at ``origin``.

    ``kind`` is None where the clause has no window, only a policy or an attribute.
    """

    clause: WindowClause
    kind: Literal["range", "rows", "tumbling"] | None = None
    length: int = 0
    origin: int = 0
    late: Policy = "drop"

    def differs(self, other: TableWindow) -> bool:
        """Whether rows in the same window here are in different ones there."""
        return (self.kind, self.length, self.origin) != (other.kind, other.length, other.origin)


def table_window(clause: WindowClause, node: Node, sql: str) -> TableWindow:
    """The window of a table in a join; every error underlines the parameter at fault."""
    given = Clause(clause, node, sql)
    _check_parameters(clause, sql)
    late = _late(clause, sql)
    if clause.args.get("tumbling"):
        return TableWindow(clause, "tumbling", given.length("tumbling"), given.origin(), late)
    if not clause.args.get("range"):
        return TableWindow(clause, late=late)
    if given.is_all("range"):
        raise fail(given.given("range"), "a join over RANGE ALL would keep all rows forever: give a length", sql)
    if not given.in_rows("range"):
        return TableWindow(clause, "range", given.length("range"), late=late)
    wa = clause.args.get("wa")
    if wa is not None and not given.numbers(wa):
        raise fail(wa, "a join over ROWS is over row_num", sql)
    return TableWindow(clause, "rows", given.count("range"), late=late)


def _check_parameters(clause: WindowClause, sql: str) -> None:
    for name, given in clause.args.items():
        if given and name not in ALLOWED:
            raise fail(
                _placed(given, clause), f"not supported in the window of a join: {name.upper()}; {POSSIBLE}", sql
            )
    if clause.args.get("range") and (tumbling := clause.args.get("tumbling")):
        raise fail(tumbling, "a join has windows with RANGE or with TUMBLING, not both", sql)
    if (origin := clause.args.get("origin")) is not None and not clause.args.get("tumbling"):
        raise fail(origin, "ORIGIN is where TUMBLING windows begin: other windows of a join have none", sql)


def _late(clause: WindowClause, sql: str) -> Policy:
    late = clause.args.get("late")
    if late is not None and late.name == "REVISE":
        why = "late rows of a join cannot revise its results: choose LATE DROP, LATE SIDE or LATE ERROR"
        raise fail(_placed(late, clause), why, sql)
    return "drop" if late is None else policy(late.name.lower())


def _placed(given: object, clause: WindowClause) -> exp.Expr:
    listed = given if isinstance(given, list) else [given]
    return next((each for each in listed if isinstance(each, exp.Expr) and each.meta), clause)


def one_for_all(windows: list[TableWindow | None], sql: str) -> list[TableWindow | None]:
    """The windows of the tables of one FROM: a tumbling one after the last table is for all of them."""
    last = windows[-1] if windows else None
    given = [each for each in windows if each is not None and each.kind is not None]
    if last is not None and last.kind == "tumbling" and len(given) == 1:
        return [last if each is None else _with(last, each) for each in windows]
    if len(given) == 1:
        raise fail(
            given[0].clause,
            "a join has a window after both tables, or after none, or TUMBLING after the last one; the window of an "
            "aggregation follows the select list, or a query in FROM",
            sql,
        )
    for each in given:
        if each.kind != given[0].kind and "tumbling" in (each.kind, given[0].kind):
            raise fail(
                each.clause, f"the windows of a join are of one kind: {_words(given[0])}, or {_words(each)}", sql
            )
        if each.kind == "tumbling" and each.differs(given[0]):
            raise fail(each.clause, "the tumbling windows of a join must be the same after each table", sql)
    if given and given[0].kind == "tumbling" and None in [w and w.kind for w in windows]:
        raise fail(
            given[-1].clause, "a tumbling window is given after each table of a join, or after the last one", sql
        )
    return windows


def _with(window: TableWindow, own: TableWindow) -> TableWindow:
    return own if own.kind is not None else TableWindow(own.clause, window.kind, window.length, window.origin, own.late)


def _words(window: TableWindow) -> str:
    return {"range": "RANGE", "rows": "RANGE n ROWS", "tumbling": "TUMBLING"}[window.kind or "range"]
