"""Results of a multi-way join in the making: places of rows of some of its inputs, many at a time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from windrow.operators.state.join_side import JoinSide
from windrow.spec.batches import Batch
from windrow.windows.tuples import Ints


class Held:
    """The rows that an input holds while a batch of another one is joined: all runs as one."""

    def __init__(self, side: JoinSide) -> None:
        self.side = side
        self.numbers = list(side.runs)
        ends = np.cumsum([0, *(run.frame.height for run in side.runs.values())])
        self.first = dict(zip(self.numbers, ends.tolist(), strict=False))
        self.ends = ends

    @cached_property
    def frame(self) -> Batch:
        return pl.concat([run.frame for run in self.side.runs.values()], rechunk=False)

    def match(self, places: Ints) -> int:
        """Rows are in a result; how many of them were in none before."""
        chosen = np.unique(places)
        cuts = np.searchsorted(chosen, self.ends)
        found = 0
        for at, number in enumerate(self.numbers):
            own = chosen[cuts[at] : cuts[at + 1]] - self.ends[at]
            found += len(self.side.match(number, own)) if len(own) else 0
        return found


@dataclass(frozen=True)
class Partial:
    """``places``: by the number of an input, the places of its rows; of all rows together ``latest`` is the last time,
    and ``until`` the least time at which one of them is no longer held.
    """

    places: Mapping[int, Ints]
    latest: Ints
    until: Ints

    @property
    def height(self) -> int:
        return len(self.latest)

    def take(self, chosen: Any) -> Partial:
        """Some of them, by place or by truth."""
        places = {number: each[chosen] for number, each in self.places.items()}
        return Partial(places, self.latest[chosen], self.until[chosen])

    def beside(self, target: int, places: Ints, times: Ints, length: int) -> Partial:
        """Each with one more row, of an input whose rows are held for ``length``."""
        until = np.minimum(self.until, times + length)
        return Partial({**self.places, target: places}, np.maximum(self.latest, times), until)

    @classmethod
    def all_of(cls, parts: Sequence[Partial]) -> Partial:
        if len(parts) == 1:
            return parts[0]
        places = {number: np.concatenate([part.places[number] for part in parts]) for number in parts[0].places}
        times = (np.concatenate([getattr(part, name) for part in parts]) for name in ("latest", "until"))
        return cls(places, *times)

    def frame(self, rows: Mapping[int, Batch], columns: Collection[tuple[str, int]]) -> Batch:
        """Some columns, each of an input, of which ``rows`` are given."""
        return pl.DataFrame([rows[of][name].gather(pl.Series(self.places[of])) for name, of in columns])
