"""The node of a lookup: rows of a stream beside the rows of a static table that have their keys."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import polars as pl
from sqlglot import exp

from windrow.logical.kinds import OnRows
from windrow.logical.node import Node, Times, columns_in
from windrow.spec.functions import Function
from windrow.spec.tables import Table
from windrow.windows.pairing import Side

Lookups = Literal["inner", "left", "semi", "anti"]
LOOKUPS: tuple[Lookups, ...] = ("inner", "left", "semi", "anti")


@dataclass(frozen=True)
class Lookup(OnRows):
    """Pairs of a row of the stream and a row of a table whose keys are equal; a table has no times, and no window.

    ``on``, ``columns``, ``where`` and ``test`` are as those of a join; the right side is the table. ``how``: "inner";
    "left", where a row without a partner has NULL for the columns of the table; the rows that have a partner ("semi")
    or none ("anti").
    """

    input: Node
    table: Table
    on: tuple[tuple[exp.Expr, exp.Expr], ...]
    columns: tuple[tuple[str, Side, str], ...]
    where: exp.Expr | None = None
    how: Lookups = "inner"
    test: Function | None = None

    @cached_property
    def pairs(self) -> dict[str, pl.DataType]:
        """The columns of a pair, which conditions are over."""
        sides = self.input.schema, self.table.schema
        return {name: sides[side][column] for name, side, column in self.columns}

    @cached_property
    def schema(self) -> dict[str, pl.DataType]:
        """Of a semi or anti join only what is from the stream."""
        kept = (0,) if self.how in ("semi", "anti") else (0, 1)
        return {name: self.pairs[name] for name, side, _ in self.columns if side in kept}

    @property
    def names(self) -> dict[str, str]:
        """What columns of the stream are called here."""
        return {column: name for name, side, column in reversed(self.columns) if side == 0}

    @property
    def times(self) -> Times:
        return {self.names[column]: time for column, time in self.input.times.items() if column in self.names}

    @property
    def pair_times(self) -> dict[str, str]:
        return {self.names[column]: of for column, of in self.input.pair_times.items() if column in self.names}

    def passed_on(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(self.names[c] for c in columns) if all(c in self.names for c in columns) else ()

    @property
    def arrival(self) -> tuple[str, ...]:
        """A row with several partners comes out several times, and no number tells which is first."""
        return super().arrival if self.how in ("semi", "anti") else ()

    def columns_used(self, wanted: set[str]) -> tuple[set[str], ...]:
        wanted = wanted | self.tested
        own = {column for name, side, column in self.columns if side == 0 and name in wanted}
        return (own | columns_in(mine for mine, _ in self.on),)

    @property
    def tested(self) -> set[str]:
        """The columns that its conditions are over."""
        return columns_in([self.where]) | {*(self.test.columns if self.test is not None else ())}
