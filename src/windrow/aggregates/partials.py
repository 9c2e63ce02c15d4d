"""All aggregates of one query together: rows to partials, partials to fewer partials, partials to results."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from windrow.aggregates.aggregate import Aggregate
from windrow.aggregates.parts import NumberPart, Part, rows
from windrow.aggregates.user import Failed


class Partials:
    """Lift, combine and lower whole frames. Every partial has the column ``rows``, whatever the aggregates are."""

    def __init__(self, aggregates: Sequence[Aggregate], extra: Sequence[Part] = ()) -> None:
        self.aggregates = tuple(aggregates)
        shared: dict[tuple[str, ...], Part] = {(p := rows()).columns: p}
        for aggregate in self.aggregates:
            for part in aggregate.parts():
                shared.setdefault(part.columns, part)
        self.parts = (*shared.values(), *extra)

    @property
    def columns(self) -> list[str]:
        """The names of all state columns."""
        return [c for part in self.parts for c in part.columns]

    @property
    def numbers(self) -> bool:
        """Whether all state is in NumPy arrays."""
        return all(isinstance(part, NumberPart) for part in self.parts)

    def lift(self, frame: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
        """One partial per distinct value of ``by``."""
        return self._finished(frame.group_by(*by).agg(e for part in self.parts for e in part.lift()), True)

    def combine(self, frame: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
        """Merge partials with equal ``by``."""
        return self._finished(frame.group_by(*by).agg(e for part in self.parts for e in part.combine()), False)

    def _finished(self, frame: pl.DataFrame, lifted: bool) -> pl.DataFrame:
        for part in self.parts:
            try:
                frame = part.finish(frame, lifted)
            except Failed as failure:
                failure.at = frame.drop(self.columns).row(failure.row, named=True)
                raise
        return frame

    def empty(self, groups: pl.DataFrame) -> pl.DataFrame:
        """The empty state for each row of ``groups``."""
        columns = [
            pl.lit([] if isinstance(dtype, pl.List) and value is None else value, dtype).alias(column)
            for part in self.parts
            for column, dtype, value in zip(part.columns, part.dtypes, part.identity, strict=True)
        ]
        return groups.with_columns(columns)

    def lower(self, frame: pl.DataFrame, keep: Sequence[str]) -> pl.DataFrame:
        """Results: the columns ``keep``, then one column per aggregate."""
        try:
            return frame.select(keep).with_columns(*(a.lower(frame) for a in self.aggregates))
        except Failed as failure:
            failure.at = frame.select(keep).row(failure.row, named=True)
            raise
