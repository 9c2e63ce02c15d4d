"""All aggregates of one query together: rows to partials, partials to fewer partials, partials to results."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from windrow.aggregates.functions import Aggregate
from windrow.aggregates.parts import Part, rows


class Partials:
    """Lift, combine and lower whole frames. Every partial has the column ``rows``, whatever the aggregates are."""

    def __init__(self, aggregates: Sequence[Aggregate]) -> None:
        self.aggregates = tuple(aggregates)
        shared: dict[tuple[str, ...], Part] = {(p := rows()).columns: p}
        for aggregate in self.aggregates:
            for part in aggregate.parts():
                shared.setdefault(part.columns, part)
        self.parts = tuple(shared.values())

    @property
    def columns(self) -> list[str]:
        """The names of all state columns."""
        return [c for part in self.parts for c in part.columns]

    def lift(self, frame: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
        """One partial per distinct value of ``by``."""
        return frame.group_by(*by).agg(e for part in self.parts for e in part.lift())

    def combine(self, frame: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
        """Merge partials with equal ``by``."""
        return frame.group_by(*by).agg(e for part in self.parts for e in part.combine())

    def lower(self, frame: pl.DataFrame, keep: Sequence[str]) -> pl.DataFrame:
        """Results: the columns ``keep``, then one column per aggregate."""
        return frame.select(keep).with_columns(*(a.lower(frame) for a in self.aggregates))
