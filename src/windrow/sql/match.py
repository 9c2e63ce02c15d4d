"""``MATCH_CONDITION (l.ts >= r.ts)``: which right row is the nearest one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from windrow.logical.expressions import fail
from windrow.logical.nodes import Strategy
from windrow.logical.reading import written
from windrow.sql.band import Distance, Sum
from windrow.sql.parts import Part

if TYPE_CHECKING:
    from windrow.sql.nearest import Nearest

# Of each operator between the left and the right time: where right rows are, and whether times may be equal.
DIRECTIONS: dict[type[exp.Expr], tuple[Strategy, bool]] = {
    exp.GTE: ("backward", True),
    exp.GT: ("backward", False),
    exp.LTE: ("forward", True),
    exp.LT: ("forward", False),
}
SWAPPED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.GTE: exp.LTE,
    exp.GT: exp.LT,
    exp.LTE: exp.GTE,
    exp.LT: exp.GT,
}


@dataclass(frozen=True)
class Match:
    """Which right rows are near: ``times`` are the columns that are compared, the left and the right one.

    ``shift`` is added to right times. ``tolerance``: the greatest distance from there.
    """

    times: tuple[str, str]
    strategy: Strategy = "backward"
    exact: bool = True
    shift: int = 0
    tolerance: int | None = None

    @property
    def nearest(self) -> int:
        """The least distance that rows can have."""
        return 0 if self.exact else 1

    @property
    def facts(self) -> tuple[Distance, ...]:
        """What is true of every pair."""
        return tuple(
            self._between(most, out)
            for out, most in ((False, -self.nearest), (True, self.tolerance))
            if most is not None
        )

    def _between(self, most: int, out: bool) -> Distance:
        """A distance of right rows from left ones, in the direction in which they are (``out``) or against it."""
        left, right = self.times
        if out == (self.strategy == "backward"):
            return Distance(right, left, most + self.shift)
        return Distance(left, right, most - self.shift)

    def bound(self, distance: Distance) -> int | None:
        """The greatest distance that is asked for, if this is one."""
        out = self._between(0, True)
        return distance.most - out.most if distance[:2] == out[:2] else None

    def implies(self, distance: Distance) -> bool:
        """Whether all rows that are near have such a distance."""
        against = self._between(-self.nearest, False)
        return distance[:2] == against[:2] and distance.most >= against.most


def matched(join: Nearest, condition: exp.Expr) -> Match:
    """What a MATCH_CONDITION says."""
    text, pairs, tree = join.pairs.terms.text, join.pairs, condition.unnest()
    if type(tree) not in DIRECTIONS:
        why = "MATCH_CONDITION is one comparison of two times with >=, >, <= or <: other conditions stand in ON"
        raise fail(tree, why, text)
    sides = [_side(join, operand) for operand in (tree.this, tree.expression)]
    if sides[0] == sides[1]:
        why = "MATCH_CONDITION compares a time of the left side with one of the right: these are of the same side"
        raise fail(tree, why, text)
    operator, operands = type(tree), (tree.this, tree.expression)
    if sides[0] == 1:
        operator, operands = SWAPPED[operator], operands[::-1]
    sums = _sum(join, operands[0], join.left), _sum(join, operands[1], join.right)
    times = sums[0].added[0], sums[1].added[0]
    if not pairs.bands.comparable(*times):
        types = " and ".join(f"{pairs.qualified(name)} is {pairs.bands.times[name]}" for name in times)
        raise fail(tree, f"the times of MATCH_CONDITION must be of one type: {types}. Cast one", text)
    strategy, exact = DIRECTIONS[operator]
    shift = pairs.bands.length(sums[1], times[1]) - pairs.bands.length(sums[0], times[0])
    return Match(times, strategy, exact, shift)


def _side(join: Nearest, operand: exp.Expr) -> int:
    """The side that an operand is of."""
    used, text = join.pairs.used(operand), join.pairs.terms.text
    if not used:
        why = f"MATCH_CONDITION compares times of both sides, and {written(operand, text)} is the same for all rows"
        raise fail(operand, why, text)
    for side, relation in enumerate(join.pair.sides):
        if used <= set(relation.tables):
            return side
    raise fail(operand, "an operand of MATCH_CONDITION has columns of one side only", text)


def _sum(join: Nearest, operand: exp.Expr, part: Part) -> Sum:
    """An operand as a time of its side, and what is added to it."""
    pairs = join.pairs
    found = pairs.bands.sum(operand)
    if found is not None and len(found.added) == 1 and not found.taken and found.added[0] in part.times:
        return found
    there = " or ".join(pairs.qualified(name) for name in part.times)
    raise fail(
        operand,
        f"an operand of MATCH_CONDITION is the column that its side progresses on, here {there}, or that plus or minus "
        "a constant: rows arrive in the order of no other column",
        pairs.terms.text,
    )
