"""How far apart times must be: from comparisons of two times, and what several of them say together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import polars as pl
from sqlglot import exp

from windrow.errors import QueryError
from windrow.logical.expressions import fail
from windrow.spec.lengths import length

FLIPPED: dict[type[exp.Expr], type[exp.Expr]] = {exp.GT: exp.LT, exp.GTE: exp.LTE}


class Distance(NamedTuple):
    """``later - earlier <= most``, in the unit of the progressing attribute; ``most`` may be negative."""

    earlier: str
    later: str
    most: int


def nearest(known: Iterable[Distance]) -> dict[tuple[str, str], int]:
    """The least upper bound of every ``later - earlier`` that follows from what is known.

    >>> nearest([Distance("a", "b", 5), Distance("b", "c", 2)])["a", "c"]
    7
    """
    most: dict[tuple[str, str], int] = {}
    for earlier, later, bound in known:
        most[earlier, later] = min(bound, most.get((earlier, later), bound))
    names = sorted({name for pair in most for name in pair})
    for via, a, b in product(names, names, names):
        if (a, via) in most and (via, b) in most:
            through = most[a, via] + most[via, b]
            most[a, b] = min(through, most.get((a, b), through))
    return most


def as_condition(distance: Distance, dtype: pl.DataType) -> exp.Expr:
    """A distance as a condition over the two columns.

    >>> as_condition(Distance("a", "b", 5), pl.Date()).sql("spark")
    "`b` <= `a` + INTERVAL '5' DAY"
    """
    unit = "DAY" if dtype == pl.Date else "MICROSECOND"
    most: exp.Expr = exp.Literal.number(abs(distance.most))
    if not dtype.is_integer():
        most = exp.Interval(this=exp.Literal.string(str(abs(distance.most))), unit=exp.var(unit))
    earlier, later = (exp.column(name, quoted=True) for name in distance[:2])
    moved = exp.Add(this=earlier, expression=most) if distance.most >= 0 else exp.Sub(this=earlier, expression=most)
    return exp.LTE(this=later, expression=moved)


@dataclass(frozen=True)
class Sum:
    """Times that are added and taken away, and lengths with their signs."""

    added: tuple[str, ...] = ()
    taken: tuple[str, ...] = ()
    lengths: tuple[tuple[int, exp.Expr], ...] = ()

    def minus(self, other: Sum) -> Sum:
        """The difference; a time that is in both is in none."""
        added, taken = [*self.added, *other.taken], [*self.taken, *other.added]
        for name in [name for name in added if name in taken]:
            added.remove(name)
            taken.remove(name)
        less = tuple((-sign, tree) for sign, tree in other.lengths)
        return Sum(tuple(added), tuple(taken), self.lengths + less)


@dataclass(frozen=True)
class Bands:
    """Reads conditions on the distance of two times. ``times``: the columns that progress, and their types."""

    times: Mapping[str, pl.DataType]
    text: str

    def of(self, condition: exp.Expr) -> list[Distance]:
        """What a condition says about the distance of two times; nothing if it is about anything else."""
        if isinstance(condition, exp.Between) and not condition.args.get("symmetric"):
            low = self._compared(exp.GTE, condition.this, condition.args["low"])
            high = self._compared(exp.LTE, condition.this, condition.args["high"])
            return [*low, *high] if low and high else []
        if isinstance(condition, (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.EQ)):
            return self._compared(type(condition), condition.this, condition.expression)
        return []

    def _compared(self, op: type[exp.Expr], a: exp.Expr, b: exp.Expr) -> list[Distance]:
        if op in FLIPPED:
            return self._compared(FLIPPED[op], b, a)
        first, second = self.sum(a), self.sum(b)
        if first is None or second is None:
            return []
        less = first.minus(second)  # compared with 0
        if len(less.added) != 1 or len(less.taken) != 1 or not self.comparable(less.added[0], less.taken[0]):
            return []
        later, earlier, ahead = less.added[0], less.taken[0], self.length(less, less.added[0])
        found = [Distance(earlier, later, -ahead - (op is exp.LT))]
        return [*found, Distance(later, earlier, ahead)] if op is exp.EQ else found

    def comparable(self, a: str, b: str) -> bool:
        """Whether two times are of one type."""
        of_a, of_b = self.times[a], self.times[b]
        return a != b and (of_a == of_b or (of_a.is_integer() and of_b.is_integer()))

    def sum(self, tree: exp.Expr) -> Sum | None:
        """An expression as times and lengths that are added or taken away, if it is nothing else."""
        tree = tree.unnest()
        if isinstance(tree, exp.Column) and tree.name in self.times:
            return Sum(added=(tree.name,))
        interval = isinstance(tree, exp.Interval) and isinstance(tree.this, exp.Literal)
        if interval or (isinstance(tree, exp.Literal) and tree.is_int):
            return Sum(lengths=((1, tree),))
        if isinstance(tree, exp.Neg):
            inner = self.sum(tree.this)
            return None if inner is None else Sum().minus(inner)
        if not isinstance(tree, (exp.Add, exp.Sub)):
            return None
        left, right = self.sum(tree.this), self.sum(tree.expression)
        if left is None or right is None:
            return None
        return left.minus(right) if isinstance(tree, exp.Sub) else left.minus(Sum().minus(right))

    def length(self, of: Sum, time: str) -> int:
        """What is added to times, in the unit of one of them."""
        return sum(sign * self._constant(tree, self.times[time]) for sign, tree in of.lengths)

    def _constant(self, tree: exp.Expr, dtype: pl.DataType) -> int:
        interval = isinstance(tree, exp.Interval)
        unit = tree.text("unit") if interval else "days" if dtype == pl.Date else ""
        given = f"{tree.this.name if interval else tree.name} {unit}".strip()
        sign, given = (-1, given[1:]) if given.startswith("-") else (1, given)
        try:
            return sign * length(given, dtype, "the band of the join", zero=True)
        except QueryError as error:
            raise fail(tree, str(error), self.text) from None
