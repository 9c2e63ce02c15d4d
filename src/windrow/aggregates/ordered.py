"""Aggregates by the order of progress: the first value, the last one, all of them in a list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import polars as pl

from windrow.aggregates.aggregate import Aggregate, OfAnything, no_nulls
from windrow.aggregates.bags import Listed, in_order
from windrow.aggregates.objects import Edge
from windrow.aggregates.parts import Part


@dataclass(frozen=True)
class CollectList(OfAnything):
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
class _AtEdge(OfAnything):
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


ORDERED: dict[str, type[Aggregate]] = {
    "first": First,
    "first_value": First,
    "last": Last,
    "last_value": Last,
    "collect_list": CollectList,
    "array_agg": CollectList,
}
