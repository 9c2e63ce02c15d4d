"""Approximate aggregates, by sketches of fixed size: distinct counts, quantiles, heavy hitters."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import polars as pl

from windrow.aggregates.aggregate import Aggregate, AtShare, OfAnything, Parameter
from windrow.aggregates.bagged import Quantile
from windrow.aggregates.frequent import HeavyHitters, of_all, ranking, share_and_filter
from windrow.aggregates.parts import Part, counted, rows
from windrow.aggregates.sketches import Frequent, Hll, Kll, SketchPart


@dataclass(frozen=True)
class _Sketched(OfAnything):
    def _sketches(self, state: pl.DataFrame) -> list[Any]:
        sketches = self.parts()[0]
        assert isinstance(sketches, SketchPart)
        return list(sketches.arrays(state)[0])


class ApproxCountDistinct(_Sketched):
    """The approximate number of distinct values (HyperLogLog)."""

    function = "approx_count_distinct"
    returns = pl.Int64()

    def parts(self) -> tuple[Part, ...]:
        return (Hll(self._arg()),)

    def lower(self, state: pl.DataFrame) -> pl.Series:
        counts = [0 if s is None else round(s.get_estimate()) for s in self._sketches(state)]
        return pl.Series(self.name, counts, dtype=self.result)


class ApproxQuantile(AtShare, _Sketched):
    """An approximate quantile (KLL)."""

    function = "approx_quantile"
    wants = Quantile.wants.replace("quantile", "approx_quantile")

    def parts(self) -> tuple[Part, ...]:
        return (Kll(self._arg()),)

    def lower(self, state: pl.DataFrame) -> pl.Series:
        share = float(self.parameters[0])
        found = [None if s is None or s.is_empty() else s.get_quantile(share, True) for s in self._sketches(state)]
        return pl.Series(self.name, found, dtype=self.result)


class ApproxHeavyHitters(_Sketched):
    """Values with about a given share of all rows (frequent items): none is missing, some may be slightly rarer."""

    function = "approx_heavy_hitters"
    takes = "text or integers"
    wants = HeavyHitters.wants.replace("heavy", "approx_heavy")

    @classmethod
    def accepts(cls, dtype: pl.DataType) -> bool:
        return dtype.is_integer() or dtype == pl.String

    @classmethod
    def check(cls, parameters: tuple[Parameter, ...]) -> bool:
        return share_and_filter(parameters)

    @property
    def result(self) -> pl.DataType:
        return ranking(self.dtype)

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
            # The sketch returns items whose upper bound exceeds a threshold; ours means "at least".
            items = [] if sketch is None else sketch.get_frequent_items(kind, max(0, int(threshold) - 1))
            pairs = [(self._value(item), estimate) for item, estimate, *_ in items]
            found.append([{"value": v, "count": n} for v, n in sorted(pairs, key=lambda p: (-p[1], p[0]))])
        return pl.Series(self.name, found, dtype=self.result)

    def _value(self, item: str) -> Any:
        return int(item) if self.dtype.is_integer() else item


APPROXIMATE: dict[str, type[Aggregate]] = {
    "approx_count_distinct": ApproxCountDistinct,
    "approx_quantile": ApproxQuantile,
    "approx_percentile": ApproxQuantile,
    "percentile_approx": ApproxQuantile,
    "approx_heavy_hitters": ApproxHeavyHitters,
}
