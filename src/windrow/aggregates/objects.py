"""Parts whose state is a value of any type: extremes of texts and decimals, the first and the last value."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from windrow.aggregates.parts import AT, INT64, Array, Part


def objects(values: Sequence[Any]) -> Array:
    """An array of Python values; NumPy by itself would make a matrix of a list of lists."""
    found = np.empty(len(values), object)
    for i, value in enumerate(values):
        found[i] = value
    return found


def order(value: Any) -> tuple[bool, Any]:
    """A key that sorts NaN behind every number, as the rest of Windrow does."""
    return (True, 0) if isinstance(value, float) and math.isnan(value) else (False, value)


class ObjectPart(Part):
    """Values of any type, merged two at a time; None is the empty state."""

    @abstractmethod
    def pair(self, a: Any, b: Any) -> Any:
        """Merge two states, neither of which is None, without changing either."""

    def merge(self, a: Any, b: Any) -> Any:
        """Merge two states; either can be the empty state."""
        return b if a is None else a if b is None else self.pair(a, b)

    @property
    def inverse(self) -> Callable[[Any, Any], Any] | None:
        """Removes the second state from the first, where that is possible."""
        return None

    def arrays(self, frame: pl.DataFrame) -> list[Array]:
        return [objects(frame[self.columns[0]].to_list())]

    def series(self, arrays: Sequence[Array]) -> list[pl.Series]:
        return [pl.Series(self.columns[0], list(arrays[0]), dtype=self.dtypes[0])]


@dataclass(frozen=True)
class Pick(ObjectPart):
    """The least or greatest value of a type that NumPy has no arrays of."""

    arg: str
    how: Literal["min", "max"]
    dtype: pl.DataType

    @property
    def columns(self) -> tuple[str, ...]:
        return (f"{self.how}:{self.arg}",)

    @property
    def dtypes(self) -> tuple[pl.DataType, ...]:
        return (self.dtype,)

    def lift(self) -> list[pl.Expr]:
        return [getattr(pl.col(self.arg), self.how)().alias(self.columns[0])]

    def combine(self) -> list[pl.Expr]:
        return [getattr(pl.col(self.columns[0]), self.how)()]

    def pair(self, a: Any, b: Any) -> Any:
        choose: Callable[..., Any] = min if self.how == "min" else max
        return choose(a, b)


@dataclass(frozen=True)
class Edge(ObjectPart):
    """The value at the least or greatest progress value. Ties are broken by the least or greatest value: the order of
    arrival must not matter."""

    arg: str
    which: Literal["first", "last"]
    dtype: pl.DataType

    @property
    def columns(self) -> tuple[str, ...]:
        return (f"{self.which}_t:{self.arg}", f"{self.which}:{self.arg}")

    @property
    def dtypes(self) -> tuple[pl.DataType, ...]:
        return (INT64, self.dtype)

    def lift(self) -> list[pl.Expr]:
        return self._chosen(pl.col(AT), pl.col(self.arg), pl.col(self.arg).is_not_null())

    def combine(self) -> list[pl.Expr]:
        at, value = (pl.col(c) for c in self.columns)
        return self._chosen(at, value, at.is_not_null())

    def _chosen(self, at: pl.Expr, value: pl.Expr, given: pl.Expr) -> list[pl.Expr]:
        at, value = at.filter(given), value.filter(given)
        ordered = [e.sort_by(at, value) for e in (at, value)]
        chosen = [e.first() if self.which == "first" else e.last() for e in ordered]
        return [e.alias(c) for e, c in zip(chosen, self.columns, strict=True)]

    def arrays(self, frame: pl.DataFrame) -> list[Array]:
        pairs = zip(*(frame[c].to_list() for c in self.columns), strict=True)
        return [objects([None if t is None else (t, v) for t, v in pairs])]

    def series(self, arrays: Sequence[Array]) -> list[pl.Series]:
        pairs = [(None, None) if e is None else e for e in arrays[0]]
        return [pl.Series(c, [p[i] for p in pairs], dtype=self.dtypes[i]) for i, c in enumerate(self.columns)]

    def pair(self, a: Any, b: Any) -> Any:
        choose: Callable[..., Any] = min if self.which == "first" else max
        return choose(a, b, key=lambda e: (e[0], order(e[1])))
