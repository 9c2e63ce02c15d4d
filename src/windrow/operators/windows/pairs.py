"""Pairs: rows of a join to one partial per pair of times and group, before the exchange."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import polars as pl

from windrow.aggregates import Partials
from windrow.aggregates.user import locating
from windrow.errors import ResultError
from windrow.operators.operator import Item, OnlyNews, Stateless
from windrow.operators.progress.retime import transformed
from windrow.progress import END, START, Box, Punctuation
from windrow.spec.batches import Batch
from windrow.spec.time import physical


@dataclass(frozen=True)
class Truncated:
    """A function of a time of the rows that never gives less for more: the groups are by what it gives.

    ``of``: the column with the time, of type ``dtype``; ``becomes``: the type of the result.
    """

    of: str
    dtype: pl.DataType
    expression: pl.Expr
    becomes: pl.DataType

    def promise(self, value: int) -> int:
        """What a promise about the time says about the function of it."""
        if value in (START, END):
            return value
        found = transformed(Punctuation(value), self.of, self.dtype, self._value)
        return START if found is None else found.value

    def _value(self, at: Batch) -> int | None:
        try:
            value: int | None = at.select(physical(self.expression, self.becomes)).item()
        except ResultError:  # a promise is not a row: where the expression has no value it promises nothing
            return None
        return value


# What a promise about one of the times of a pair says of both; the third box is the one that is about both.
BOXES: dict[str, Callable[[int], tuple[Box, Box, Box]]] = {
    "left": lambda v: ((v, END), (END, START), (START, START)),
    "right": lambda v: ((START, END), (END, v), (START, START)),
    "later": lambda v: ((START, END), (END, START), (v, v)),
    "earlier": lambda v: ((v, END), (END, v), (v, v)),
    "first": lambda v: ((v, END), (END, START), (START, START)),
}


class Pairs(OnlyNews, Stateless):
    """Remembers no rows between batches. ``keys``: the columns of both times, and more; ``on``: the time that promises
    without joint ones are about.

    >>> rows = pl.DataFrame({"@t": [7, 7], "l": [3, 3], "r": [7, 7]})
    >>> pairs = Pairs(["l", "r"], Partials([]))
    >>> pairs.on_batch(0, rows)[0].rows()
    [(3, 7, 2)]
    >>> pairs.on_punctuation(0, Punctuation(8))[0].boxes[-1]
    (8, 8)
    """

    def __init__(
        self,
        keys: Sequence[str],
        aggregates: Partials,
        on: str = "later",
        times: tuple[Truncated | None, Truncated | None] = (None, None),
    ) -> None:
        super().__init__()
        self.keys = tuple(keys)
        self.aggregates = aggregates
        self.on = on
        self.boxes = BOXES[on]
        self.times = times

    def on_batch(self, port: int, batch: Batch) -> list[Item]:
        with locating(dict):
            return [self.aggregates.lift(batch, self.keys)]

    def on_punctuation(self, port: int, promise: Punctuation) -> list[Item]:
        """Joint promises, in terms of the groups; the promise of a single time says something about both."""
        if promise.group is not None or promise.value == START:
            return []
        if promise.value == END:
            return self.news(replace(promise, reached=self._reached(promise.reached)))
        boxes = promise.boxes or self.boxes(promise.value)
        return self.news(Punctuation(promise.value, boxes=tuple(self._truncated(box) for box in boxes)))

    def _reached(self, value: int | None) -> int | None:
        """How far the stream came, in terms of the groups."""
        of = self.times[self.on == "right"]
        if value is None or of is None:
            return value
        found = of.promise(value)
        return found if found > START else None

    def _truncated(self, box: Box) -> Box:
        left, right = (value if of is None else of.promise(value) for of, value in zip(self.times, box, strict=True))
        return left, right
