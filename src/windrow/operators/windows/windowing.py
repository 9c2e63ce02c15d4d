"""Windowing: what a window aggregate computes, as one description that all algorithms take."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

import polars as pl

from windrow.aggregates import Partials
from windrow.operators.state.late import Lateness
from windrow.operators.state.levels import NOBODY, Named
from windrow.spec.options import PLAIN, Options
from windrow.spec.time import Bounds
from windrow.windows.numbers import Numbered

Shape = TypeVar("Shape", bound=Numbered, covariant=True)


@dataclass(frozen=True)
class Windowing(Generic[Shape]):
    """``keys`` name the groups; ``bound`` is the type of window bounds; ``named`` are the keys that promises about
    single groups name. ``parts``: of slide-by-tuple and partitioned windows, the keys that have windows of their own.
    """

    window: Shape
    keys: tuple[str, ...]
    aggregates: Partials
    bound: pl.DataType = field(default_factory=pl.Int64)
    options: Options = PLAIN
    named: Named = NOBODY
    parts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", tuple(self.keys))
        object.__setattr__(self, "parts", tuple(self.parts))

    @property
    def bounds(self) -> Bounds:
        """Window bounds as columns."""
        return Bounds(self.bound, self.options.zone)

    def lateness(self, kept: int = 0) -> Lateness:
        """Who is late, and what happens then. ``kept``: how many released windows can still be revised."""
        return Lateness(self.window, self.options, self.bounds, self.keys, kept)
