"""The columns of sequences: values of the row of a step, or functions of all rows of a repeated one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import polars as pl

from windrow.aggregates import Partials
from windrow.spec.batches import Batch
from windrow.spec.names import PROGRESS
from windrow.windows.tuples import Ints

STEP = "@step"  # of a row: the number of its step
SEQUENCE = "@sequence"  # of a row: the number of the result that it is in


class Value(NamedTuple):
    """A result column that has the value of a column of one row of a step: its last row, or the first."""

    name: str
    step: int
    column: str
    first: bool = False


@dataclass(frozen=True)
class Measured:
    """``schema``: the result columns in order. ``functions``: by step, the aggregates over its rows."""

    schema: Mapping[str, pl.DataType]
    values: Sequence[Value]
    functions: Mapping[int, Partials] = field(default_factory=dict)

    def of(self, rows: Batch, numbers: Ints, places: Ints) -> Batch | None:
        """Results from pairs of their numbers, which ascend from 0, and places of rows, the last row of each first."""
        if not len(numbers):
            return None
        size = int(numbers[-1]) + 1
        steps = rows[STEP].to_numpy()[places]
        found: dict[str, pl.Series] = {}
        for value in self.values:
            mine = np.flatnonzero(steps == value.step)
            mine = mine if value.first else mine[::-1]  # of several rows the one that is written last stays
            at = np.full(size, -1)
            at[numbers[mine]] = places[mine]
            found[value.name] = rows[value.column].gather(pl.Series(at).replace(-1, None))
        for step, partials in self.functions.items():
            mine = np.flatnonzero(steps == step)
            mine = mine[np.lexsort((places[mine], numbers[mine]))]
            inside = rows[places[mine]].with_columns(pl.Series(SEQUENCE, numbers[mine]))
            states = partials.lift(inside, [SEQUENCE])
            lowered = partials.lower(states, [SEQUENCE]).sort(SEQUENCE)
            found |= {name: lowered[name] for name in lowered.columns if name != SEQUENCE}
        ends = places[np.searchsorted(numbers, np.arange(size))]
        columns = [found[name].alias(name) for name in self.schema]
        return pl.DataFrame([*columns, rows[PROGRESS].gather(pl.Series(ends))])

    def shown(self, rows: Batch, step: int) -> Batch:
        """Rows of a step with the result columns that have their values, for records of late ones."""
        return rows.with_columns(pl.col(v.column).alias(v.name) for v in self.values if v.step == step)

    def alone(self, rows: Batch) -> Batch:
        """Rows of a step as results, with NULL for all other steps."""
        own = {v.name: v.column for v in self.values if rows.height and v.step == rows[STEP][0]}
        columns = [
            pl.col(own[name]).alias(name) if name in own else pl.lit(None, dtype).alias(name)
            for name, dtype in self.schema.items()
        ]
        return rows.select(*columns, PROGRESS)
