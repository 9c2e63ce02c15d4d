"""Parts: the mergeable state that aggregates are made of.

A part knows how to *lift* rows into state columns and how to *combine* states, once for grouped Polars frames
and once for NumPy arrays (the window level slides over arrays). Aggregates over the same argument share parts:
``count(x)``, ``sum(x)`` and ``avg(x)`` keep one count of ``x``. State columns never hold NULL: an empty state is
the identity, and a count beside it shows that it is empty.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from windrow.errors import InternalError

Array = NDArray[Any]
Scalar = int | float

AT = "@t"  # the progress value of a row, as an integer
ROWS = "@rows"  # the state column that counts tuples, in every partial: shows who has rows, and how many are late
INT64 = pl.Int64()
LIMB = 1 << 32  # integer sums are kept as two limbs, so that no intermediate overflows below 2**31 rows

WIDE = 1000  # above this width a loop over steps beats NumPy's accumulate, which jumps from row to row


class Part(ABC):
    """Some state columns that are merged together. Merging is associative and commutative.

    How windows are merged from panes depends on the kind of part: a NumberPart has NumPy arrays, an ObjectPart single
    Python values; all others hold lists, which are concatenated by ``combine``.
    """

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Names of the state columns; equal names in two aggregates mean the same state."""

    @property
    @abstractmethod
    def dtypes(self) -> tuple[pl.DataType, ...]: ...

    @property
    def identity(self) -> tuple[Any, ...]:
        """The state of no rows."""
        return (None,) * len(self.columns)

    @abstractmethod
    def lift(self) -> list[pl.Expr]:
        """State of the rows of a group, as aggregate expressions."""

    @abstractmethod
    def combine(self) -> list[pl.Expr]:
        """State of a group from the states of its partials, as aggregate expressions."""

    def finish(self, frame: pl.DataFrame, lifted: bool) -> pl.DataFrame:  # noqa: ARG002
        """What no expression can do, after the grouping by ``lift`` or ``combine``."""
        return frame


class NumberPart(Part):
    """State in NumPy arrays, merged element by element."""

    @property
    def differential(self) -> bool:
        """Whether ``remove`` undoes ``merge`` exactly: full-differential, Li 6.2.2.2. Rounding must not be visible."""
        return False

    def arrays(self, frame: pl.DataFrame) -> list[Array]:
        """The state columns for ``merge``."""
        return [frame[c].to_numpy() for c in self.columns]

    def series(self, arrays: Sequence[Array]) -> list[pl.Series]:
        """The state columns of merged arrays."""
        return [pl.Series(c, a, dtype=t) for c, a, t in zip(self.columns, arrays, self.dtypes, strict=True)]

    def each(self) -> list[pl.Expr] | None:
        """State of every single row, as expressions; None if there are no such expressions."""
        return None

    @abstractmethod
    def merge(self, a: Sequence[Array], b: Sequence[Array]) -> list[Array]:
        """Element by element, the state of two states; ``a`` precedes ``b``."""

    def remove(self, state: Sequence[Array], gone: Sequence[Array]) -> None:  # noqa: ARG002
        """Undo the merge with ``gone``, in place and element by element; only where the part is differential."""
        raise InternalError(f"{type(self).__name__} cannot be subtracted")

    def accumulate(self, state: Sequence[Array], axis: int) -> list[Array]:
        """Running ``merge`` along an axis."""
        running = [np.moveaxis(s.copy(), axis, 0) for s in state]
        for i in range(1, len(running[0])):
            for column, value in zip(
                running, self.merge([r[i - 1] for r in running], [r[i] for r in running]), strict=True
            ):
                column[i] = value
        return [np.moveaxis(r, 0, axis) for r in running]


@dataclass(frozen=True)
class Fold(NumberPart):
    """One column merged by addition, minimum or maximum."""

    column: str
    expr: pl.Expr
    how: Literal["sum", "min", "max"]
    empty: Scalar = 0
    dtype: pl.DataType = INT64
    single: pl.Expr | None = None  # what ``expr`` is of one row, NULL if it adds nothing

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def dtypes(self) -> tuple[pl.DataType, ...]:
        return (self.dtype,)

    @property
    def identity(self) -> tuple[Scalar, ...]:
        return (self.empty,)

    @property
    def ufunc(self) -> np.ufunc:
        return {"sum": np.add, "min": np.minimum, "max": np.maximum}[self.how]

    @property
    def differential(self) -> bool:
        """Integer sums and counts are, modulo 2**64, so that an overflow on the way cancels; sums of floats round."""
        return self.how == "sum" and self.dtype.is_integer()

    def lift(self) -> list[pl.Expr]:
        return [self.expr.fill_null(self.empty).cast(self.dtype).alias(self.column)]

    def each(self) -> list[pl.Expr] | None:
        if self.single is None:
            return None
        return [self.single.fill_null(self.empty).cast(self.dtype).alias(self.column)]

    def combine(self) -> list[pl.Expr]:
        return [getattr(pl.col(self.column), self.how)()]

    def merge(self, a: Sequence[Array], b: Sequence[Array]) -> list[Array]:
        return [self.ufunc(a[0], b[0])]

    def remove(self, state: Sequence[Array], gone: Sequence[Array]) -> None:
        np.subtract(state[0], gone[0], out=state[0])

    def accumulate(self, state: Sequence[Array], axis: int) -> list[Array]:
        (values,) = state
        if not values.size or values.size < WIDE * values.shape[axis]:
            return [self.ufunc.accumulate(values, axis=axis)]
        running = np.empty_like(values)
        steps, given = np.moveaxis(running, axis, 0), np.moveaxis(values, axis, 0)
        steps[0] = given[0]
        for i in range(1, len(given)):
            self.ufunc(steps[i - 1], given[i], out=steps[i])
        return [running]


@dataclass(frozen=True)
class Moments(NumberPart):
    """Count, mean and sum of squared distances from it: the parallel update of Chan, Golub and LeVeque.

    A sum of squares would cancel catastrophically where the spread is small beside the mean.
    """

    arg: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (f"w:{self.arg}", f"mean:{self.arg}", f"m2:{self.arg}")

    @property
    def dtypes(self) -> tuple[pl.DataType, ...]:
        return (pl.Float64(),) * 3

    @property
    def identity(self) -> tuple[Scalar, ...]:
        return (0.0, 0.0, 0.0)

    def lift(self) -> list[pl.Expr]:
        x = pl.col(self.arg).cast(pl.Float64)
        lifted = (x.count().cast(pl.Float64), x.mean().fill_null(0.0), ((x - x.mean()) ** 2).sum())
        return [e.alias(c) for e, c in zip(lifted, self.columns, strict=True)]

    def each(self) -> list[pl.Expr]:
        x = pl.col(self.arg).cast(pl.Float64)
        single = (x.is_not_null().cast(pl.Float64), x.fill_null(0.0), (x - x).fill_null(0.0))
        return [e.alias(c) for e, c in zip(single, self.columns, strict=True)]

    def combine(self) -> list[pl.Expr]:
        n, mean, m2 = (pl.col(c) for c in self.columns)
        total = n.sum()
        centre = pl.when(total > 0).then((n * mean).sum() / total).otherwise(0.0)
        combined = (total, centre, (m2 + n * (mean - centre) ** 2).sum())
        return [e.alias(c) for e, c in zip(combined, self.columns, strict=True)]

    def merge(self, a: Sequence[Array], b: Sequence[Array]) -> list[Array]:
        (na, mean_a, m2a), (nb, mean_b, m2b) = a, b
        n = na + nb
        share = np.divide(nb, n, out=np.zeros_like(n), where=n > 0)
        with np.errstate(over="ignore", invalid="ignore"):  # infinities among the values are not our error
            delta = mean_b - mean_a
            mean, m2 = mean_a + delta * share, m2a + m2b + delta * delta * na * share
        # An empty side changes nothing, and must not: infinity times its zero weight is not a number.
        empty = [nb == 0, na == 0]
        return [n, np.select(empty, [mean_a, mean_b], mean), np.select(empty, [m2a, m2b], m2)]


def rows() -> Fold:
    """The number of tuples."""
    return Fold(ROWS, pl.len(), "sum", single=pl.lit(1))


def counted(arg: str) -> Fold:
    """The number of non-NULL values."""
    return Fold(f"n:{arg}", pl.col(arg).count(), "sum", single=pl.col(arg).is_not_null())


def integer_sum(arg: str, dtype: pl.DataType) -> tuple[Fold, ...]:
    """Two limbs whose value ``high * 2**32 + low`` is exact in every order."""
    x = pl.col(arg) if dtype in (pl.Int64(), pl.UInt64()) else pl.col(arg).cast(pl.Int64)
    high, low = (x // LIMB).cast(pl.Int64), (x % LIMB).cast(pl.Int64)
    return tuple(Fold(f"{n}:{arg}", x.sum(), "sum", single=x) for n, x in (("high", high), ("low", low)))


def decimal_sum(arg: str) -> tuple[Fold, ...]:
    """Four limbs of 32 bits of the unscaled value, the lowest first: exact in every order."""
    x = pl.col(arg).to_physical()
    limbs = []
    for i in range(3):
        limb = (x % LIMB).cast(pl.Int64)
        limbs.append(Fold(f"limb{i}:{arg}", limb.sum(), "sum", single=limb))
        x = x // LIMB
    return (*limbs, Fold(f"limb3:{arg}", x.cast(pl.Int64).sum(), "sum", single=x))


def float_sum(arg: str) -> Fold:
    """A double sum: rounded, so its last bits depend on the order of additions."""
    x = pl.col(arg).cast(pl.Float64)
    return Fold(f"sum:{arg}", x.sum(), "sum", 0.0, pl.Float64(), x)


def nans(arg: str) -> Fold:
    """How many values are NaN."""
    nan = pl.col(arg).is_nan()
    return Fold(f"nan:{arg}", nan.sum(), "sum", single=nan)


def extreme(arg: str, how: Literal["min", "max"], dtype: pl.DataType) -> Fold:
    """The least or greatest value, NaN apart (see :func:`nans`)."""
    x = pl.col(arg)
    if dtype.is_float():
        # Of the two zeros, which compare equal, always the positive one, whatever the order of merging.
        numbers = pl.when(x == 0).then(pl.lit(0.0, dtype)).otherwise(x.fill_nan(None))
        empty: Scalar = float("inf") if how == "min" else float("-inf")
        return Fold(f"{how}:{arg}", getattr(numbers, how)(), how, empty, dtype, numbers)
    physical = _physical(dtype)
    info = np.iinfo(f"{'u' if physical.is_unsigned_integer() else 'i'}{_bits(physical) // 8}")
    empty = int(info.max if how == "min" else info.min)
    number = x.to_physical()
    return Fold(f"{how}:{arg}", getattr(number, how)(), how, empty, physical, number)


def _physical(dtype: pl.DataType) -> pl.DataType:
    return pl.Series([], dtype=dtype).to_physical().dtype


def _bits(dtype: pl.DataType) -> int:
    return int("".join(c for c in str(dtype) if c.isdigit()))
