"""Static tables: rows that do not change while a query runs, as a query declares them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import polars as pl


@dataclass(frozen=True)
class Table:
    """A name and columns; ``load`` gives the rows when they are needed first. What is sent to a worker has them.

    >>> one = Table("names", (("k", pl.Int64()),), lambda: pl.DataFrame({"k": [1]}))
    >>> one.schema, one.frame.height
    ({'k': Int64}, 1)
    """

    name: str
    columns: tuple[tuple[str, pl.DataType], ...]
    load: Callable[[], pl.DataFrame] = field(compare=False, repr=False)

    @property
    def schema(self) -> dict[str, pl.DataType]:
        return dict(self.columns)

    @cached_property
    def frame(self) -> pl.DataFrame:
        """The rows, loaded once."""
        return self.load()

    def only(self, columns: Collection[str]) -> Table:
        """The same rows with fewer columns, but at least one."""
        kept = tuple(each for each in self.columns if each[0] in columns) or self.columns[:1]
        return Table(self.name, kept, partial(_selected, self, [name for name, _ in kept]))

    def __reduce__(self) -> tuple[Any, ...]:
        return _loaded, (self.name, self.columns, self.frame)


def _selected(table: Table, columns: list[str]) -> pl.DataFrame:
    return table.frame.select(columns)


def _loaded(name: str, columns: tuple[tuple[str, pl.DataType], ...], frame: pl.DataFrame) -> Table:
    return Table(name, columns, lambda: frame)
