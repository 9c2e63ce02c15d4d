"""Operations that can fail: they are computed for a whole batch, and raise where a row has no value, as ANSI SQL says.

Polars evaluates all operands of an expression for all rows. So an operation on columns is one function of them, which
knows where its operands were NULL; and what is evaluated for some rows only (the branches of CASE, the right side of
AND) gets only those rows if it could fail.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

import polars as pl

from windrow.errors import ResultError
from windrow.logical.scalar.types import BOOLEAN, Typed

POLARS_ADDS = "\n\nThis error occurred in the following expression:"
SHOWN = 60


class ExpressionError(ResultError):
    """An expression has no value for a row."""

    def __str__(self) -> str:
        return str(self.args[0]).split(POLARS_ADDS)[0]  # it would show how we wrote the expression, not the user


@dataclass(frozen=True)
class Operation:
    """A function of columns. Where it gives NULL though no operand is, it raises what ``says`` says of the operands."""

    compute: Callable[..., pl.Series]
    says: str | None

    def __call__(self, given: Sequence[pl.Series]) -> pl.Series:
        found = self.compute(*given)
        if self.says is not None and found.null_count():
            self._check(found, given)
        return found

    def _check(self, found: pl.Series, given: Sequence[pl.Series]) -> None:
        operands = even([found, *given])[1:]
        failed = reduce(lambda a, b: a & b, (s.is_not_null() for s in operands), found.is_null())
        if (row := failed.arg_max()) is not None and failed[row]:
            values = ", ".join(_shown(s, row) for s in operands)
            raise ExpressionError(self.says.format(values=values) if self.says is not None else values)


def _shown(values: pl.Series, row: int) -> str:
    value = (values.to_physical() if values.dtype.is_temporal() else values)[row]  # Python's calendar ends in 9999
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= SHOWN else text[:SHOWN] + ".."


def says(problem: str, instead: str) -> str:
    """What an operation says where it fails; the operands come in between. Texts of users hold any character."""
    problem, instead = (t.replace("{", "{{").replace("}", "}}") for t in (problem, instead))
    return f"{problem}, for {{values}}. {instead}"


def applied(
    compute: Callable[..., pl.Series], operands: Sequence[Typed], dtype: pl.DataType, fails: str | None = None
) -> Typed:
    """The operation on these operands; ``fails`` is what it says where it has no value, None where that is NULL."""
    inner = [o.expr for o in operands]
    expr = pl.map_batches(inner, Operation(compute, fails), return_dtype=dtype, is_elementwise=True)
    return Typed(expr, dtype, fails is not None or any(o.fallible for o in operands))


def even(given: Sequence[pl.Series]) -> list[pl.Series]:
    """Columns of the same length: a literal has one row, however many there are."""
    lengths = {len(s) for s in given}
    height = 0 if 0 in lengths else max(lengths)
    return [s if len(s) == height else s.head(0) if height == 0 else s.new_from_index(0, height) for s in given]


@dataclass(frozen=True)
class Formula:
    """A Polars expression over the operands, called "0", "1" and so on: each is computed once, however often used."""

    expr: pl.Expr

    def __call__(self, *given: pl.Series) -> pl.Series:
        frame = pl.DataFrame([s.alias(str(i)) for i, s in enumerate(even(given))])
        return _column(frame, self.expr)


def _column(frame: pl.DataFrame, expr: pl.Expr) -> pl.Series:
    return frame.with_columns(expr.alias("@value"))["@value"]  # a literal alone would have one row


# -- what is evaluated for some rows only ----------------------------------------------------------------------------
Branch = tuple[pl.Expr, pl.Expr]


def sheltered(compute: Callable[..., pl.Series], columns: Sequence[str], dtype: pl.DataType) -> Typed:
    """A function of the rows: of these columns, or of one row of nothing."""
    inner = [pl.col(c) for c in columns] or [pl.lit(None).alias("@nothing")]
    return Typed(pl.map_batches(inner, _Rows(compute), return_dtype=dtype, is_elementwise=True), dtype, True)


@dataclass(frozen=True)
class _Rows:
    compute: Callable[[pl.DataFrame], pl.Series]

    def __call__(self, given: Sequence[pl.Series]) -> pl.Series:
        return self.compute(pl.DataFrame(even(given)))


def _only(frame: pl.DataFrame, rows: pl.Series, expr: pl.Expr, dtype: pl.DataType) -> pl.Series:
    """The value for these rows, which alone are evaluated; NULL for the others."""
    if rows.all():
        return _column(frame, expr)
    if not rows.any():
        return pl.Series([None], dtype=dtype).new_from_index(0, frame.height)
    places = pl.select(pl.when(rows).then(rows.cum_sum() - 1)).to_series()
    return _column(frame.filter(rows), expr).gather(places)


@dataclass(frozen=True)
class Choice:
    """CASE: each row by the first branch whose condition is true for it."""

    branches: tuple[Branch, ...]
    default: pl.Expr
    dtype: pl.DataType

    def __call__(self, frame: pl.DataFrame) -> pl.Series:
        rest = pl.Series([True]).new_from_index(0, frame.height)
        found = pl.Series([None], dtype=self.dtype).new_from_index(0, frame.height)
        for condition, value in self.branches:
            true = _only(frame, rest, condition, BOOLEAN).fill_null(False) & rest
            found = _only(frame, true, value, self.dtype).zip_with(true, found)
            rest = rest & ~true
        return _only(frame, rest, self.default, self.dtype).zip_with(rest, found)


@dataclass(frozen=True)
class Both:
    """AND, or OR: the right side counts where the left one has not ``decided``."""

    left: pl.Expr
    right: pl.Expr
    decided: bool

    def __call__(self, frame: pl.DataFrame) -> pl.Series:
        left = _column(frame, self.left).cast(BOOLEAN)
        right = _only(frame, left.ne_missing(self.decided), self.right, BOOLEAN).cast(BOOLEAN)
        return left | right if self.decided else left & right


@dataclass(frozen=True)
class First:
    """coalesce: a value is computed where all before it are NULL."""

    values: tuple[pl.Expr, ...]
    dtype: pl.DataType

    def __call__(self, frame: pl.DataFrame) -> pl.Series:
        found = _column(frame, self.values[0])
        for value in self.values[1:]:
            missing = found.is_null()
            found = _only(frame, missing, value, self.dtype).zip_with(missing, found)
        return found
