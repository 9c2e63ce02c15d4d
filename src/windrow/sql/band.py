"""The band of a join: how far the right time may be from the left one, from comparisons of the two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl
from sqlglot import exp

from windrow.errors import QueryError
from windrow.logical.expressions import fail
from windrow.logical.nodes import Side
from windrow.spec.lengths import length

FLIPPED: dict[type[exp.Expr], type[exp.Expr]] = {exp.GT: exp.LT, exp.LT: exp.GT, exp.GTE: exp.LTE, exp.LTE: exp.GTE}


@dataclass
class Band:
    """Bounds of the right time less the left time, both included, in the unit of the progressing attribute.

    ``times``: the progressing columns of the left and the right side, as the joined rows call them.
    """

    times: tuple[str, str]
    dtype: pl.DataType
    text: str
    low: int | None = None
    high: int | None = None

    def take(self, condition: exp.Expr) -> bool:
        """Whether a condition bounds the distance of the two times; if so, the band is narrowed by it."""
        if isinstance(condition, exp.Between) and not condition.args.get("symmetric"):
            parts: Sequence[tuple[type[exp.Expr], exp.Expr]] = (
                (exp.GTE, condition.args["low"]),
                (exp.LTE, condition.args["high"]),
            )
            found = [(op, self._distance(condition.this, other)) for op, other in parts]
        elif isinstance(condition, (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.EQ)):
            found = [(type(condition), self._distance(condition.this, condition.expression))]
        else:
            return False
        if any(distance is None for _, distance in found):
            return False
        for op, distance in found:
            assert distance is not None
            sign, bound = distance
            self._narrow(op if sign > 0 else FLIPPED.get(op, op), bound)
        return True

    def range(self, left: int, right: int) -> None:
        """The windows of two tables: a left row is held for ``left``, a right one for ``right``, half-open."""
        self._narrow(exp.LT, left)
        self._narrow(exp.GT, -right)

    def _narrow(self, op: type[exp.Expr], bound: int) -> None:
        if op in (exp.GT, exp.GTE, exp.EQ):
            least = bound + (op is exp.GT)
            self.low = least if self.low is None else max(self.low, least)
        if op in (exp.LT, exp.LTE, exp.EQ):
            most = bound - (op is exp.LT)
            self.high = most if self.high is None else min(self.high, most)

    def _distance(self, a: exp.Expr, b: exp.Expr) -> tuple[int, int] | None:
        """``a`` compared with ``b`` as the right time less the left time compared with a number.

        The sign is -1 where the comparison turns around: ``l.ts <= r.ts + 5`` is ``r.ts - l.ts >= -5``.
        """
        first, second = self._shifted(a), self._shifted(b)
        if first is None or second is None or first[0] == second[0]:
            return None
        (side, ahead), (_, other) = first, second
        return (1, other - ahead) if side == 1 else (-1, ahead - other)

    def _shifted(self, tree: exp.Expr) -> tuple[Side, int] | None:
        """A time plus or minus a constant: the side it is of, and the constant."""
        tree = tree.unnest()
        if isinstance(tree, exp.Column) and tree.name in self.times:
            return (0 if tree.name == self.times[0] else 1), 0
        if not isinstance(tree, (exp.Add, exp.Sub)):
            return None
        inner, constant = self._shifted(tree.this), self._constant(tree.expression)
        if (inner is None or constant is None) and isinstance(tree, exp.Add):
            inner, constant = self._shifted(tree.expression), self._constant(tree.this)
        if inner is None or constant is None:
            return None
        return inner[0], inner[1] + (constant if isinstance(tree, exp.Add) else -constant)

    def _constant(self, tree: exp.Expr) -> int | None:
        tree = tree.unnest()
        if isinstance(tree, exp.Neg):
            inner = self._constant(tree.this)
            return None if inner is None else -inner
        if isinstance(tree, exp.Interval) and isinstance(tree.this, exp.Literal):
            given = f"{tree.this.name} {tree.text('unit')}".strip()
        elif isinstance(tree, exp.Literal) and tree.is_int and self.dtype.is_integer():
            given = tree.name
        else:
            return None
        sign, given = (-1, given[1:]) if given.startswith("-") else (1, given)
        try:
            return sign * length(given, self.dtype, "the band of the join", zero=True)
        except QueryError as error:
            raise fail(tree, str(error), self.text) from None
