"""Conditions between two steps of a sequence: comparisons with the columns of one step on each side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from windrow.errors import QueryError
from windrow.logical.expressions import fail
from windrow.logical.nodes import Compared
from windrow.logical.sequence import Comparison
from windrow.sql.band import Bands, as_condition

COMPARISONS: dict[type[exp.Expr], Comparison] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
FLIPPED: dict[Comparison, Comparison] = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
ONE_EACH = "with the columns of one step on each side of =, <>, <, <=, > or >=: b.price > a.price + 10, not "
ONE_EACH += "b.price - a.price > 10"


@dataclass(frozen=True)
class Comparisons:
    """Reads conditions. ``steps``: those that an expression is about."""

    bands: Bands
    steps: Callable[[exp.Expr], set[int]]
    text: str

    def of(self, condition: exp.Expr) -> list[Compared]:
        """A condition as comparisons of a step with a later one; whatever else it is, it is refused."""
        condition = condition.unnest()
        if isinstance(condition, exp.Between) and not condition.args.get("symmetric"):
            this, low, high = condition.this, condition.args["low"], condition.args["high"]
            pairs: list[exp.Expr] = [
                exp.GTE(this=this.copy(), expression=low.copy()),
                exp.LTE(this=this.copy(), expression=high.copy()),
            ]
            if all(self._sides(pair) for pair in pairs) or not self.bands.of(condition):
                return [each for pair in pairs for each in self.of(pair)]
        if (sides := self._sides(condition)) is not None:
            first, second = sides
            comparison, (a, b) = COMPARISONS[type(condition)], (condition.this, condition.expression)
            if first < second:
                return [Compared(first, a, comparison, second, b)]
            return [Compared(second, b, FLIPPED[comparison], first, a)]
        if distances := self.bands.of(condition):
            moved = [as_condition(each, self.bands.times[each.earlier]) for each in distances]
            return [each for tree in moved for each in self.of(tree)]
        raise self._refused(condition)

    def _sides(self, condition: exp.Expr) -> tuple[int, int] | None:
        """The steps on both sides of a comparison, if there is one on each."""
        if type(condition) not in COMPARISONS:
            return None
        a, b = self.steps(condition.this), self.steps(condition.expression)
        return (min(a), min(b)) if len(a) == len(b) == 1 and a != b else None

    def _refused(self, condition: exp.Expr) -> QueryError:
        what = "OR between steps is not supported" if condition.find(exp.Or) else "this is no such comparison"
        return fail(condition, f"a condition between steps is a comparison {ONE_EACH}; {what}", self.text)
