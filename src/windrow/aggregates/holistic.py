"""Aggregates that need the values themselves (holistic), and their approximate kin."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

import polars as pl

from windrow.aggregates.bags import Bag, Listed, in_order
from windrow.aggregates.functions import Aggregate, Algebra, Avg, Parameter, Sum
from windrow.aggregates.objects import Edge
from windrow.aggregates.parts import ROWS, Part, counted, rows
from windrow.aggregates.sketches import Frequent, Hll, Kll, SketchPart

ANYTHING = "any column that can be a group key"


def fraction(parameters: tuple[Parameter, ...]) -> bool:
    """One parameter from 0 to 1."""
    return len(parameters) == 1 and 0 <= parameters[0] <= 1


def of_all(parameters: tuple[Parameter, ...], arg: str | None) -> str:
    """The state column that a share is of: all rows, or with a second parameter (FILTER) the values not NULL."""
    return ROWS if len(parameters) == 1 else f"n:{arg}"


def no_nulls(lists: pl.Series) -> pl.Series:
    """Empty lists instead of NULL."""
    return lists.to_frame().select(pl.all().fill_null(pl.lit([], lists.dtype))).to_series()


class _OfAnything(Aggregate):
    takes = ANYTHING

    @classmethod
    def accepts(cls, dtype: pl.DataType) -> bool:
        return not isinstance(dtype, (pl.Object, pl.Struct))


@dataclass(frozen=True)
class _Bagged(_OfAnything):
    """Computed from the distinct values and their counts."""

    @property
    def algebra(self) -> Algebra:
        return Algebra(invertible=True)

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


class CountDistinct(_Bagged):
    """How many different values."""

    function = "count_distinct"

    @property
    def result(self) -> pl.DataType:
        return pl.Int64()

    def lower(self, state: pl.DataFrame) -> pl.Series:
        return self._column(state, pl.col(self.parts()[0].columns[0]).list.len())


class _OverDistinct(_Bagged):
    """Another aggregate over the different values."""

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
    """The sum of the different values."""

    function, inner = "sum_distinct", Sum


class AvgDistinct(_OverDistinct):
    """The mean of the different values."""

    function, inner = "avg_distinct", Avg


class CollectSet(_Bagged):
    """The different values, in order."""

    function = "collect_set"

    @property
    def result(self) -> pl.DataType:
        return pl.List(self.dtype)

    def lower(self, state: pl.DataFrame) -> pl.Series:
        return self._column(state, pl.col(self.parts()[0].columns[0]).list.sort())


class Mode(_Bagged):
    """The most frequent value; the least one of several."""

    function = "mode"

    @property
    def result(self) -> pl.DataType:
        return self.dtype

    def lower(self, state: pl.DataFrame) -> pl.Series:
        ordered = self._entries(state).sort("n", "v", descending=[True, False])
        return self._aligned(state, ordered.group_by("@i", maintain_order=True).agg(pl.col("v").first().alias("r")))


class Quantile(_Bagged):
    """The value at a share of the order, between two values in proportion (SQL's percentile_cont)."""

    function = "quantile"
    takes = "a number"
    wants = "a share from 0 to 1, as in quantile(x, 0.9)"

    @classmethod
    def accepts(cls, dtype: pl.DataType) -> bool:
        return dtype.is_numeric()

    @classmethod
    def check(cls, parameters: tuple[Parameter, ...]) -> bool:
        return fraction(parameters)

    @property
    def share(self) -> Fraction:
        return Fraction(self.parameters[0])

    @property
    def result(self) -> pl.DataType:
        return pl.Float64()

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
    """The value in the middle; of an even number the mean of the two in the middle."""

    function = "median"
    wants = ""

    @classmethod
    def check(cls, parameters: tuple[Parameter, ...]) -> bool:
        return not parameters

    @property
    def share(self) -> Fraction:
        return Fraction(1, 2)


class _Ranked(_Bagged):
    """Values with their counts, the most frequent first, equal counts by value."""

    @property
    def result(self) -> pl.DataType:
        return pl.List(pl.Struct({"value": self.dtype, "count": pl.Int64()}))

    def _listed(self, state: pl.DataFrame, entries: pl.DataFrame, most: int | None) -> pl.Series:
        ordered = entries.sort("n", "v", descending=[True, False])
        pairs = pl.struct(pl.col("v").alias("value"), pl.col("n").alias("count"))
        found = ordered.group_by("@i", maintain_order=True).agg(
            (pairs if most is None else pairs.head(most)).alias("r")
        )
        return no_nulls(self._aligned(state, found))


class TopK(_Ranked):
    """The k most frequent values."""

    function = "top_k"
    wants = "a number of values, as in top_k(x, 10)"

    @classmethod
    def check(cls, parameters: tuple[Parameter, ...]) -> bool:
        return len(parameters) == 1 and parameters[0] >= 1 and Fraction(parameters[0]).denominator == 1

    def lower(self, state: pl.DataFrame) -> pl.Series:
        return self._listed(state, self._entries(state), int(self.parameters[0]))


class HeavyHitters(_Ranked):
    """The values of at least a given share of all rows, exactly (Li, Q6-4)."""

    function = "heavy_hitters"
    wants = "a share from 0 to 1, as in heavy_hitters(x, 0.05)"

    @classmethod
    def check(cls, parameters: tuple[Parameter, ...]) -> bool:
        return fraction(parameters[:1]) and len(parameters) <= 2

    def parts(self) -> tuple[Part, ...]:
        return (*super().parts(), rows(), counted(self._arg()))

    def lower(self, state: pl.DataFrame) -> pl.Series:
        share = Fraction(self.parameters[0])
        # n / total >= share is a comparison of integers, with one product per window instead of one per value.
        total = pl.col(of_all(self.parameters, self.arg)).cast(pl.Int128)
        least = (total * share.numerator + (share.denominator - 1)) // share.denominator
        entries = self._entries(state, least.cast(pl.Int64).alias("least"))
        return self._listed(state, entries.filter(pl.col("n") >= pl.col("least")), None)


@dataclass(frozen=True)
class CollectList(_OfAnything):
    """All values in the order of progress; equal progress values in the order of the values."""

    function = "collect_list"

    @property
    def result(self) -> pl.DataType:
        return pl.List(self.dtype)

    def parts(self) -> tuple[Part, ...]:
        return (Listed(self._arg(), self.dtype),)

    def lower(self, state: pl.DataFrame) -> pl.Series:
        found = in_order(state[self.parts()[0].columns[0]])
        return no_nulls(found.cast(self.result).alias(self.name))


@dataclass(frozen=True)
class _AtEdge(_OfAnything):
    which: ClassVar[Literal["first", "last"]]

    @property
    def result(self) -> pl.DataType:
        return self.dtype

    def parts(self) -> tuple[Part, ...]:
        return (Edge(self._arg(), self.which, self.dtype),)

    def lower(self, state: pl.DataFrame) -> pl.Series:
        return self._column(state, pl.col(self.parts()[0].columns[1]))


class First(_AtEdge):
    """The value with the least progress value; of several the least."""

    function, which = "first", "first"


class Last(_AtEdge):
    """The value with the greatest progress value; of several the greatest."""

    function, which = "last", "last"


# -- approximate -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Sketched(_OfAnything):
    @property
    def algebra(self) -> Algebra:
        return Algebra(order_exact=False)

    def _sketches(self, state: pl.DataFrame) -> list[Any]:
        sketches = self.parts()[0]
        assert isinstance(sketches, SketchPart)
        return list(sketches.arrays(state)[0])


class ApproxCountDistinct(_Sketched):
    """About how many different values (HyperLogLog)."""

    function = "approx_count_distinct"

    @property
    def result(self) -> pl.DataType:
        return pl.Int64()

    def parts(self) -> tuple[Part, ...]:
        return (Hll(self._arg()),)

    def lower(self, state: pl.DataFrame) -> pl.Series:
        counts = [0 if s is None else round(s.get_estimate()) for s in self._sketches(state)]
        return pl.Series(self.name, counts, dtype=self.result)


class ApproxQuantile(_Sketched):
    """About the value at a share of the order (KLL)."""

    function = "approx_quantile"
    takes = "a number"
    wants = Quantile.wants.replace("quantile", "approx_quantile")

    @classmethod
    def accepts(cls, dtype: pl.DataType) -> bool:
        return dtype.is_numeric()

    @classmethod
    def check(cls, parameters: tuple[Parameter, ...]) -> bool:
        return fraction(parameters)

    @property
    def result(self) -> pl.DataType:
        return pl.Float64()

    def parts(self) -> tuple[Part, ...]:
        return (Kll(self._arg()),)

    def lower(self, state: pl.DataFrame) -> pl.Series:
        share = float(self.parameters[0])
        found = [None if s is None or s.is_empty() else s.get_quantile(share, True) for s in self._sketches(state)]
        return pl.Series(self.name, found, dtype=self.result)


class ApproxHeavyHitters(_Sketched):
    """The values of about a given share of all rows (frequent items): none is missing, some may be a little rarer."""

    function = "approx_heavy_hitters"
    takes = "text or integers"
    wants = HeavyHitters.wants.replace("heavy", "approx_heavy")

    @classmethod
    def accepts(cls, dtype: pl.DataType) -> bool:
        return dtype.is_integer() or dtype == pl.String

    @classmethod
    def check(cls, parameters: tuple[Parameter, ...]) -> bool:
        return fraction(parameters[:1]) and len(parameters) <= 2

    @property
    def result(self) -> pl.DataType:
        return pl.List(pl.Struct({"value": self.dtype, "count": pl.Int64()}))

    def parts(self) -> tuple[Part, ...]:
        return (Frequent(self._arg()), rows(), counted(self._arg()))

    def lower(self, state: pl.DataFrame) -> pl.Series:
        from datasketches import frequent_items_error_type

        kind = frequent_items_error_type.NO_FALSE_NEGATIVES
        least = [
            -(-total * Fraction(self.parameters[0]) // 1)
            for total in state[of_all(self.parameters, self.arg)].to_list()
        ]
        found = []
        for sketch, threshold in zip(self._sketches(state), least, strict=True):
            # The sketch tells those whose upper bound is above a threshold; ours is "at least".
            items = [] if sketch is None else sketch.get_frequent_items(kind, max(0, int(threshold) - 1))
            pairs = [(self._value(item), estimate) for item, estimate, *_ in items]
            found.append([{"value": v, "count": n} for v, n in sorted(pairs, key=lambda p: (-p[1], p[0]))])
        return pl.Series(self.name, found, dtype=self.result)

    def _value(self, item: str) -> Any:
        return int(item) if self.dtype.is_integer() else item


HOLISTIC: dict[str, type[Aggregate]] = {
    "count_distinct": CountDistinct,
    "sum_distinct": SumDistinct,
    "avg_distinct": AvgDistinct,
    "first": First,
    "first_value": First,
    "last": Last,
    "last_value": Last,
    "collect_list": CollectList,
    "array_agg": CollectList,
    "collect_set": CollectSet,
    "median": Median,
    "quantile": Quantile,
    "percentile": Quantile,
    "mode": Mode,
    "top_k": TopK,
    "heavy_hitters": HeavyHitters,
    "approx_count_distinct": ApproxCountDistinct,
    "approx_quantile": ApproxQuantile,
    "approx_percentile": ApproxQuantile,
    "percentile_approx": ApproxQuantile,
    "approx_heavy_hitters": ApproxHeavyHitters,
}
