"""The most frequent values: top_k and heavy_hitters, exactly."""

from __future__ import annotations

from fractions import Fraction

import polars as pl

from windrow.aggregates.aggregate import Aggregate, Parameter, is_share, no_nulls
from windrow.aggregates.bagged import Bagged
from windrow.aggregates.parts import ROWS, Part, counted, rows


def ranking(dtype: pl.DataType) -> pl.DataType:
    """The type of values with their counts."""
    return pl.List(pl.Struct({"value": dtype, "count": pl.Int64()}))


def share_and_filter(parameters: tuple[Parameter, ...]) -> bool:
    """A share from 0 to 1, and a second parameter where FILTER leaves out rows."""
    return is_share(parameters[:1]) and len(parameters) <= 2


def of_all(parameters: tuple[Parameter, ...], arg: str | None) -> str:
    """The state column that a share is of: all rows, or with a second parameter (FILTER) the values not NULL."""
    return ROWS if len(parameters) == 1 else f"n:{arg}"


class Ranked(Bagged):
    """Values with their counts, the most frequent first, equal counts by value."""

    @property
    def result(self) -> pl.DataType:
        return ranking(self.dtype)

    def _listed(self, state: pl.DataFrame, entries: pl.DataFrame, most: int | None) -> pl.Series:
        ordered = entries.sort("n", "v", descending=[True, False])
        pairs = pl.struct(pl.col("v").alias("value"), pl.col("n").alias("count"))
        found = ordered.group_by("@i", maintain_order=True).agg(
            (pairs if most is None else pairs.head(most)).alias("r")
        )
        return no_nulls(self._aligned(state, found))


class TopK(Ranked):
    """The k most frequent values."""

    function = "top_k"
    wants = "a number of values, as in top_k(x, 10)"

    @classmethod
    def check(cls, parameters: tuple[Parameter, ...]) -> bool:
        return len(parameters) == 1 and parameters[0] >= 1 and Fraction(parameters[0]).denominator == 1

    def lower(self, state: pl.DataFrame) -> pl.Series:
        return self._listed(state, self._entries(state), int(self.parameters[0]))


class HeavyHitters(Ranked):
    """Values with at least a given share of all rows, exactly (Li, Q6-4)."""

    function = "heavy_hitters"
    wants = "a share from 0 to 1, as in heavy_hitters(x, 0.05)"

    @classmethod
    def check(cls, parameters: tuple[Parameter, ...]) -> bool:
        return share_and_filter(parameters)

    def parts(self) -> tuple[Part, ...]:
        return (*super().parts(), rows(), counted(self._arg()))

    def lower(self, state: pl.DataFrame) -> pl.Series:
        share = Fraction(self.parameters[0])
        # n / total >= share is a comparison of integers, with one product per window instead of one per value.
        total = pl.col(of_all(self.parameters, self.arg)).cast(pl.Int128)
        least = (total * share.numerator + (share.denominator - 1)) // share.denominator
        entries = self._entries(state, least.cast(pl.Int64).alias("least"))
        return self._listed(state, entries.filter(pl.col("n") >= pl.col("least")), None)


FREQUENT: dict[str, type[Aggregate]] = {"top_k": TopK, "heavy_hitters": HeavyHitters}
