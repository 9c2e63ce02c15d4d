"""A condition between steps as comparisons, each side of which is over the row of one step."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from windrow.logical.expressions import fail
from windrow.logical.sequence import Compared, Comparison

COMPARISONS: dict[type[exp.Expr], tuple[Comparison, Comparison]] = {  # as it is written, and with its sides exchanged
    exp.EQ: ("=", "="),
    exp.NEQ: ("<>", "<>"),
    exp.LT: ("<", ">"),
    exp.LTE: ("<=", ">="),
    exp.GT: (">", "<"),
    exp.GTE: (">=", "<="),
}
Place = Callable[[exp.Column], tuple[int, str]]  # the step of a column, and its name there
HOW = "write it as comparisons joined by AND, each with one step on each side, such as b.price > a.price + 10"


def compared(tree: exp.Expr, place: Place, sql: str | None = None) -> list[Compared]:
    """The comparisons that a condition consists of; refuses what a sequence cannot test."""
    tree = tree.unnest()
    if isinstance(tree, exp.And):
        return [*compared(tree.this, place, sql), *compared(tree.expression, place, sql)]
    if isinstance(tree, exp.Between):
        low = exp.GTE(this=tree.this.copy(), expression=tree.args["low"])
        high = exp.LTE(this=tree.this.copy(), expression=tree.args["high"])
        return [*compared(low, place, sql), *compared(high, place, sql)]
    if type(tree) not in COMPARISONS:
        raise fail(tree, f"a sequence cannot test this between steps: {HOW}", sql)
    (left, a), (right, b) = (_of_step(side, tree, place, sql) for side in (tree.this, tree.expression))
    if left == right:
        raise fail(tree, "this is about one step only: filter the rows of its stream before", sql)
    as_written, exchanged = COMPARISONS[type(tree)]
    return [Compared(left, a, as_written, right, b) if left < right else Compared(right, b, exchanged, left, a)]


def _of_step(side: exp.Expr, whole: exp.Expr, place: Place, sql: str | None) -> tuple[int, exp.Expr]:
    """The one step that a side is about, and the side over its columns."""
    steps = set()
    side = side.copy()
    for column in side.find_all(exp.Column):
        step, name = place(column)
        steps.add(step)
        own = exp.to_identifier(name)
        own.meta.update(column.this.meta)  # so that errors underline it
        for part, value in (("this", own), ("table", None), ("db", None), ("catalog", None)):
            column.set(part, value)
    if len(steps) != 1:
        raise fail(whole, f"a sequence cannot test this between steps: {HOW}", sql)
    return steps.pop(), side
