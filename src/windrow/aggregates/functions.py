"""Aggregates of numbers and extremes: count, sum, avg, min, max, variances.

Floats: ``sum`` and ``avg`` of doubles are rounded, so the last bits depend on the order in which partials meet;
everything else is the same to the bit for every arrival order. NULLs are skipped as in SQL; an aggregate of no
value is NULL (counts are 0). NaN is the greatest value, as in Spark.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar, Literal

import polars as pl

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.objects import Pick
from windrow.aggregates.parts import (
    LIMB,
    ROWS,
    Moments,
    Part,
    counted,
    decimal_sum,
    extreme,
    float_sum,
    integer_sum,
    nans,
    rows,
)
from windrow.errors import ResultError

MOST_DIGITS = 38  # of a decimal


@dataclass(frozen=True)
class Count(Aggregate):
    """``count(*)`` counts tuples, ``count(x)`` non-NULL values."""

    function = "count"
    returns = pl.Int64()

    @classmethod
    def accepts(cls, dtype: pl.DataType) -> bool:  # noqa: ARG003 (anything can be counted)
        return True

    def parts(self) -> tuple[Part, ...]:
        return (rows(),) if self.arg is None else (counted(self.arg),)

    def lower(self, state: pl.DataFrame) -> pl.Series:
        return self._column(state, pl.col(ROWS if self.arg is None else f"n:{self.arg}"))


@dataclass(frozen=True)
class Sum(Aggregate):
    """Exact 64-bit integers and decimals (beyond them an error, never a wrapped number); doubles for floats."""

    function = "sum"

    @property
    def result(self) -> pl.DataType:
        if isinstance(self.dtype, pl.Decimal):
            return pl.Decimal(MOST_DIGITS, self.dtype.scale)
        return pl.Int64() if self.dtype.is_integer() else pl.Float64()

    def parts(self) -> tuple[Part, ...]:
        arg = self._arg()
        if self.dtype.is_decimal():
            return (counted(arg), *decimal_sum(arg))
        sums: tuple[Part, ...] = integer_sum(arg, self.dtype) if self.dtype.is_integer() else (float_sum(arg),)
        return (counted(arg), *sums)

    def lower(self, state: pl.DataFrame) -> pl.Series:
        if self.dtype.is_float():
            return self._column(state, self._null_if_empty(pl.col(f"sum:{self.arg}")))
        if self.dtype.is_decimal():
            return self._decimal(state)
        limbs = _normalised(state, self._arg())
        overflow = limbs.select((pl.col("high") >= LIMB // 2) | (pl.col("high") < -LIMB // 2)).to_series()
        if overflow.any():
            raise ResultError(self._overflow(state.filter(overflow), "64 bits"))
        total = pl.lit(limbs["high"]) * LIMB + pl.lit(limbs["low"])
        return self._column(state, self._null_if_empty(total))

    def _decimal(self, state: pl.DataFrame) -> pl.Series:
        assert isinstance(self.dtype, pl.Decimal)
        scale = -self.dtype.scale
        totals = [t if n else None for t, n in zip(_unscaled(state, self._arg()), state[f"n:{self.arg}"], strict=True)]
        beyond = pl.Series([t is not None and abs(t) >= 10**MOST_DIGITS for t in totals], dtype=pl.Boolean)
        if beyond.any():
            raise ResultError(self._overflow(state.filter(beyond), f"{MOST_DIGITS} digits"))
        values = [None if t is None else Decimal(f"{t}E{scale}") for t in totals]
        return pl.Series(self.name, values, dtype=self.result)

    def _overflow(self, state: pl.DataFrame, room: str) -> str:
        where = {c: state[c][0] for c in state.columns if ":" not in c and c[0] != "@" and c != ROWS}
        return f"the sum {self.name!r} does not fit into {room} at {where}: sum a DOUBLE instead (CAST its argument)"


@dataclass(frozen=True)
class Avg(Aggregate):
    """The mean as a double; over integers and decimals from the exact sum."""

    function = "avg"

    def parts(self) -> tuple[Part, ...]:
        return Sum(self.name, self.arg, self.dtype).parts()

    def lower(self, state: pl.DataFrame) -> pl.Series:
        total = pl.col(f"sum:{self.arg}")
        if isinstance(self.dtype, pl.Decimal):
            scale = 10**self.dtype.scale
            means = zip(_unscaled(state, self._arg()), state[f"n:{self.arg}"], strict=True)
            return pl.Series(self.name, [float(Fraction(t, n * scale)) if n else None for t, n in means], pl.Float64)
        if self.dtype.is_integer():
            limbs = _normalised(state, self._arg())
            total = pl.lit(limbs["high"]).cast(pl.Float64) * float(LIMB) + pl.lit(limbs["low"])
        return self._column(state, self._null_if_empty(total / pl.col(f"n:{self.arg}")))


@dataclass(frozen=True)
class Extreme(Aggregate):
    """The least or greatest value of anything that has an order."""

    takes = "a number, text, timestamp, date or boolean"

    @classmethod
    def accepts(cls, dtype: pl.DataType) -> bool:
        return dtype.is_numeric() or dtype.is_temporal() or dtype in (pl.String, pl.Binary, pl.Boolean)

    @property
    def result(self) -> pl.DataType:
        return self.dtype

    def parts(self) -> tuple[Part, ...]:
        arg = self._arg()
        how: Literal["min", "max"] = "min" if self.function == "min" else "max"
        if not self._in_arrays:
            return (counted(arg), Pick(arg, how, self.dtype))
        value = (counted(arg), extreme(arg, how, self.dtype))
        return (*value, nans(arg)) if self.dtype.is_float() else value

    @property
    def _in_arrays(self) -> bool:
        return self.dtype.is_integer() or self.dtype.is_float() or self.dtype.is_temporal()

    def lower(self, state: pl.DataFrame) -> pl.Series:
        value = pl.col(f"{self.function}:{self.arg}")
        if self.dtype.is_float():
            nan, n = pl.col(f"nan:{self.arg}"), pl.col(f"n:{self.arg}")
            only_nan = nan == n if self.function == "min" else nan > 0
            value = pl.when(only_nan).then(float("nan")).otherwise(value)
        return self._column(state, self._null_if_empty(value))


@dataclass(frozen=True)
class Min(Extreme):
    """The least value."""

    function = "min"


@dataclass(frozen=True)
class Max(Extreme):
    """The greatest value."""

    function = "max"


@dataclass(frozen=True)
class Variance(Aggregate):
    """Sample or population variance or its root; the sample ones are NULL for a single value."""

    population: ClassVar[bool] = False
    root: ClassVar[bool] = False

    def parts(self) -> tuple[Part, ...]:
        return (Moments(self._arg()),)

    def lower(self, state: pl.DataFrame) -> pl.Series:
        n, m2 = pl.col(f"w:{self.arg}"), pl.col(f"m2:{self.arg}")
        freedom = n if self.population else n - 1
        value = m2 / freedom
        return self._column(state, pl.when(freedom > 0).then(value.sqrt() if self.root else value))


class VarSamp(Variance):
    """Sample variance."""

    function = "var_samp"


class VarPop(Variance):
    """Population variance."""

    function, population = "var_pop", True


class StddevSamp(Variance):
    """Sample standard deviation."""

    function, root = "stddev_samp", True


class StddevPop(Variance):
    """Population standard deviation."""

    function, population, root = "stddev_pop", True, True


NUMERIC: dict[str, type[Aggregate]] = {
    "count": Count,
    "sum": Sum,
    "avg": Avg,
    "mean": Avg,
    "min": Min,
    "max": Max,
    "var": VarSamp,
    "variance": VarSamp,
    "var_samp": VarSamp,
    "var_pop": VarPop,
    "stddev": StddevSamp,
    "stddev_samp": StddevSamp,
    "stddev_pop": StddevPop,
}


def _normalised(state: pl.DataFrame, arg: str) -> pl.DataFrame:
    """The two limbs of a sum, carried, so that 0 <= low < 2**32."""
    high, low = pl.col(f"high:{arg}"), pl.col(f"low:{arg}")
    return state.select((high + low // LIMB).alias("high"), (low % LIMB).alias("low"))


def _unscaled(state: pl.DataFrame, arg: str) -> list[int]:
    """The sum of decimals as an integer of the last place, from its four limbs."""
    limbs = [state[f"limb{i}:{arg}"].to_list() for i in range(4)]
    return [sum(limb << 32 * i for i, limb in enumerate(row)) for row in zip(*limbs, strict=True)]
