"""Aggregates of the distinct values and their counts (holistic): distinct counts and sums, sets, modes, quantiles."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import polars as pl

from windrow.aggregates.aggregate import Aggregate, AtShare, OfAnything, Parameter
from windrow.aggregates.bags import Bag
from windrow.aggregates.functions import Avg, Sum
from windrow.aggregates.parts import Part


@dataclass(frozen=True)
class Bagged(OfAnything):
    """Computed from the distinct values and their counts."""

    def parts(self) -> tuple[Part, ...]:
        return (Bag(self._arg(), self.dtype),)

    def _entries(self, state: pl.DataFrame, *beside: pl.Expr) -> pl.DataFrame:
        """One row per distinct value: ``@i`` (the row of the state), ``v`` and ``n``, and what is ``beside`` them."""
        values, counts = self.parts()[0].columns
        listed = state.select(pl.col(values).alias("v"), pl.col(counts).alias("n"), *beside).with_row_index("@i")
        return listed.explode("v", "n").filter(pl.col("n").is_not_null())

    def _aligned(self, state: pl.DataFrame, found: pl.DataFrame) -> pl.Series:
        """Results in the order of the state's rows, NULL where there is none; ``found`` has ``@i`` and ``r``."""
        every = pl.DataFrame({"@i": range(state.height)}, schema={"@i": pl.UInt32})
        joined = every.join(found, on="@i", how="left", maintain_order="left")
        return joined["r"].cast(self.result).alias(self.name)


class CountDistinct(Bagged):
    """The number of distinct values."""

    function = "count_distinct"
    returns = pl.Int64()

    def lower(self, state: pl.DataFrame) -> pl.Series:
        return self._column(state, pl.col(self.parts()[0].columns[0]).list.len())


class _OverDistinct(Bagged):
    """Another aggregate over the distinct values."""

    inner: ClassVar[type[Aggregate]]
    takes = "a number"

    @classmethod
    def accepts(cls, dtype: pl.DataType) -> bool:
        return cls.inner.accepts(dtype)

    @property
    def result(self) -> pl.DataType:
        return self.inner(self.name, self.arg, self.dtype).result

    def lower(self, state: pl.DataFrame) -> pl.Series:
        entries = self._entries(state).rename({"v": self._arg()})
        inner = self.inner("r", self.arg, self.dtype)
        lifted = entries.group_by("@i").agg(e for part in inner.parts() for e in part.lift())
        return self._aligned(state, lifted.select("@i").with_columns(inner.lower(lifted)))


class SumDistinct(_OverDistinct):
    """The sum of the distinct values."""

    function, inner = "sum_distinct", Sum


class AvgDistinct(_OverDistinct):
    """The mean of the distinct values."""

    function, inner = "avg_distinct", Avg


class CollectSet(Bagged):
    """The distinct values, sorted."""

    function = "collect_set"

    @property
    def result(self) -> pl.DataType:
        return pl.List(self.dtype)

    def lower(self, state: pl.DataFrame) -> pl.Series:
        return self._column(state, pl.col(self.parts()[0].columns[0]).list.sort())


class Mode(Bagged):
    """The most frequent value; the smallest of several."""

    function = "mode"

    @property
    def result(self) -> pl.DataType:
        return self.dtype

    def lower(self, state: pl.DataFrame) -> pl.Series:
        ordered = self._entries(state).sort("n", "v", descending=[True, False])
        return self._aligned(state, ordered.group_by("@i", maintain_order=True).agg(pl.col("v").first().alias("r")))


class Quantile(AtShare, Bagged):
    """A quantile, interpolated between neighbouring values (SQL's percentile_cont)."""

    function = "quantile"
    wants = "a share from 0 to 1, as in quantile(x, 0.9)"

    @property
    def share(self) -> Fraction:
        return Fraction(self.parameters[0])

    def lower(self, state: pl.DataFrame) -> pl.Series:
        ordered = self._entries(state).sort("@i", "v").with_columns(pl.col("n").cum_sum().over("@i").alias("upto"))
        last = pl.col("n").sum().over("@i") - 1
        top, bottom = self.share.numerator, self.share.denominator
        ranked = ordered.with_columns(
            (last * top // bottom).alias("low"), (last * top % bottom / bottom).alias("part"), last.alias("last")
        ).with_columns(pl.min_horizontal("low", "last"))
        at = [pl.col("v").filter(pl.col("upto") > pl.col("low") + step).first().cast(pl.Float64) for step in (0, 1)]
        found = ranked.group_by("@i").agg(at[0].alias("a"), at[1].alias("b"), pl.col("part").first())
        a, b, part = pl.col("a"), pl.col("b").fill_null(pl.col("a")), pl.col("part")
        between = pl.when((part == 0) | (a == b)).then(a).otherwise(a * (1 - part) + b * part)
        return self._aligned(state, found.select("@i", between.alias("r")))


class Median(Quantile):
    """The middle value; of an even number of values the mean of the two in the middle."""

    function = "median"
    wants = ""

    @classmethod
    def check(cls, parameters: tuple[Parameter, ...]) -> bool:
        return not parameters

    @property
    def share(self) -> Fraction:
        return Fraction(1, 2)


DISTINCT: dict[str, type[Aggregate]] = {
    "count_distinct": CountDistinct,
    "sum_distinct": SumDistinct,
    "avg_distinct": AvgDistinct,
    "collect_set": CollectSet,
    "median": Median,
    "quantile": Quantile,
    "percentile": Quantile,
    "mode": Mode,
}
